//! Everything that can be checked of a file, checked.

use zt_container::{BlobReader, Span};
use zt_formats::check_bools_from;
use zt_manifest::DType;

use crate::error::{Error, Fault, Result};
use crate::file::{Entry, File, Warning};
use crate::progress::{Progress, report};
use crate::tensor::{Located, Tensor};

/// How a file is verified.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct VerifyOptions<'p> {
    /// Whether what a reader tolerates and a writer must not do is a problem too: padding that is
    /// not zero, blobs that overlap in part, indices that are not u64, blobs off the grid.
    pub strict: bool,
    /// Threads; all cores where `None`.
    pub threads: Option<usize>,
    /// Told of decoded bytes.
    pub progress: Option<Progress<'p>>,
}

impl std::fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("VerifyOptions");
        debug
            .field("strict", &self.strict)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// What verifying a file has found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// Objects, faulty ones included.
    pub objects: u64,
    /// Components that were decoded, whether rightly or not.
    pub components: u64,
    /// Decoded bytes that were checked.
    pub bytes: u64,
    /// Components without a digest that can be checked: object and role.
    pub unverified: Vec<(String, String)>,
    /// Every fault, in the order of the data.
    pub problems: Vec<Error>,
    /// Remarks that are no faults.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// Whether there are no problems.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

impl File {
    /// Checks every object against its format, decodes every component, compares every digest and
    /// looks at indices and bools. On all cores; each holds 1 MiB of a component at a time, and
    /// the index components of one sparse object.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Interrupted`] alone: problems of the file are in the report.
    pub fn verify(&self, options: &VerifyOptions<'_>) -> Result<Report> {
        let entries = self.entries();
        let checked = crate::parallel::map(options.threads, &entries, |entry| {
            let mut findings = Findings::default();
            findings.check(entry, options).map(|()| findings)
        })?;
        let mut report = Report {
            warnings: self.warnings(),
            ..Report::default()
        };
        report.objects = entries.len() as u64;
        for findings in checked {
            let findings = findings?;
            report.components = report.components.saturating_add(findings.components);
            report.bytes = report.bytes.saturating_add(findings.bytes);
            report.unverified.extend(findings.unverified);
            report.problems.extend(findings.problems);
        }
        if options.strict {
            report.problems.extend(self.placement_problems(&entries));
            let tolerated = &self.inner.tolerated;
            let problems = tolerated.verify(self, options.threads, options.progress)?;
            report.problems.extend(problems);
            for warning in report
                .warnings
                .iter()
                .filter(|warning| warning.code == "alignment")
            {
                let error = Error::new(
                    crate::ErrorKind::Malformed,
                    "alignment",
                    warning.message.clone(),
                );
                let error = error.with_object(warning.object.as_deref().unwrap_or_default());
                report
                    .problems
                    .push(error.with_component(warning.component.as_deref().unwrap_or("")));
            }
        }
        Ok(report)
    }

    /// Blobs that overlap in part, and bytes between blobs that are not zero. Spec: §4.
    fn placement_problems(&self, entries: &[Entry<'_>]) -> Vec<Error> {
        let Some(region) = self.data_region() else {
            return Vec::new();
        };
        let mut blobs: Vec<(Span, &str, &str)> = Vec::new();
        for entry in entries {
            let Ok(object) = entry.object() else { continue };
            let components = object.components.iter();
            blobs.extend(components.map(|(role, c)| (c.blob.span, entry.name(), role.as_ref())));
        }
        blobs.retain(|(span, ..)| !span.is_empty());
        blobs.sort_by_key(|(span, ..)| (span.offset(), span.byte_len()));

        let mut problems = Vec::new();
        let mut end = region.offset();
        let mut last: Option<(Span, &str, &str)> = None;
        for (span, name, role) in blobs {
            match last {
                // The same range may have several names: tied weights.
                Some((other, ..)) if other == span => {}
                Some((other, name_of_other, role_of_other)) if other.overlaps(span) => {
                    let fault = Fault::Overlap {
                        other: format!("{name_of_other}/{role_of_other}"),
                    };
                    let error = Error::from(fault).with_object(name).with_component(role);
                    problems.push(error.with_span(span));
                }
                _ => problems.extend(self.padding_problem(Span::between(end, span.offset()))),
            }
            if span.end() >= end {
                end = span.end();
                last = Some((span, name, role));
            }
        }
        problems.extend(self.padding_problem(Span::between(end, region.end())));
        problems
    }

    fn padding_problem(&self, gap: Option<Span>) -> Option<Error> {
        let gap = gap.filter(|gap| !gap.is_empty())?;
        let source = self.inner.sources.first()?;
        let blob = zt_container::Blob::raw(gap);
        let mut reader = match BlobReader::unverified(
            source,
            &blob,
            &zt_container::Limits {
                decoded_len: u64::MAX,
                ..self.inner.limits
            },
        ) {
            Ok(reader) => reader,
            Err(error) => return Some(error.into()),
        };
        let mut piece = vec![0; 64 << 10];
        let mut offset = gap.offset();
        loop {
            let len = match reader.read(&mut piece) {
                Ok(0) => return None,
                Ok(len) => len,
                Err(error) => return Some(Error::from(error).with_span(gap)),
            };
            let bytes = piece.get(..len).unwrap_or_default();
            if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                let offset = offset.saturating_add(at as u64);
                return Some(Error::from(Fault::Padding { offset }).with_offset(offset));
            }
            offset = offset.saturating_add(len as u64);
        }
    }
}

