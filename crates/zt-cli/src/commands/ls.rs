//! `zt ls`: list the objects of a file.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;
use zt::{Entry, File};

use crate::args::files::FilesArgs;
use crate::args::glob;
use crate::args::input::InputArgs;
use crate::commands::each::{Answer, each};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{self, ComponentBody, ObjectBody, WarningBody, path_text, warnings};
use crate::output::size::{human, percent};
use crate::output::table::{Columns, Table, Widths};
use crate::output::text::{cell, count, shape};
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

/// What a document begins with: `objects` follow.
#[derive(Serialize)]
struct Head<'a> {
    file: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'a str>,
    version: Option<&'a str>,
    file_size: u64,
    attributes: Attributes<'a>,
    warnings: Vec<WarningBody<'a>>,
}

/// What follows `objects`.
#[derive(Serialize)]
struct Tail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<Branch<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Attributes<'a>>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    each(
        &arguments.files,
        &arguments.input,
        output,
        |path, opened, answer| list(path, opened?.file(), arguments, answer),
    )
}

fn list(
    path: &Path,
    file: &File,
    arguments: &Arguments,
    answer: &mut Answer<'_>,
) -> Result<Exit, Failure> {
    let places = chosen(file, arguments)?;
    let tree = arguments.tree.then(|| branches(file, &places, arguments));
    let tree = tree.transpose()?;
    let remarks = file.warnings();
    if answer.output.json {
        let attributes = file.attributes().map_err(Failure::Refused)?;
        let extra = file.extra().map_err(Failure::Refused)?;
        let head = Head {
            file: path_text(path),
            kind: file.kind().as_str(),
            layout: file.layout(),
            version: file.version(),
            file_size: file.byte_len(),
            attributes: Attributes(attributes.as_ref()),
            warnings: warnings(&remarks),
        };
        let tail = Tail {
            tree,
            extra: (!extra.is_empty()).then_some(Attributes(Some(&extra))),
        };
        answer.document_in_pieces(|write| document(file, &places, &head, &tail, write))?;
        return Ok(Exit::Ok);
    }
    answer.output.warnings_about(path, &remarks);
    let totals = match tree {
        Some(tree) => {
            let colored = answer.output.colored();
            answer.text(&tree_table(&tree).render(colored))?;
            Summary::of(file, &places, |_, _| {})?
        }
        None if arguments.long => table(file, &places, COMPONENT, component_rows, answer)?,
        None => table(file, &places, OBJECT, object_row, answer)?,
    };
    answer.text(&totals.text(file, places.len()))?;
    Ok(Exit::Ok)
}

/// The objects to list, in their order, as places in the names of the file.
fn chosen<'f>(file: &'f File, arguments: &Arguments) -> Result<Cow<'f, [u32]>, Failure> {
    let mut places = Cow::Borrowed(file.data_order());
    let pattern = arguments.glob.as_deref();
    let is_by_name = arguments.sort == Some(Sort::Name);
    if pattern.is_some() || is_by_name {
        let names: Vec<&str> = file.names().collect();
        let name = |place: &u32| names.get(*place as usize).copied().unwrap_or_default();
        let places = places.to_mut();
        if let Some(pattern) = pattern {
            places.retain(|place| glob::matches(pattern, name(place)));
        }
        if is_by_name {
            places.sort_by_key(name);
        }
    }
    if arguments.sort == Some(Sort::Size) {
        let mut sizes = Vec::with_capacity(places.len());
        let add = |sizes: &mut Vec<u64>, entry: &Entry<'_>| {
            sizes.push(Sizes::of(&ObjectBody::new(entry)).sum());
        };
        file.fold_entries(&places, add, |stretch| {
            sizes.extend(stretch);
            Ok::<(), Failure>(())
        })?;
        let mut sized: Vec<(u64, u32)> = sizes.into_iter().zip(places.iter().copied()).collect();
        sized.sort_by_key(|(size, _)| Reverse(*size));
        places = sized.into_iter().map(|(_, place)| place).collect();
    }
    Ok(places)
}

