//! `zt ls`: list the objects of a file.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;
use zt::ggml::BlockType;
use zt::{Entry, File};
use zt_convert::{Input, LogicalTensor};
use zt_model::Check;

use crate::args::files::FilesArgs;
use crate::args::glob;
use crate::args::input::{InputArgs, Truncated};
use crate::commands::each::{Answer, each};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{self, ComponentBody, ObjectBody, WarningBody, path_text, warnings};
use crate::output::size::{Sum, human, percent};
use crate::output::table::Table;
use crate::output::text::{self, cell, count, printable, shape};
use crate::output::tree::{Branch, Order, Sums, tree};
use crate::output::value::Attributes;

/// List the objects of files
///
/// A folder stands for the sets and the tensor files in it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
    /// Print a row per component, with its offset, length, encoding and digest
    #[arg(short, long)]
    long: bool,
    /// Print sums of objects by the parts of their names, which dots and slashes separate
    #[arg(long, conflicts_with = "long")]
    tree: bool,
    /// Levels of the tree [default: all]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u16).range(1..))]
    depth: Option<u16>,
    /// Order of the objects [default: offset; for a tree: name, with numbers by their value]
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
  zt ls --json model.zt | jq -r '.objects[].name'
  zt ls model.safetensors --tree --depth 2 --sort size
  zt ls -r models

Keys of a branch in `tree` of --json: `name` (the prefix), `depth`, `objects`, `parameters`,
`decoded_size` and `stored_size`.

For several files, --json prints a list of documents, and the exit code is the highest one.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By name
    Name,
    /// The largest object first
    Size,
    /// By the offset of the data
    Offset,
}

/// The document of a file without its last key, `objects`.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<Branch<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Attributes<'a>>,
}

impl Document<'_> {
    /// Each object is made when it is written: there may be a million.
    fn write(&self, objects: &Objects<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut head = Vec::new();
        json::write(self, &mut head)?;
        out.write_all(head.strip_suffix(b"}").unwrap_or_default())?;
        out.write_all(b",\"objects\":[")?;
        let add = |text: &mut Vec<u8>, entry: &Entry<'_>| {
            text.push(b',');
            let _ = json::write(&objects.body(entry), text); // Memory takes all that is written.
        };
        let (mut comma, mut written) = (&b","[..], Ok(()));
        objects.fold(add, |text| {
            if written.is_ok() {
                written = out.write_all(text.strip_prefix(comma).unwrap_or(&text));
            }
            comma = b"";
        });
        written?;
        out.write_all(b"]}")
    }
}

pub(crate) fn run(arguments: &mut Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.input.check = Check::Read;
    let arguments = &*arguments;
    let Arguments { files, input, .. } = arguments;
    each(files, input, Truncated::Opened, output, |path, opened, answer| {
        list(path, &opened?, arguments, answer)
    })
}

