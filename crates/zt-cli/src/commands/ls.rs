//! `zt ls`: list the objects of a file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use zt::{Entry, File, RawComponent};

use crate::args::glob;
use crate::args::input::InputArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{ObjectBody, WarningBody, type_name, warnings};
use crate::output::size::{human, percent};
use crate::output::table::Table;
use crate::output::text::{cell, count, shape};
use crate::output::value::Attributes;

/// List the objects of a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of any kind, or the index of a sharded set
    file: PathBuf,
    /// Print a row per component, with its offset, length, encoding and digest
    #[arg(short, long)]
    long: bool,
    /// Order of the objects [default: offset]
    #[arg(long, value_enum)]
    sort: Option<Sort>,
    /// List only names that match: `*` any characters, `?` one character, `[a-z]` one of a set
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    glob: Option<String>,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt ls model.zt
  zt ls model.safetensors --glob 'layers.0.*' --sort size
  zt ls --json model.zt | jq -r '.objects[].name'";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By name
    Name,
    /// The largest object first
    Size,
    /// By the offset of the data
    Offset,
}

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'a str>,
    version: Option<&'a str>,
    file_size: u64,
    attributes: Attributes<'a>,
    warnings: Vec<WarningBody<'a>>,
    objects: Vec<ObjectBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Attributes<'a>>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let file = arguments.input.open(&arguments.file)?;
    let mut entries = file.entries();
    if let Some(pattern) = &arguments.glob {
        entries.retain(|entry| glob::matches(pattern, entry.name()));
    }
    match arguments.sort {
        Some(Sort::Name) => entries.sort_by_key(Entry::name),
        Some(Sort::Size) => {
            entries.sort_by_cached_key(|entry| std::cmp::Reverse(Sizes::of(entry).sum()))
        }
        Some(Sort::Offset) | None => {}
    }
    let remarks = file.warnings();
    if output.json {
        let attributes = file.attributes().map_err(Failure::Refused)?;
        let extra = file.extra().map_err(Failure::Refused)?;
        output.document(&Document {
            file: arguments.file.display().to_string(),
            kind: file.kind().as_str(),
            layout: file.layout(),
            version: file.version(),
            file_size: file.byte_len(),
            attributes: Attributes(attributes.as_ref()),
            warnings: warnings(&remarks),
            objects: entries.iter().map(ObjectBody::new).collect(),
            extra: (!extra.is_empty()).then_some(Attributes(Some(&extra))),
        })?;
        return Ok(Exit::Ok);
    }
    output.warnings(&remarks);
    let table = if arguments.long {
        components(&entries)
    } else {
        objects(&entries)
    };
    let colored = output.colored();
    output.line(&table.render(colored))?;
    output.line(&totals(&file, &entries))?;
    Ok(Exit::Ok)
}

