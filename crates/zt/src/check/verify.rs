//! `File::verify`: every check of a file that needs its data.

use std::collections::HashSet;

use zt_container::{Chunks, Digest, Footer, Span};
use zt_formats::Signature;
use zt_manifest::ManifestDigest;

use crate::check::survey::{Checks, Spent, Survey, judge};
use crate::cores::parallel;
use crate::cores::pieces::{Pieces, STRETCH, lent_or_fetched};
use crate::cores::progress::{Gauge, Progress, work_options};
use crate::error::{Error, ErrorKind, Fault, Result};
use crate::file::batches::{Batch, Batches};
use crate::file::chunks::Checked;
use crate::file::kind::Kind;
use crate::file::overlap::Allowance;
use crate::file::tensor::{Located, Tensor};
use crate::file::{Entry, File, Warning};

/// How a file is verified.
///
/// ```
/// # let mut bytes = Vec::new();
/// # let mut writer = zt::Writer::new(&mut bytes)?;
/// # writer.add("weight", &zt::Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
/// # writer.finish()?;
/// # let file = zt::File::from_bytes(bytes)?;
/// let report = file.verify(&zt::VerifyOptions::new())?;
/// assert!(report.is_ok());
/// # Ok::<(), zt::Error>(())
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct VerifyOptions<'p> {
    strict: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
}

impl VerifyOptions<'_> {
    /// The defaults: not strict, on all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports faults that readers tolerate as problems: padding that is not zero, blobs that
    /// overlap in part, indices that are not u64, unaligned blobs.
    pub const fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}

work_options!(VerifyOptions, "Reports decoded bytes.");

/// The result of [`File::verify`]. [`VerifyOptions`] has an example.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// Objects, faulty ones included.
    pub objects: u64,
    /// Components that were decoded, faulty ones included.
    pub components: u64,
    /// Decoded bytes that were checked.
    pub bytes: u64,
    /// Components without a digest that can be checked: object and role.
    pub unverified: Vec<(String, String)>,
    /// Objects whose format is not registered. Their digests were compared. Their contents were not
    /// checked, because the format's rules are unknown.
    pub unchecked: Vec<String>,
    /// Whether the manifest of a `.zt` file carries a digest of its own bytes, which opening compares.
    /// `None`: a file of another kind.
    pub manifest_digest: Option<bool>,
    /// Every fault, in the order of the data.
    pub problems: Vec<Error>,
    /// Warnings, which are no faults.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// Whether there are no problems.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

impl File {
    /// Checks every object against its format, decodes every component, compares every digest, and
    /// checks indices and bools.
    ///
    /// The work is done on all cores, also within one large component. It takes a few pieces of 1 MiB
    /// for each core, and the memory for the index components of one sparse object.
    ///
    /// Bytes that several components share are read once. If reading ranges that overlap takes more
    /// than [`Limits::overlap`](crate::Limits::overlap) times the file, the last ones are a problem of
    /// code `overlap`. The report does not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// Only [`crate::ErrorKind::Interrupted`]: problems of the file are in the report.
    pub fn verify(&self, options: &VerifyOptions<'_>) -> Result<Report> {
        parallel::on(options.threads, || self.verify_here(options))
    }