fn list(
    path: &Path,
    input: &Input,
    arguments: &Arguments,
    answer: &mut Answer<'_>,
) -> Result<Exit, Failure> {
    let file = input.file();
    let objects = Objects::of(input, arguments);
    let tree = match &objects.order {
        Listed::Chosen(entries) if arguments.tree => Some(branches(entries, arguments)),
        _ => None,
    };
    let remarks = file.warnings();
    if answer.output.json {
        let attributes = file.attributes().map_err(Failure::Refused)?;
        let extra = file.extra().map_err(Failure::Refused)?;
        let document = Document {
            file: path_text(path),
            kind: file.kind().as_str(),
            layout: file.layout(),
            version: file.version(),
            file_size: file.byte_len(),
            attributes: Attributes(attributes.as_ref()),
            warnings: warnings(&remarks),
            tree,
            extra: (!extra.is_empty()).then_some(Attributes(Some(&extra))),
        };
        answer.document_with(|out| document.write(&objects, out))?;
        return Ok(Exit::Ok);
    }
    answer.output.warnings_about(path, &remarks);
    answer.output.delta(path, file);
    let (heads, add_rows): (_, fn(&ObjectBody<'_>, &mut Table)) =
        if arguments.long { (COMPONENT, add_component_rows) } else { (OBJECT, add_object_row) };
    let add = |rows: &mut Option<Table>, object: &ObjectBody<'_>| {
        add_rows(object, rows.get_or_insert_with(|| Table::new(heads)));
    };
    let add_with_totals = |(totals, rows): &mut (Totals, Option<Table>), entry: &Entry<'_>| {
        let object = objects.body(entry);
        totals.add(&object);
        add(rows, &object);
    };
    // Rows are made twice, first for the widths of the columns: none waits in memory for the last one.
    let (mut totals, mut table) = (Totals::default(), Table::new(heads));
    objects.fold(add_with_totals, |(some, rows)| {
        totals.merge(&some);
        rows.iter().for_each(|rows| table.widen(rows));
    });
    if let Some(tree) = &tree {
        table = tree_table(tree);
    }
    if let Some(columns) = Output::columns() {
        table.fit(columns);
    }
    let colored = answer.output.colored();
    answer.text(&table.render(colored))?;
    if tree.is_none() {
        let mut printed = Ok(());
        let again = |rows: &mut Option<Table>, entry: &Entry<'_>| add(rows, &objects.body(entry));
        objects.fold(again, |rows| {
            if let (Some(rows), Ok(())) = (rows, &printed) {
                let mut lines = String::new();
                table.push_rows(&rows, colored, &mut lines);
                printed = answer.text(lines.trim_start_matches('\n'));
            }
        });
        printed?;
    }
    answer.text(&totals.text(file))?;
    // A truncated file has said so.
    if let Some(why) = totals.why.as_ref().filter(|_| file.truncated().is_none()) {
        answer.output.note(&format!("{}: {why}", text::path(path)));
    }
    Ok(Exit::Ok)
}

/// The objects to list.
struct Objects<'f> {
    order: Listed<'f>,
    /// Those that are computed from codes, by name.
    logical: HashMap<&'f str, &'f LogicalTensor>,
}

/// Objects in their order.
enum Listed<'f> {
    /// Decoded when they are listed, and not kept.
    All(&'f File),
    Chosen(Vec<Entry<'f>>),
}

impl<'f> Objects<'f> {
    fn of(input: &'f Input, arguments: &Arguments) -> Self {
        let logical = input.logical().iter().map(|tensor| (&*tensor.name, tensor)).collect();
        Objects { order: Listed::of(input.file(), arguments), logical }
    }

    fn body<'e>(&self, entry: &Entry<'e>) -> ObjectBody<'e> {
        let mut body = ObjectBody::new(entry);
        if let Some(tensor) = self.logical.get(entry.name()) {
            (body.dialect, body.bits_per_weight) = (Some(tensor.dialect.clone()), tensor.bits);
        }
        body
    }

    /// As [`File::fold_entries`].
    fn fold<T: Default + Send>(
        &self,
        add: impl Fn(&mut T, &Entry<'_>) + Sync,
        mut take: impl FnMut(T),
    ) {
        match &self.order {
            Listed::All(file) => file.fold_entries(add, take),
            Listed::Chosen(entries) => {
                let mut sum = T::default();
                entries.iter().for_each(|entry| add(&mut sum, entry));
                take(sum);
            }
        }
    }
}

impl<'f> Listed<'f> {
    fn of(file: &'f File, arguments: &Arguments) -> Self {
        let is_sorted = matches!(arguments.sort, Some(Sort::Name | Sort::Size));
        if arguments.glob.is_none() && !is_sorted && !arguments.tree {
            return Listed::All(file);
        }
        let mut entries = file.entries();
        if let Some(pattern) = &arguments.glob {
            entries.retain(|entry| glob::matches(pattern, entry.name()));
        }
        match arguments.sort {
            Some(Sort::Name) => entries.sort_by_key(Entry::name),
            Some(Sort::Size) => {
                let size = |entry: &Entry<'_>| Sizes::of(&ObjectBody::new(entry)).sum();
                entries.sort_by_cached_key(|entry| Reverse(size(entry)));
            }
            Some(Sort::Offset) | None => {}
        }
        Listed::Chosen(entries)
    }
}