fn objects(entries: &[Entry<'_>]) -> Table {
    let mut table = Table::new(&[
        "NAME", "FORMAT", "TYPE", "SHAPE", ">SIZE", "STORED", "DIGEST",
    ]);
    for entry in entries {
        let name = cell(entry.name());
        let Ok(object) = entry.object() else {
            table.marked_row(faulty_cells(entry, name));
            continue;
        };
        let sizes = Sizes::of(entry);
        table.row([
            name,
            cell(&object.format),
            type_of(entry),
            shape(&object.shape),
            sizes.logical.map_or_else(|| "?".to_owned(), human),
            sizes.ratio(),
            digests(entry),
        ]);
    }
    table
}

/// The known fields of an object that cannot be read, and the code of its fault.
fn faulty_cells(entry: &Entry<'_>, name: String) -> [String; 7] {
    let raw = entry.raw();
    let text = |text: Option<&str>| text.map_or_else(|| "?".to_owned(), cell);
    let dtype = |raw: &zt::RawObject| raw.components.first().and_then(|(_, c)| c.dtype.clone());
    let code = entry.fault().map_or("", zt::Error::code);
    [
        name,
        text(raw.and_then(|raw| raw.format.as_deref())),
        text(raw.and_then(dtype).as_deref()),
        raw.and_then(|raw| raw.shape.as_deref())
            .map_or_else(|| "?".to_owned(), shape),
        "?".to_owned(),
        "?".to_owned(),
        format!("error[{code}]"),
    ]
}

fn components(entries: &[Entry<'_>]) -> Table {
    let heads = [
        "NAME", "ROLE", "TYPE", "SHAPE", ">OFFSET", ">LENGTH", ">DECODED", "ENCODING", "DIGEST",
    ];
    let mut table = Table::new(&heads);
    for entry in entries {
        let mut name = cell(entry.name());
        let Ok(object) = entry.object() else {
            faulty_components(&mut table, entry, name);
            continue;
        };
        let mut dimensions = shape(&object.shape);
        for (role, component) in &object.components {
            let blob = &component.blob;
            table.row([
                std::mem::take(&mut name),
                cell(role),
                cell(type_name(component).unwrap_or("?")),
                std::mem::take(&mut dimensions),
                blob.span.offset().to_string(),
                blob.span.byte_len().to_string(),
                blob.decoded_len
                    .map_or_else(|| "?".to_owned(), |len| len.to_string()),
                blob.encoding.as_str().to_owned(),
                blob.digest
                    .as_ref()
                    .map_or_else(|| "-".to_owned(), |digest| cell(&digest.to_string())),
            ]);
        }
        if object.components.is_empty() {
            let mut cells = vec![name, "-".to_owned(), "-".to_owned(), dimensions];
            cells.resize(heads.len(), "-".to_owned());
            table.row(cells);
        }
    }
    table
}

fn faulty_components(table: &mut Table, entry: &Entry<'_>, mut name: String) {
    let code = entry.fault().map_or("", zt::Error::code);
    let fault = format!("error[{code}]");
    let raw = entry.raw();
    let mut dimensions = raw
        .and_then(|raw| raw.shape.as_deref())
        .map_or_else(|| "?".to_owned(), shape);
    let unknown = RawComponent::default();
    let nothing = [("?".into(), unknown)];
    let components = raw
        .map(|raw| &raw.components[..])
        .filter(|known| !known.is_empty());
    for (role, component) in components.unwrap_or(&nothing) {
        let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let text = |text: Option<&str>| text.map_or_else(|| "?".to_owned(), cell);
        table.marked_row([
            std::mem::take(&mut name),
            cell(role),
            text(
                component
                    .logical_type
                    .as_deref()
                    .or(component.dtype.as_deref()),
            ),
            std::mem::take(&mut dimensions),
            number(component.offset),
            number(component.length),
            number(component.decoded_len),
            text(component.encoding.as_deref()),
            fault.clone(),
        ]);
    }
}

fn totals(file: &File, entries: &[Entry<'_>]) -> String {
    let logical = entries.iter().map(|entry| Sizes::of(entry).sum());
    let logical = logical.fold(0, u64::saturating_add);
    let objects = count(entries.len() as u64, "object", "objects");
    let (logical, stored) = (human(logical), human(file.byte_len()));
    let mut text = format!("{objects}, {logical} logical, {stored} on disk");
    match entries
        .iter()
        .filter(|entry| entry.fault().is_some())
        .count()
    {
        0 => {}
        faulty => text.push_str(&format!(", {faulty} cannot be read")),
    }
    text
}

/// The sizes of an object in bytes.
struct Sizes {
    /// After decoding; `None` if it is unknown.
    logical: Option<u64>,
    stored: u64,
    is_raw: bool,
}

impl Sizes {
    fn of(entry: &Entry<'_>) -> Self {
        let mut sizes = Sizes {
            logical: Some(0),
            stored: 0,
            is_raw: true,
        };
        let Ok(object) = entry.object() else {
            return Sizes {
                logical: None,
                ..sizes
            };
        };
        for (_, component) in &object.components {
            let blob = &component.blob;
            let sum = sizes.logical.zip(blob.decoded_len);
            sizes.logical = sum.map(|(sum, len)| sum.saturating_add(len));
            sizes.stored = sizes.stored.saturating_add(blob.span.byte_len());
            sizes.is_raw &= blob.encoding == zt::Encoding::Raw;
        }
        sizes
    }

    fn sum(&self) -> u64 {
        self.logical.unwrap_or(self.stored)
    }

    fn ratio(&self) -> String {
        match self.logical {
            _ if self.is_raw => "raw".to_owned(),
            Some(logical) => percent(self.stored, logical),
            None => human(self.stored),
        }
    }
}

/// The type of the values: `f32`, `f8_e4m3fn`, `4-bit`.
fn type_of(entry: &Entry<'_>) -> String {
    let Ok(tensor) = entry.tensor() else {
        return "?".to_owned();
    };
    match tensor.value_type() {
        Some(name) => cell(&name),
        None if tensor.object().components.is_empty() => "-".to_owned(),
        None => "?".to_owned(),
    }
}

/// The algorithms of an object's digests; `-` for a component without one.
fn digests(entry: &Entry<'_>) -> String {
    let Ok(object) = entry.object() else {
        return "?".to_owned();
    };
    let mut names: Vec<&str> = Vec::new();
    for (_, component) in &object.components {
        let name = match &component.blob.digest {
            Some(zt::Digest::Unknown { algorithm, .. }) => algorithm,
            Some(digest) => digest
                .algorithm()
                .map_or("?", |algorithm| algorithm.as_str()),
            None => "-",
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    cell(&names.join("+"))
}