    fn verify_here(&self, options: &VerifyOptions<'_>) -> Result<Report> {
        let gauge = Gauge::new(options.progress);
        let mut verification = Verification {
            file: self,
            strict: options.strict,
            gauge: &gauge,
            report: self.report_of_opening(),
            spent: Spent::default(),
            of_tables: Allowance::of(self.byte_len(), &self.inner.limits),
            decoded_len: 0,
            place: 0,
            contents: Vec::new(),
            problems: Vec::new(),
        };
        let mut batches = Batches::of(self);
        let mut next = batches.next();
        while let Some(batch) = next {
            // One core checks the objects of a batch while another decodes the next batch.
            let check = || verification.check_batch(&batch);
            let (following, checked) = parallel::join(|| batches.next(), check);
            checked?;
            next = following;
        }
        let mut report = verification.check_contents()?;
        let sums = &self.inner.tolerated.sums;
        if !sums.is_empty() {
            report.problems.extend(self.inner.tolerated.check_sums(self, &gauge)?);
            let names: HashSet<&String> = sums.iter().flat_map(|sum| &sum.objects).collect();
            let is_of_all = sums.iter().any(|sum| sum.objects.is_empty());
            report.unverified.retain(|(name, _)| !is_of_all && !names.contains(name));
        }
        self.find_zero_tails(&gauge, &mut report)?;
        if !options.strict {
            // Readers tolerate a wrong digest of what describes the objects. It is damage all the same.
            let tolerated = self.inner.tolerated.problems.iter();
            let damage = tolerated.filter(|problem| problem.kind() == ErrorKind::DigestMismatch);
            report.problems.extend(damage.cloned());
        } else {
            let misplaced = self.placement_problems(&self.entries());
            report.problems.extend(misplaced);
            let problems = self.inner.tolerated.verify(self, &gauge)?;
            report.problems.extend(problems);
            for warning in &report.warnings {
                if ["alignment", "chunk-digests"].contains(&warning.code) {
                    let (object, component) = (&warning.object, &warning.component);
                    let text = warning.message.clone();
                    let error = Error::new(ErrorKind::Malformed, warning.code, text);
                    let error = error.with_object(object.as_deref().unwrap_or_default());
                    let error = error.with_component(component.as_deref().unwrap_or_default());
                    report.problems.push(error);
                }
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
        // Bytes of no sound object may belong to a faulty one.
        let mut is_known = true;
        for entry in entries {
            let Ok(object) = entry.object() else {
                is_known = false;
                continue;
            };
            let components = object.components.iter();
            for (role, component) in components {
                let blob = &component.blob;
                let table = blob.chunks.as_ref().map(|chunks| chunks.span);
                let spans = [blob.span].into_iter().chain(table);
                blobs.extend(spans.map(|span| (span, entry.name(), role.as_ref())));
            }
        }
        blobs.retain(|(span, ..)| !span.is_empty());
        blobs.sort_by_key(|(span, ..)| (span.offset(), span.byte_len()));

        let padding = |start, end| {
            if is_known { self.padding_problem(Span::between(start, end)?) } else { None }
        };
        let mut problems = Vec::new();
        let mut end = region.offset();
        let mut last: Option<(Span, &str, &str)> = None;
        for (span, name, role) in blobs {
            match last {
                // The same range may have several names: tied weights.
                Some((other, ..)) if other == span => {}
                Some((other, name_of_other, role_of_other)) if other.overlaps(span) => {
                    let fault = Fault::Overlap(format!("{name_of_other}/{role_of_other}"));
                    let error = Error::from(fault).with_object(name).with_component(role);
                    problems.push(error.with_span(span));
                }
                _ => problems.extend(padding(end, span.offset())),
            }
            if span.end() >= end {
                end = span.end();
                last = Some((span, name, role));
            }
        }
        problems.extend(padding(end, region.end()));
        problems
    }

    fn padding_problem(&self, gap: Span) -> Option<Error> {
        if gap.is_empty() {
            return None;
        }
        let source = self.inner.sources.first()?;
        let mut memory = Vec::new();
        for (_, piece) in Pieces::stretches(source, gap, STRETCH).iter() {
            let bytes = match lent_or_fetched(source, piece.stored, &mut memory) {
                Ok(bytes) => bytes,
                Err(error) => return Some(Error::from(error).with_span(gap)),
            };
            if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
                let offset = piece.stored.offset().strict_add(at as u64);
                return Some(Error::from(Fault::Padding(offset)).with_offset(offset));
            }
        }
        None
    }
}

/// The objects of a file, checked batch by batch.
struct Verification<'f, 'g> {
    file: &'f File,
    strict: bool,
    gauge: &'g Gauge<'g>,
    report: Report,
    spent: Spent,
    of_tables: Allowance,
    decoded_len: u64,
    /// The place of the next object in the order of the data.
    place: usize,
    /// Places of objects whose contents are checked after their bytes.
    contents: Vec<usize>,
    /// Each with the place of its object.
    problems: Vec<(usize, Error)>,
}

impl Verification<'_, '_> {
    fn check_batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        let entries = Batches::entries(self.file, batch);
        let wanted = Checks { every_digest: true, bools: true, content: false, crc32c: false };
        let survey = Survey::of(self.file, &entries, wanted, &mut self.spent, self.gauge)?;
        self.spent.forget();
        self.decoded_len = self.decoded_len.strict_add(survey.decoded_len());
        let mut tables = TableCheck { allowance: &mut self.of_tables, seen: HashSet::new() };
        for (at, entry) in entries.iter().enumerate() {
            let mut findings = Findings { report: &mut self.report, problems: Vec::new() };
            let place = self.place.strict_add(at);
            if findings.check(entry, at, &survey, &mut tables, self.strict) {
                self.contents.push(place);
            }
            self.problems.extend(findings.problems.into_iter().map(|error| (place, error)));
        }
        self.place = self.place.strict_add(entries.len());
        Ok(())
    }

