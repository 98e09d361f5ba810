//! `zt info`: totals of a file.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use clap::Args;
use serde::Serialize;
use zt::{File, Span};
use zt_model::Check;
use zt_model::DeltaSummary;

use crate::args::files::FilesArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::commands::each::{Answer, each};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{WarningBody, path_text, type_name, warnings};
use crate::output::size::{Sum, human, percent};
use crate::output::text::{cell, count};
use crate::output::value::Attributes;

/// Show totals: parameters, bytes by type and format, digests, attributes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt info model.zt
  zt info --json model.safetensors | jq .parameters
  zt info -r models

For several files, --json prints a list of documents, and the exit code is the highest one.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'a str>,
    version: Option<&'a str>,
    file_size: u64,
    #[serde(flatten)]
    totals: Totals,
    attributes: Attributes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<DeltaBody>,
    warnings: Vec<WarningBody<'a>>,
}

/// What a delta shows without its base.
#[derive(Serialize)]
struct DeltaBody {
    base: String,
    result: String,
    base_objects: u64,
    changed: u64,
    whole: u64,
    removed: u64,
}

impl DeltaBody {
    fn of(file: &File) -> Result<Option<Self>, Failure> {
        let summary = DeltaSummary::of(file).map_err(Failure::Refused)?;
        Ok(summary.map(|summary| DeltaBody {
            base: summary.base.to_string(),
            result: summary.result.to_string(),
            base_objects: summary.base_objects,
            changed: summary.changed,
            whole: summary.whole,
            removed: summary.removed,
        }))
    }

    fn lines(&self) -> [String; 3] {
        let DeltaBody { base, result, base_objects, changed, whole, removed } = self;
        let objects = count(*base_objects, "object", "objects");
        [
            format!("delta       {changed} changed, {whole} whole, {removed} removed"),
            format!("of base     {base}, {objects}"),
            format!("to result   {result}"),
        ]
    }
}

/// Sums over all objects that can be read.
#[derive(Default, Serialize)]
struct Totals {
    objects: u64,
    /// Objects that cannot be read. Apart from this, only `objects` counts them.
    faulty: u64,
    components: u64,
    /// Elements of all shapes, also those that a sparse format does not store.
    parameters: Sum,
    /// Bytes after decoding, as far as they are known.
    decoded_size: Sum,
    /// Stored bytes. A range of a `.zt` file that several components share counts once.
    stored_size: Sum,
    /// Decoded bytes by type of the elements.
    bytes_by_dtype: BTreeMap<String, Sum>,
    /// Decoded bytes of whole objects, by the type of their values.
    bytes_by_type: BTreeMap<String, Sum>,
    /// Decoded bytes by format of the objects.
    bytes_by_format: BTreeMap<String, Sum>,
    /// Stored bytes by encoding.
    bytes_by_encoding: BTreeMap<String, Sum>,
    digests: Coverage,
    /// The largest power of two that divides the offsets of all blobs, except for empty blobs and
    /// blobs that are not a range of the file.
    alignment: Option<u64>,
}

/// How many components have a digest.
#[derive(Default, Serialize)]
struct Coverage {
    crc32c: u64,
    sha256: u64,
    /// Digests of an unknown algorithm.
    unknown: u64,
    none: u64,
    /// Components that also have digests of chunks, by which slices are verified.
    #[serde(skip_serializing_if = "is_zero")]
    of_chunks: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.input.check = Check::Read;
    let arguments = &*arguments;
    let Arguments { files, input } = arguments;
    each(files, input, Truncated::Opened, output, |path, opened, answer| {
        info(path, opened?.file(), answer)
    })
}

fn info(path: &Path, file: &File, answer: &mut Answer<'_>) -> Result<Exit, Failure> {
    let totals = Totals::of(file);
    let mut attributes = file.attributes().map_err(Failure::Refused)?;
    let delta = DeltaBody::of(file)?;
    let remarks = file.warnings();
    if answer.output.json {
        answer.document(&Document {
            file: path_text(path),
            kind: file.kind().as_str(),
            layout: file.layout(),
            version: file.version(),
            file_size: file.byte_len(),
            totals,
            attributes: Attributes(attributes.as_ref()),
            delta,
            warnings: warnings(&remarks),
        })?;
        return Ok(Exit::Ok);
    }
    answer.output.warnings_about(path, &remarks);
    answer.output.delta(path, file);
    if let (Some(_), Some(attributes)) = (&delta, &mut attributes) {
        attributes.remove("zt.delta");
    }
    let mut lines = totals.lines(file, &Attributes(attributes.as_ref()));
    lines.extend(delta.iter().flat_map(DeltaBody::lines));
    answer.text(&lines.join("\n"))?;
    Ok(Exit::Ok)
}