fn branches<'f>(entries: &[Entry<'f>], arguments: &Arguments) -> Vec<Branch<'f>> {
    let named = entries.iter();
    let named: Vec<_> = named.map(|entry| (entry.name(), sums(&ObjectBody::new(entry)))).collect();
    let order = match arguments.sort {
        Some(Sort::Name) | None => Order::Name,
        Some(Sort::Size) => Order::Size,
        Some(Sort::Offset) => Order::Given,
    };
    let depth = arguments.depth.map_or(usize::MAX, usize::from);
    tree(&named, order, depth)
}

const OBJECT: &[&str] = &["NAME", "FORMAT", "TYPE", "SHAPE", ">SIZE", "STORED", "DIGEST"];

fn add_object_row(object: &ObjectBody<'_>, table: &mut Table) {
    let sizes = Sizes::of(object);
    let stored = match (sizes.stored, sizes.logical) {
        _ if object.fault.is_some() => "?".into(),
        _ if sizes.is_raw => "raw".into(),
        (Some(stored), Some(logical)) => percent(stored, logical).into(),
        (stored, _) => known(stored.map(|stored| human(stored).into())),
    };
    let stored = match object.bits_per_weight {
        Some(bits) => format!("{bits:.2} bits").into(),
        None => stored,
    };
    let cells = [
        cell(object.name),
        known(object.dialect.as_deref().or(object.format).map(cell)),
        type_of(object),
        known(object.shape.map(|extents| shape(extents).into())),
        known(sizes.logical.map(|byte_len| human(byte_len).into())),
        stored,
        fault_of(object).unwrap_or_else(|| algorithms(object)),
    ];
    table.marked_row(object.fault.is_some(), cells);
}

const COMPONENT: &[&str] =
    &["NAME", "ROLE", "TYPE", "SHAPE", ">OFFSET", ">LENGTH", ">DECODED", "ENCODING", "DIGEST"];

fn add_component_rows(object: &ObjectBody<'_>, table: &mut Table) {
    let fault = fault_of(object);
    let is_faulty = fault.is_some();
    let mut name = cell(object.name);
    let mut dimensions = known(object.shape.map(|extents| shape(extents).into()));
    let number = |number: Option<u64>| known(number.map(|number| number.to_string().into()));
    for component in &object.components {
        let digest = component.digest.map(|digest| digest.to_string());
        let digest = digest.as_deref().map_or("-".into(), cell);
        let cells = [
            std::mem::take(&mut name),
            cell(component.role),
            stored_type(object, component),
            std::mem::take(&mut dimensions),
            number(component.offset),
            number(component.length),
            number(component.decoded_length),
            known(component.encoding.map(cell)),
            fault.clone().unwrap_or(digest),
        ];
        table.marked_row(is_faulty, cells);
    }
    if object.components.is_empty() {
        let gap = Cow::Borrowed(if is_faulty { "?" } else { "-" });
        let fault = fault.unwrap_or_else(|| gap.clone());
        let mut cells = vec![gap; COMPONENT.len()];
        (cells[0], cells[3], cells[8]) = (name, dimensions, fault);
        table.marked_row(is_faulty, cells);
    }
}