fn branches<'f>(
    file: &'f File,
    places: &[u32],
    arguments: &Arguments,
) -> Result<Vec<Branch<'f>>, Failure> {
    let names: Vec<&str> = file.names().collect();
    let mut named: Vec<(&str, Sums)> = Vec::with_capacity(places.len());
    let add = |all: &mut Vec<Sums>, entry: &Entry<'_>| all.push(sums(&ObjectBody::new(entry)));
    file.fold_entries(places, add, |stretch| {
        let rest = places.iter().skip(named.len());
        let names = rest.filter_map(|place| names.get(*place as usize).copied());
        let stretch: Vec<_> = names.zip(stretch).collect();
        named.extend(stretch);
        Ok::<(), Failure>(())
    })?;
    let order = match arguments.sort {
        Some(Sort::Name) | None => Order::Name,
        Some(Sort::Size) => Order::Size,
        Some(Sort::Offset) => Order::Given,
    };
    let depth = arguments.depth.map_or(usize::MAX, usize::from);
    Ok(tree(&named, order, depth))
}

/// Writes the document of a file, with its objects as they are decoded.
fn document(
    file: &File,
    places: &[u32],
    head: &Head<'_>,
    tail: &Tail<'_>,
    write: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    json::push(&mut text, head);
    text.pop();
    text.extend_from_slice(b",\"objects\":[");
    write(&text)?;
    let add = |objects: &mut Vec<u8>, entry: &Entry<'_>| {
        if !objects.is_empty() {
            objects.push(b',');
        }
        json::push(objects, &ObjectBody::new(entry));
    };
    let mut is_first = true;
    file.fold_entries(places, add, |objects| {
        if !std::mem::take(&mut is_first) {
            write(b",")?;
        }
        write(&objects)
    })?;
    text.clear();
    json::push(&mut text, tail);
    write(b"]")?;
    if text != b"{}" {
        write(b",")?;
        return write(text.get(1..).unwrap_or_default());
    }
    write(b"}")
}

/// Takes the cells of a row, and whether it is coloured.
type Row<'r> = dyn FnMut(&[Cow<'_, str>], bool) + 'r;

/// Prints a table with the rows that `rows` makes of each object. The objects are decoded twice, first
/// for the widths of the columns, so that no row waits in memory for the last one.
fn table(
    file: &File,
    places: &[u32],
    columns: Columns,
    rows: fn(&ObjectBody<'_>, &mut Row<'_>),
    answer: &mut Answer<'_>,
) -> Result<Summary, Failure> {
    let totals = Summary::of(file, places, |object, widths| {
        rows(object, &mut |cells, _| widths.add(cells));
    })?;
    let mut widths = columns.widths();
    widths.merge(&totals.widths);
    let colored = answer.output.colored();
    let mut header = String::new();
    columns.push_header(&widths, colored, &mut header);
    answer.text(&header)?;
    let add = |lines: &mut String, entry: &Entry<'_>| {
        rows(&ObjectBody::new(entry), &mut |cells, is_marked| {
            columns.push_row(&widths, cells, is_marked, colored, lines);
            lines.push('\n');
        });
    };
    file.fold_entries(places, add, |lines| answer.output.bytes(lines.as_bytes()))?;
    Ok(totals)
}

const OBJECT: Columns = Columns::new(&[
    "NAME", "FORMAT", "TYPE", "SHAPE", ">SIZE", "STORED", "DIGEST",
]);

fn object_row(object: &ObjectBody<'_>, row: &mut Row<'_>) {
    let sizes = Sizes::of(object);
    let stored = match sizes.logical {
        _ if object.fault.is_some() => "?".into(),
        _ if sizes.is_raw => "raw".into(),
        Some(logical) => percent(sizes.stored, logical).into(),
        None => human(sizes.stored).into(),
    };
    let cells = [
        cell(object.name),
        known(object.format.map(cell)),
        type_of(object),
        known(object.shape.map(|extents| shape(extents).into())),
        known(sizes.logical.map(|byte_len| human(byte_len).into())),
        stored,
        fault_of(object).unwrap_or_else(|| algorithms(object)),
    ];
    row(&cells, object.fault.is_some());
}

const COMPONENT: Columns = Columns::new(&[
    "NAME", "ROLE", "TYPE", "SHAPE", ">OFFSET", ">LENGTH", ">DECODED", "ENCODING", "DIGEST",
]);

