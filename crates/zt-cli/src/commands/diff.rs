//! `zt diff`: compare two files of any kind.

mod summary;

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Serialize, Serializer};
use zt::diff::{Change, Diff, DiffOptions, Extreme, ObjectDiff, Side, Tolerance, ValueDiff};
use zt::{Error, File, Value};
use zt_convert::NPY;

use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{ErrorBody, object, path_text};
use crate::output::progress::Progress;
use crate::output::text::{self, cell, count, digits, printable, shape};
use crate::output::value::{Any, Float};

/// Compare two files: names, shapes, formats, attributes, types and values
///
/// Compression, planes, digests, order and the kind of a file do not matter. Two values of one type
/// are equal if their bits are; spec/diff.md has the details. Objects are compared by name, except
/// that the arrays of two .npy files have no names and are compared with each other.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The first file of any kind, or the index or the folder of a sharded set; `-` is stdin
    a: PathBuf,
    /// The second file
    b: PathBuf,
    /// Print the largest difference of values and its position: absolute, relative, and in steps of
    /// the type (ulp)
    #[arg(long)]
    values: bool,
    /// Treat values as equal up to this absolute difference [default: 0]
    #[arg(long, value_name = "X", value_parser = tolerance)]
    atol: Option<f64>,
    /// Treat values as equal up to this difference relative to the value in B [default: 0]; both
    /// tolerances add up, as in NumPy's allclose
    #[arg(long, value_name = "X", value_parser = tolerance)]
    rtol: Option<f64>,
    /// Compare dense values and ignore formats: sparse tensors with their zeros, quantized ones as
    /// f32
    #[arg(long)]
    dense: bool,
    /// As --dense, and ignore attributes and types, too: for a model and its cast, or for two kinds of
    /// files
    #[arg(long)]
    only_values: bool,
    /// Print how far the values of each object are from each other, the largest relative change first;
    /// compares as --only-values does
    #[arg(long, conflicts_with_all = ["values", "atol", "rtol", "dense", "only_values"])]
    summary: bool,
    /// Print the summary by the parts of names, which dots and slashes separate
    #[arg(long, requires = "summary")]
    tree: bool,
    /// Levels of the tree [default: all]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u16).range(1..))]
    depth: Option<u16>,
    #[command(flatten)]
    jobs: Jobs,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt diff model.safetensors model.zt
  zt diff --values base.safetensors tuned.safetensors
  zt diff --atol 1e-6 --rtol 1e-5 before.pt after.pt
  zt diff --dense sparse.zt dense.zt
  zt diff --only-values --rtol 0.01 model.safetensors half.gguf
  zt diff --summary --tree base.safetensors tuned.safetensors
  zt diff --json a.zt b.zt | jq -r '.changed[].name'

Exit: 0  the files are the same
      1  they differ, or an object is damaged
      3  a file is refused as a whole
      4  a file cannot be read

Keys of --json: `a` and `b` (paths), `same`, `only_a` and `only_b` (names), `changed` (each with
`name` and `changes`), `attributes` (changes of the attributes of the file) and `unchanged` (the
number of equal objects). Each change has `what`:
  shape, format, dtype, type   with `a` and `b`
  attribute                    with `key`, `a` and `b`
  component                    with `component` and `in`, the file that has it
  values                       with `different`, `count`, `first`, `nan`, `max_abs`, `max_rel` and
                               `max_ulp`
  unreadable                   with `in` and `error`

The change of --summary is the norm of the difference over the norm in A. Pairs with a NaN or an
infinity are left out of it, and counted if they differ. Keys: `a`, `b`, `objects` (each with
`name`, `count`, `different`, `not_finite`, `relative`, `cosine` and `max_abs`), `tree` (null
without --tree), `types` (each with `a`, `b` and the number of `objects` whose type changes), `changed` (shapes that differ, and objects that cannot be read), `only_a`,
`only_b` and `unchanged`.";