fn tree_table(tree: &[Branch<'_>]) -> Table {
    let mut table = Table::new(&["NAME", ">OBJECTS", ">PARAMETERS", ">SIZE"]);
    for branch in tree {
        table.row([
            branch.label(),
            branch.sums.objects.to_string(),
            branch.sums.parameters.text(|count| count.to_string()),
            branch.sums.decoded_size.text(human),
        ]);
    }
    table
}

/// An object in the sums of a tree.
fn sums(object: &ObjectBody<'_>) -> Sums {
    let sizes = Sizes::of(object);
    let elements = object.shape.map_or(Some(0), zt::formats::element_count);
    Sums {
        objects: 1,
        parameters: Sum(elements),
        decoded_size: Sum(sizes.sum()),
        stored_size: Sum(sizes.stored),
    }
}

fn known(text: Option<Cow<'_, str>>) -> Cow<'_, str> {
    text.unwrap_or(Cow::Borrowed("?"))
}

fn fault_of(object: &ObjectBody<'_>) -> Option<Cow<'static, str>> {
    let fault = object.fault.as_ref()?;
    Some(format!("error[{}]", fault.code).into())
}

/// Sums over the listed objects.
#[derive(Default)]
struct Totals {
    logical: Sum,
    faulty: usize,
    objects: usize,
    /// Why the first object that is at fault cannot be read.
    why: Option<String>,
}

impl Totals {
    fn add(&mut self, object: &ObjectBody<'_>) {
        self.logical.add(Sizes::of(object).sum());
        self.faulty += usize::from(object.fault.is_some());
        if let (None, Some(fault)) = (&self.why, &object.fault) {
            self.why = Some(format!("{}: {}", cell(object.name), printable(&fault.message)));
        }
        self.objects += 1;
    }

    fn merge(&mut self, other: &Totals) {
        self.logical.add(other.logical.0);
        self.faulty += other.faulty;
        self.why = self.why.take().or_else(|| other.why.clone());
        self.objects += other.objects;
    }

    fn text(&self, file: &File) -> String {
        let (logical, stored) = (self.logical.text(human), human(file.byte_len()));
        let number = count(self.objects as u64, "object", "objects");
        let mut text = format!("{number}, {logical} logical, {stored} on disk");
        if self.faulty > 0 {
            text.push_str(&format!(", {} cannot be read", self.faulty));
        }
        text
    }
}

/// The sizes of an object in bytes.
struct Sizes {
    /// After decoding; `None` if it is unknown, or 2^64 or more.
    logical: Option<u64>,
    stored: Option<u64>,
    is_raw: bool,
}

impl Sizes {
    fn of(object: &ObjectBody<'_>) -> Self {
        let mut sizes = Sizes { logical: Some(0), stored: Some(0), is_raw: true };
        if object.fault.is_some() {
            sizes.logical = None;
            return sizes;
        }
        for component in &object.components {
            let add = |sum: Option<u64>, len| sum?.checked_add(len?);
            sizes.logical = add(sizes.logical, component.decoded_length);
            sizes.stored = add(sizes.stored, component.length.or(Some(0)));
            sizes.is_raw &= component.encoding == Some("raw");
        }
        sizes
    }

    fn sum(&self) -> Option<u64> {
        self.logical.or(self.stored)
    }
}

/// The type of the values: `f32`, `f8_e4m3fn`, `4-bit`.
fn type_of<'o>(object: &'o ObjectBody<'_>) -> Cow<'o, str> {
    let first = object.components.first();
    match (&object.r#type, &object.fault) {
        (Some(name), _) => cell(name),
        (None, Some(_)) => known(first.and_then(|component| component.dtype).map(cell)),
        (None, None) if first.is_none() => "-".into(),
        (None, None) => "?".into(),
    }
}

/// The type of stored elements: `f32`. Blocks of GGUF have more than one value each, so that shape and type
/// do not show the length: `q8_0: 34 B/32`.
fn stored_type<'o>(object: &ObjectBody<'o>, component: &ComponentBody<'o>) -> Cow<'o, str> {
    match object.format.and_then(BlockType::from_format) {
        Some(blocks) => {
            let name = blocks.name().to_ascii_lowercase();
            let (bytes, values) = (blocks.block_byte_len(), blocks.block_len());
            format!("{name}: {bytes} B/{values}").into()
        }
        None => known(component.r#type.or(component.dtype).map(cell)),
    }
}

/// The algorithms of an object's digests; `-` for a component without one.
fn algorithms<'o>(object: &ObjectBody<'o>) -> Cow<'o, str> {
    let name = |component: &ComponentBody<'o>| component.digest.map_or("-", |it| it.algorithm());
    if let [component] = object.components.as_slice() {
        return cell(name(component));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in object.components.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    cell(&names.join("+")).into_owned().into()
}