    /// Checks the contents of objects whose bytes are right, and puts all problems in the order of the data.
    fn check_contents(mut self) -> Result<Report> {
        let order = self.file.data_order();
        let tensor = |place: &usize| {
            let entry = self.file.entry_at(*order.get(*place)? as usize)?;
            Some((*place, entry.tensor().ok()?))
        };
        let contents: Vec<(usize, Tensor<'_>)> = self.contents.iter().filter_map(tensor).collect();
        let allowance = Allowance::of(self.decoded_len, &self.file.inner.limits);
        let checked = crate::read::contents::check(&contents, allowance, self.gauge)?;
        let checked = contents.iter().zip(checked);
        self.problems.extend(checked.filter_map(|((place, _), error)| Some((*place, error?))));
        self.problems.sort_by_key(|(place, _)| *place);
        self.report.problems.extend(self.problems.into_iter().map(|(_, error)| error));
        Ok(self.report)
    }
}

impl File {
    /// A report with what was found when the file was opened.
    fn report_of_opening(&self) -> Report {
        let digest = self.manifest_digest();
        let mut report = Report {
            objects: self.len() as u64,
            warnings: self.warnings(),
            manifest_digest: digest.map(|digest| *digest == ManifestDigest::Right),
            ..Report::default()
        };
        if let Some(truncated) = self.truncated() {
            report.warnings.retain(|warning| warning.code != truncated.code());
            report.problems.push(truncated.clone());
        }
        // The header of another source was checked when it was opened.
        let remote = self.inner.sources.first().filter(|it| it.is_remote());
        if let Some(source) = remote.filter(|_| self.kind() == Kind::ZT) {
            let header = Footer::check_header(&**source);
            report.problems.extend(header.err().map(Error::from));
        }
        report
    }
}

/// The tables of chunk digests of one batch, each checked once.
struct TableCheck<'a, 'f> {
    allowance: &'a mut Allowance,
    seen: HashSet<(usize, Span, &'f Chunks, Option<&'f Digest>)>,
}

impl<'f> TableCheck<'_, 'f> {
    /// The fault of the table of a component whose bytes are right.
    fn problem(&mut self, tensor: &Tensor<'f>, part: Located<'f>) -> Option<Error> {
        let blob = &part.component.blob;
        let chunks = blob.chunks.as_deref()?;
        let (at, digest) = (tensor.source_index(part), blob.digest.as_ref());
        if !self.seen.insert((at, blob.span, chunks, digest)) {
            return None;
        }
        let source = tensor.source(part);
        let table = Checked::read(source, blob, true);
        let checked = table.and_then(|table| match table {
            Some(table) => table.check_all(source, blob, self.allowance),
            None => Ok(()),
        });
        checked.err().map(|error| tensor.blame(error, part))
    }
}

/// What is found in one object.
struct Findings<'r> {
    report: &'r mut Report,
    problems: Vec<Error>,
}

impl Findings<'_> {
    /// Checks all but the contents, and returns whether these can be checked.
    fn check<'f>(
        &mut self,
        entry: &Entry<'f>,
        at: usize,
        survey: &Survey<'f>,
        tables: &mut TableCheck<'_, 'f>,
        strict: bool,
    ) -> bool {
        let (tensor, outcomes) = match survey.object(at) {
            Ok(object) => object,
            Err(fault) => {
                self.problems.push(fault);
                return false;
            }
        };
        let format = tensor.registry().format(tensor.format());
        if format.is_none() {
            self.report.unchecked.push(entry.name().to_owned());
        }
        self.problems.extend(tensor.fault().cloned());
        let mut is_sound = tensor.fault().is_none();
        if strict
            && is_sound
            && let Some(format) = format
        {
            let signature = Signature::of(tensor.object());
            let strict = format.check_strict(&signature, tensor.registry()).err();
            let strict = strict.map(|error| tensor.blame_format(error));
            self.problems.extend(strict);
        }
        let mut lengths = Vec::new();
        for (part, outcome) in tensor.located().zip(outcomes) {
            if part.component.blob.algorithm().is_none() {
                let name = entry.name().to_owned();
                self.report.unverified.push((name, part.role.to_string()));
            }
            self.report.components = self.report.components.strict_add(1);
            let decoded = outcome.and_then(|outcome| outcome.decoded.as_ref().ok());
            let decoded = decoded.copied().unwrap_or(0);
            self.report.bytes = self.report.bytes.saturating_add(decoded);
            // Digests are compared even if the file was opened without.
            match judge(&tensor, part, outcome, true) {
                Ok(byte_len) => {
                    lengths.push(byte_len);
                    self.problems.extend(tables.problem(&tensor, part));
                }
                Err(error) => {
                    is_sound = false;
                    self.problems.push(error);
                }
            }
        }
        // The lengths that an old file omits are known now. The same rules apply to them.
        let unknown = |part: Located<'_>| part.component.blob.decoded_len.is_none();
        if is_sound && tensor.located().any(unknown) {
            let mut object = tensor.object().clone();
            for ((_, component), byte_len) in object.components.iter_mut().zip(lengths) {
                component.blob.decoded_len = Some(byte_len);
            }
            let fault = crate::file::catalog::check(&mut object, tensor.registry());
            let fault = fault.map(|fault| fault.with_object(entry.name()));
            is_sound = fault.is_none();
            self.problems.extend(fault);
        }
        let roles = format.filter(|_| is_sound);
        let roles = roles.map(|format| format.data_roles());
        roles.is_some_and(|roles| roles.is_none_or(|roles| !roles.is_empty()))
    }
}