fn tolerance(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if value >= 0.0 {
        return Ok(value);
    }
    Err("expected a number of 0 or more".to_owned())
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let open = |path: &Path| {
        let file = arguments.input.open_input(path, Truncated::Opened)?.into_file();
        let some = arguments.input.select.expect_some([&file]);
        some.map(|()| file).map_err(|failure| failure.with_path(path))
    };
    let (a, b) = (open(&arguments.a)?, open(&arguments.b)?);
    arguments.input.expect_all_used()?;
    for (path, file) in [(&arguments.a, &a), (&arguments.b, &b)] {
        output.unfinished_edit(path, file);
        output.truncated(path, file);
        if arguments.only_values {
            arguments.input.warn_of_codes(path, file, output);
        }
    }
    let of_cut = of_findings(a.truncated().into_iter().chain(b.truncated()));
    let progress = Progress::of(|| a.decoded_len().checked_add(b.decoded_len()));
    let report = |bytes| progress.report(bytes);
    let mut options = DiffOptions::new()
        .values(arguments.values)
        .dense(arguments.dense)
        .only_values(arguments.only_values)
        // The only name in such a file is its own, and two files have two.
        .nameless(a.kind() == NPY && b.kind() == NPY)
        .threads(arguments.jobs.threads())
        .progress(zt::Progress::new(&report));
    if arguments.atol.is_some() || arguments.rtol.is_some() {
        options = options.tolerance(Tolerance {
            atol: arguments.atol.unwrap_or(0.0),
            rtol: arguments.rtol.unwrap_or(0.0),
        });
    }
    if arguments.summary {
        let found = zt::diff::summary(&a, &b, &options)?;
        drop(progress);
        return summary::print(arguments, [&a, &b], found, output).map(|exit| exit.max(of_cut));
    }
    let mut diff = zt::diff::diff(&a, &b, &options)?;
    drop(progress);
    let changes = diff.changed.iter_mut().flat_map(|it| &mut it.changes);
    let (unreadable, is_unlike) = judged(changes, arguments, output);
    let has_difference = is_unlike
        || !(diff.attributes.is_empty() && diff.only_a.is_empty() && diff.only_b.is_empty());
    let printed = if output.json {
        let same = diff.is_same() && of_cut == Exit::Ok;
        output.document(&document(arguments, &diff, same))
    } else {
        let names = [&arguments.a, &arguments.b].map(|path| text::path(path));
        let text = Text { names, first: &a };
        output.line(&text.of(&diff).join("\n"))
    };
    let mut changes = diff.changed.iter().flat_map(|object| &object.changes);
    let is_by_value = arguments.dense || arguments.only_values;
    if !is_by_value && changes.any(|change| matches!(change, Change::Format { .. })) {
        output.note("--dense compares values and ignores formats");
    }
    let mut changes = diff.changed.iter().flat_map(|object| &object.changes);
    if !arguments.only_values
        && changes.any(|change| matches!(change, Change::DType { .. } | Change::LogicalType { .. }))
    {
        output.note("--only-values compares values across types, and ignores attributes");
    }
    let exit = if has_difference { Exit::Failed } else { of_findings(&unreadable) };
    Failure::unless_closed(printed).map(|()| exit.max(of_cut))
}

/// Prints the errors of what cannot be read, with their paths. Returns them, and whether there is any other
/// change.
fn judged<'c>(
    changes: impl Iterator<Item = &'c mut Change>,
    arguments: &Arguments,
    output: &mut Output,
) -> (Vec<Error>, bool) {
    let (mut unreadable, mut is_unlike) = (Vec::new(), false);
    for change in changes {
        let Change::Unreadable { side, error } = change else {
            is_unlike = true;
            continue;
        };
        let path = match side {
            Side::A => &arguments.a,
            Side::B => &arguments.b,
        };
        *error = error.clone().with_path(path);
        output.error(error);
        unreadable.push(error.clone());
    }
    (unreadable, is_unlike)
}