fn component_rows(object: &ObjectBody<'_>, row: &mut Row<'_>) {
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
            known(component.r#type.or(component.dtype).map(cell)),
            std::mem::take(&mut dimensions),
            number(component.offset),
            number(component.length),
            number(component.decoded_length),
            known(component.encoding.map(cell)),
            fault.clone().unwrap_or(digest),
        ];
        row(&cells, is_faulty);
    }
    if object.components.is_empty() {
        let gap = || Cow::Borrowed(if is_faulty { "?" } else { "-" });
        let fault = fault.unwrap_or_else(gap);
        let cells = [
            name,
            gap(),
            gap(),
            dimensions,
            gap(),
            gap(),
            gap(),
            gap(),
            fault,
        ];
        row(&cells, is_faulty);
    }
}

fn tree_table(tree: &[Branch<'_>]) -> Table {
    /// Deeper branches stand below each other. The width of a table is bounded.
    const DEEPEST: usize = 32;
    let mut table = Table::new(&["NAME", ">OBJECTS", ">PARAMETERS", ">SIZE"]);
    for branch in tree {
        let part = branch.name.get(branch.above..).unwrap_or_default();
        let part = match branch.above {
            0 => part,
            _ => part.strip_prefix(['.', '/']).unwrap_or(part),
        };
        let indent = "  ".repeat(branch.depth.min(DEEPEST));
        let Sums {
            objects,
            parameters,
            decoded_size,
            ..
        } = branch.sums;
        table.row([
            format!("{indent}{}", cell(part)),
            objects.to_string(),
            parameters.to_string(),
            human(decoded_size),
        ]);
    }
    table
}

/// An object in the sums of a tree.
fn sums(object: &ObjectBody<'_>) -> Sums {
    let sizes = Sizes::of(object);
    let elements = object.shape.map(zt::formats::element_count);
    Sums {
        objects: 1,
        parameters: elements.map_or(0, |elements| elements.unwrap_or(u64::MAX)),
        decoded_size: sizes.sum(),
        stored_size: sizes.stored,
    }
}

fn known(text: Option<Cow<'_, str>>) -> Cow<'_, str> {
    text.unwrap_or(Cow::Borrowed("?"))
}

fn fault_of(object: &ObjectBody<'_>) -> Option<Cow<'static, str>> {
    let fault = object.fault.as_ref()?;
    Some(format!("error[{}]", fault.code).into())
}

/// What the list has to know of all objects: their sum, and the widths of their cells.
#[derive(Default)]
struct Summary {
    logical: u64,
    faulty: usize,
    widths: Widths,
}

impl Summary {
    fn of(
        file: &File,
        places: &[u32],
        measure: impl Fn(&ObjectBody<'_>, &mut Widths) + Sync,
    ) -> Result<Self, Failure> {
        let mut all = Summary::default();
        let add = |sum: &mut Summary, entry: &Entry<'_>| {
            let object = ObjectBody::new(entry);
            sum.logical = sum.logical.saturating_add(Sizes::of(&object).sum());
            sum.faulty += usize::from(object.fault.is_some());
            measure(&object, &mut sum.widths);
        };
        file.fold_entries(places, add, |sum| {
            all.logical = all.logical.saturating_add(sum.logical);
            all.faulty += sum.faulty;
            all.widths.merge(&sum.widths);
            Ok::<(), Failure>(())
        })?;
        Ok(all)
    }

    fn text(&self, file: &File, objects: usize) -> String {
        let (logical, stored) = (human(self.logical), human(file.byte_len()));
        let number = count(objects as u64, "object", "objects");
        let mut text = format!("{number}, {logical} logical, {stored} on disk");
        if self.faulty > 0 {
            text.push_str(&format!(", {} cannot be read", self.faulty));
        }
        text
    }
}

/// The sizes of an object in bytes.
struct Sizes {
    /// After decoding; `None` if it is unknown.
    logical: Option<u64>,
    stored: u64,
    is_raw: bool,
}

impl Sizes {
    fn of(object: &ObjectBody<'_>) -> Self {
        let mut sizes = Sizes {
            logical: Some(0),
            stored: 0,
            is_raw: true,
        };
        if object.fault.is_some() {
            sizes.logical = None;
            return sizes;
        }
        for component in &object.components {
            let sum = sizes.logical.zip(component.decoded_length);
            sizes.logical = sum.map(|(sum, len)| sum.saturating_add(len));
            sizes.stored = sizes.stored.saturating_add(component.length.unwrap_or(0));
            sizes.is_raw &= component.encoding == Some("raw");
        }
        sizes
    }

    fn sum(&self) -> u64 {
        self.logical.unwrap_or(self.stored)
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