impl Totals {
    fn of(file: &File) -> Self {
        let mut totals = Totals::default();
        let mut spans = HashSet::new();
        let mut offsets = 0u64;
        for entry in file.entries() {
            totals.objects += 1;
            totals.faulty += u64::from(entry.fault().is_some());
            let Ok(tensor) = entry.tensor() else {
                continue;
            };
            let object = tensor.object();
            let elements = zt::formats::element_count(&object.shape);
            totals.parameters.add(elements);
            let value_type = tensor.value_type().unwrap_or("unknown".into());
            for ((_, component), place) in tensor.components().zip(tensor.file_spans()) {
                totals.components += 1;
                let blob = &component.blob;
                let decoded = blob.decoded_len.unwrap_or(0);
                totals.decoded_size.add(decoded);
                let name = type_name(component).unwrap_or("unknown").to_owned();
                totals.bytes_by_dtype.entry(name).or_default().add(decoded);
                let of_type = totals.bytes_by_type.entry(value_type.to_string());
                of_type.or_default().add(decoded);
                let format = object.format.to_string();
                totals.bytes_by_format.entry(format).or_default().add(decoded);
                let range = (blob.span.offset(), blob.span.byte_len());
                // In a set, equal offsets are in different files.
                if file.layout().is_none() || spans.insert(range) {
                    totals.stored_size.add(blob.span.byte_len());
                    let encoding = blob.encoding.as_str().to_owned();
                    let stored = totals.bytes_by_encoding.entry(encoding).or_default();
                    stored.add(blob.span.byte_len());
                }
                offsets |= place.filter(|span| !span.is_empty()).map_or(0, Span::offset);
                match &blob.digest {
                    Some(zt::Digest::Crc32c(_)) => totals.digests.crc32c += 1,
                    Some(zt::Digest::Sha256(_)) => totals.digests.sha256 += 1,
                    Some(_) => totals.digests.unknown += 1,
                    None => totals.digests.none += 1,
                }
                totals.digests.of_chunks += u64::from(blob.chunks.is_some());
            }
        }
        totals.alignment = 1u64.checked_shl(offsets.trailing_zeros());
        totals
    }

    fn lines(&self, file: &File, attributes: &Attributes<'_>) -> Vec<String> {
        let kind = match (file.layout(), file.version()) {
            (Some(layout), Some(version)) => {
                format!("{}, layout {layout}, version {version}", file.kind())
            }
            (Some(layout), None) => format!("{}, layout {layout}", file.kind()),
            _ => file.kind().to_string(),
        };
        let faulty = match self.faulty {
            0 => String::new(),
            faulty => format!(", {faulty} cannot be read"),
        };
        let components = count(self.components, "component", "components");
        let sizes = self.stored_size.0.zip(self.decoded_size.0);
        let ratio = sizes.map_or("-".to_owned(), |(stored, decoded)| percent(stored, decoded));
        let digests = &self.digests;
        let by_algorithm = [
            ("crc32c", digests.crc32c),
            ("sha256", digests.sha256),
            ("unknown", digests.unknown),
            ("none", digests.none),
            ("of chunks", digests.of_chunks),
        ];
        let coverage = by_algorithm.iter().filter(|(_, count)| *count > 0);
        let coverage: Vec<String> =
            coverage.map(|(name, components)| format!("{name} {components}")).collect();
        let sizes = |sizes: &BTreeMap<String, Sum>| {
            let sizes =
                sizes.iter().map(|(name, size)| format!("{} {}", cell(name), size.text(human)));
            sizes.collect::<Vec<_>>().join(", ")
        };
        let mut lines = Vec::new();
        let mut row = |name: &str, value: String| {
            let value = if value.is_empty() { "-" } else { &value };
            lines.push(format!("{name:<12}{value}"));
        };
        row("kind", cell(&kind).into_owned());
        row("objects", format!("{}{faulty}, {components}", self.objects));
        row("parameters", self.parameters.text(|count| count.to_string()));
        row("file", human(file.byte_len()));
        let (stored, decoded) = (self.stored_size.text(human), self.decoded_size.text(human));
        row("stored", format!("{stored} ({ratio} of {decoded})"));
        row("types", sizes(&self.bytes_by_type));
        row("formats", sizes(&self.bytes_by_format));
        row("encodings", sizes(&self.bytes_by_encoding));
        row("digests", coverage.join(", "));
        let alignment = self.alignment.map(|alignment| alignment.to_string());
        row("alignment", alignment.unwrap_or_default());
        let text = serde_json::to_string(attributes).unwrap_or_default();
        let mut attributes = cell(&text).into_owned();
        if text == "{}" {
            attributes.clear();
        }
        row("attributes", attributes);
        lines
    }
}