fn document(arguments: &Arguments, diff: &Diff, same: bool) -> impl Serialize {
    let changed = diff.changed.iter().map(|object| {
        object! { name: &object.name, changes: bodies(&object.changes) }
    });
    object! {
        a: path_text(&arguments.a),
        b: path_text(&arguments.b),
        same,
        attributes: bodies(&diff.attributes),
        only_a: &diff.only_a,
        only_b: &diff.only_b,
        changed: changed.collect::<Vec<_>>(),
        unchanged: diff.same,
    }
}

fn bodies(changes: &[Change]) -> Vec<ChangeBody<'_>> {
    changes.iter().map(ChangeBody).collect()
}

struct ChangeBody<'a>(&'a Change);

impl Serialize for ChangeBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Change::Shape { a, b } => object! { what: "shape", a, b }.serialize(serializer),
            Change::Format { a, b } => object! { what: "format", a, b }.serialize(serializer),
            Change::Attribute { key, a, b } => {
                let (what, key) = ("attribute", Any(key));
                // The key is missing if the attribute is, because a value may be null.
                match (a.as_ref().map(Any), b.as_ref().map(Any)) {
                    (Some(a), Some(b)) => object! { what, key, a, b }.serialize(serializer),
                    (Some(a), None) => object! { what, key, a }.serialize(serializer),
                    (None, Some(b)) => object! { what, key, b }.serialize(serializer),
                    (None, None) => object! { what, key }.serialize(serializer),
                }
            }
            Change::Component { role, side } => {
                object! { what: "component", component: role, r#in: letter(*side) }
                    .serialize(serializer)
            }
            Change::DType { role, a, b } => {
                object! { what: "dtype", component: role, a: a.as_str(), b: b.as_str() }
                    .serialize(serializer)
            }
            Change::LogicalType { role, a, b } => {
                object! { what: "type", component: role, a, b }.serialize(serializer)
            }
            Change::Values { role, diff } => {
                let float = |most: Extreme<f64>| object! { value: Float(most.value), at: most.at };
                let steps = |most: Extreme<u64>| object! { value: most.value, at: most.at };
                object! {
                    what: "values",
                    component: role,
                    count: diff.count,
                    different: diff.different,
                    first: diff.first,
                    nan: diff.nan,
                    max_abs: diff.max_abs.map(float),
                    max_rel: diff.max_rel.map(float),
                    max_ulp: diff.max_ulp.map(steps),
                }
                .serialize(serializer)
            }
            Change::Unreadable { side, error } => {
                let error = ErrorBody::from(error);
                object! { what: "unreadable", r#in: letter(*side), error }.serialize(serializer)
            }
            _ => serializer.serialize_unit(), // The library of this version has no others.
        }
    }
}

const fn letter(side: Side) -> &'static str {
    match side {
        Side::A => "a",
        Side::B => "b",
    }
}

/// Lines for people.
struct Text<'f> {
    names: [String; 2],
    /// The first file, for the shapes of its objects.
    first: &'f File,
}