/// What was found in one object.
#[derive(Default)]
struct Findings {
    components: u64,
    bytes: u64,
    unverified: Vec<(String, String)>,
    problems: Vec<Error>,
}

impl Findings {
    fn check(&mut self, entry: &Entry<'_>, options: &VerifyOptions<'_>) -> Result<()> {
        let tensor = match entry.tensor() {
            Ok(tensor) => tensor,
            Err(fault) => {
                self.problems.push(fault);
                return Ok(());
            }
        };
        let format = tensor.registry().format(tensor.format());
        if options.strict
            && let Some(format) = format
        {
            let signature = crate::catalog::signature(tensor.object());
            let strict = format.check_strict(&signature, tensor.registry());
            self.problems
                .extend(strict.err().map(|error| tensor.blame_format(error)));
        }
        let mut lengths = Vec::new();
        let mut is_sound = true;
        for part in tensor.located() {
            let digest = part.component.blob.digest.as_ref();
            if digest.is_none_or(|digest| digest.algorithm().is_none()) {
                let name = entry.name().to_owned();
                self.unverified.push((name, part.role.to_string()));
            }
            self.components = self.components.saturating_add(1);
            match self.stream(&tensor, part, options.progress) {
                Ok(byte_len) => lengths.push(byte_len),
                Err(error) if error.kind() == crate::ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    is_sound = false;
                    self.problems.push(error);
                }
            }
        }
        // Lengths that an old file leaves out are known by now, and held to the same rules.
        let unknown = |part: Located<'_>| part.component.blob.decoded_len.is_none();
        if is_sound && tensor.located().any(unknown) {
            let mut object = tensor.object().clone();
            for ((_, component), byte_len) in object.components.iter_mut().zip(lengths) {
                component.blob.decoded_len = Some(byte_len);
            }
            if let Err(error) = crate::catalog::check(&mut object, tensor.registry()) {
                is_sound = false;
                let error = crate::catalog::blame_blob(error, &object);
                self.problems.push(error.with_object(entry.name()));
            }
        }
        // Contents are looked at once their bytes are known to be right.
        if is_sound && let Some(format) = format {
            let roles = format.data_roles();
            if roles.is_none_or(|roles| !roles.is_empty()) {
                let parts = tensor.parts_of(|role| roles.is_none_or(|roles| roles.contains(&role)));
                let checked = parts.and_then(|parts| {
                    format
                        .check_data(&parts)
                        .map_err(|error| tensor.blame_format(error))
                });
                self.problems.extend(checked.err());
            }
        }
        Ok(())
    }

    /// Decodes one component, which compares its digest and its length, and looks at bools. How
    /// many bytes there are.
    fn stream<'f>(
        &mut self,
        tensor: &Tensor<'f>,
        part: Located<'f>,
        progress: Option<Progress<'_>>,
    ) -> Result<u64> {
        let is_bool = part.component.dtype == Some(DType::Bool);
        // Whatever the file was opened with: comparing digests is what this is for.
        let mut reader = tensor.reader_of(part, true)?;
        let mut piece = part.piece();
        let mut position = 0u64;
        let mut wrong_bool = None;
        loop {
            let len = reader.read(&mut piece)?;
            if len == 0 {
                break;
            }
            let bytes = piece.get(..len).unwrap_or_default();
            if is_bool && wrong_bool.is_none() {
                wrong_bool = check_bools_from(position, bytes).err();
            }
            position = position.saturating_add(len as u64);
            self.bytes = self.bytes.saturating_add(len as u64);
            report(progress, len as u64)?;
        }
        // After the end, so that a wrong digest is reported before what follows from it.
        match wrong_bool {
            Some(error) => Err(tensor.blame_format(error.with_role(part.role.clone()))),
            None => Ok(position),
        }
    }
}