impl Text<'_> {
    fn of(&self, diff: &Diff) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for change in &diff.attributes {
            lines.extend(self.line(change, &[]).map(|what| format!("file: {what}")));
        }
        for ObjectDiff { name, changes, .. } in &diff.changed {
            lines.extend(self.of_object(name, changes));
        }
        lines.extend(self.only(&diff.only_a, &diff.only_b));
        lines.push(if diff.is_same() {
            no_difference(diff.same)
        } else {
            self.total(diff.changed.len(), &diff.only_a, &diff.only_b, diff.same)
        });
        lines
    }

    fn of_object(&self, name: &str, changes: &[Change]) -> Vec<String> {
        let tensor = self.first.tensor(name).ok();
        let shape = tensor.map_or(&[][..], |tensor| tensor.shape());
        let line = |change| {
            let place = match role(change) {
                Some(role) => format!("{}/{}", cell(name), cell(role)),
                None => cell(name).into_owned(),
            };
            Some(format!("{place}: {}", self.line(change, shape)?))
        };
        changes.iter().filter_map(line).collect()
    }

    fn only(&self, only_a: &[String], only_b: &[String]) -> Vec<String> {
        let [a, b] = &self.names;
        let all = only_a.iter().map(|name| (name, a));
        let all = all.chain(only_b.iter().map(|name| (name, b)));
        all.map(|(name, file)| format!("{}: only in {file}", cell(name))).collect()
    }

    fn total(&self, changed: usize, only_a: &[String], only_b: &[String], same: u64) -> String {
        let [a, b] = &self.names;
        let changed = count(changed as u64, "object", "objects");
        let (only_a, only_b) = (only_a.len(), only_b.len());
        format!("{changed} changed, {only_a} only in {a}, {only_b} only in {b}, {same} the same")
    }

    fn line(&self, change: &Change, dimensions: &[u64]) -> Option<String> {
        let [of_a, of_b] = &self.names;
        let name = |side: &Side| if *side == Side::A { of_a } else { of_b };
        Some(match change {
            Change::Shape { a, b } => format!("shape {} -> {}", shape(a), shape(b)),
            Change::Format { a, b } => format!("format {} -> {}", cell(a), cell(b)),
            Change::Attribute { key, a, b } => {
                let (key, a, b) = (json(Some(key)), json(a.as_ref()), json(b.as_ref()));
                format!("attribute {key} {a} -> {b}")
            }
            Change::Component { side, .. } => format!("only in {}", name(side)),
            Change::DType { a, b, .. } => format!("dtype {a} -> {b}"),
            Change::LogicalType { a, b, .. } => {
                let word = |name: &Option<String>| {
                    let word = name.as_deref().map_or("none".into(), cell);
                    word.into_owned()
                };
                format!("type {} -> {}", word(a), word(b))
            }
            // A component of another length has places of its own.
            Change::Values { diff, .. } => {
                let is_value = zt::formats::element_count(dimensions) == Some(diff.count);
                values(diff, is_value.then_some(dimensions))
            }
            Change::Unreadable { side, error } => {
                let message = error.message();
                let message = printable(&message);
                format!("cannot be read in {}: [{}] {message}", name(side), error.code())
            }
            _ => return None,
        })
    }
}

fn no_difference(objects: u64) -> String {
    let objects = count(objects, "object", "objects");
    format!("no differences in {objects}")
}

fn role(change: &Change) -> Option<&str> {
    match change {
        Change::Component { role, .. } => Some(role),
        Change::DType { role, .. }
        | Change::LogicalType { role, .. }
        | Change::Values { role, .. } => role.as_deref(),
        _ => None,
    }
}

/// An attribute as JSON; `none` if it is missing.
fn json(value: Option<&Value>) -> String {
    value.map_or("none".to_owned(), |value| Any(value).cell())
}

/// `3 of 4096 values differ, the first at [0, 5]; at most 0.5 at [1, 7], ...`.
fn values(diff: &ValueDiff, dimensions: Option<&[u64]>) -> String {
    let place = |at: u64| match dimensions.and_then(|dimensions| indices(at, dimensions)) {
        Some(indices) => format!("{indices:?}"),
        None => format!("[{at}]"),
    };
    let all = count(diff.count, "value differs", "values differ");
    let mut text = format!("{} of {all}", diff.different);
    if let Some(at) = diff.first {
        text.push_str(&format!(", the first at {}", place(at)));
    }
    let largest = |what: &str, most: Option<Extreme<f64>>| {
        most.map(|most| format!(", {what} {} at {}", digits(most.value), place(most.at)))
    };
    text.extend(largest("max abs", diff.max_abs));
    text.extend(largest("max rel", diff.max_rel));
    if let Some(most) = diff.max_ulp {
        text.push_str(&format!(", max ulp {} at {}", most.value, place(most.at)));
    }
    if diff.nan > 0 {
        text.push_str(&format!(", {} NaN on one side", diff.nan));
    }
    text
}

/// The indices of a row-major position.
fn indices(mut at: u64, dimensions: &[u64]) -> Option<Vec<u64>> {
    let mut indices = Vec::with_capacity(dimensions.len());
    for dimension in dimensions.iter().rev() {
        indices.push(at.checked_rem(*dimension)?);
        at /= dimension;
    }
    indices.reverse();
    (at == 0).then_some(indices)
}
