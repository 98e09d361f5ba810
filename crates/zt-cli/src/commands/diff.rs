//! `zt diff`: compare two files of any kind.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zt::diff::{Change, Diff, DiffOptions, Extreme, ObjectDiff, Side, Tolerance, ValueDiff};
use zt::{File, Value};
use zt_convert::NPY;

use crate::args::input::{InputArgs, decoded_len};
use crate::args::jobs::Jobs;
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{ErrorBody, path_text};
use crate::output::text::{cell, count, printable, shape};
use crate::output::value::{Any, Float};
use crate::progress::Progress;

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
  unreadable                   with `in` and `error`";

fn tolerance(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if value >= 0.0 {
        return Ok(value);
    }
    Err("expected a number of 0 or more".to_owned())
}

#[derive(Serialize)]
struct Document<'a> {
    a: String,
    b: String,
    same: bool,
    attributes: Vec<ChangeBody<'a>>,
    only_a: &'a [String],
    only_b: &'a [String],
    changed: Vec<ObjectBody<'a>>,
    unchanged: u64,
}

#[derive(Serialize)]
struct ObjectBody<'a> {
    name: &'a str,
    changes: Vec<ChangeBody<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "what", rename_all = "lowercase")]
enum ChangeBody<'a> {
    Shape {
        a: &'a [u64],
        b: &'a [u64],
    },
    Format {
        a: &'a str,
        b: &'a str,
    },
    Attribute {
        key: Any<'a>,
        /// The key is missing if the attribute is, because a value may be null.
        #[serde(skip_serializing_if = "Option::is_none")]
        a: Option<Any<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        b: Option<Any<'a>>,
    },
    Component {
        component: &'a str,
        r#in: &'static str,
    },
    DType {
        component: Option<&'a str>,
        a: &'a str,
        b: &'a str,
    },
    Type {
        component: Option<&'a str>,
        a: Option<&'a str>,
        b: Option<&'a str>,
    },
    Values {
        component: Option<&'a str>,
        count: u64,
        different: u64,
        first: Option<u64>,
        nan: u64,
        max_abs: Option<ExtremeBody<Float>>,
        max_rel: Option<ExtremeBody<Float>>,
        max_ulp: Option<ExtremeBody<u64>>,
    },
    Unreadable {
        r#in: &'static str,
        error: ErrorBody,
    },
}

#[derive(Serialize)]
struct ExtremeBody<T> {
    value: T,
    at: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let a = arguments.input.open(&arguments.a)?;
    let b = arguments.input.open(&arguments.b)?;
    output.unfinished_edit(&arguments.a, &a);
    output.unfinished_edit(&arguments.b, &b);
    let progress = Progress::new(Some(decoded_len(&a).saturating_add(decoded_len(&b))));
    let report = |bytes| progress.report(bytes);
    let mut options = DiffOptions::new()
        .values(arguments.values)
        .dense(arguments.dense)
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
    let mut diff = zt::diff::diff(&a, &b, &options)?;
    drop(progress);
    for change in diff.changed.iter_mut().flat_map(|it| &mut it.changes) {
        if let Change::Unreadable { side, error } = change {
            let path = match side {
                Side::A => &arguments.a,
                Side::B => &arguments.b,
            };
            *error = error.clone().with_path(path);
        }
    }

    let mut has_difference =
        !(diff.attributes.is_empty() && diff.only_a.is_empty() && diff.only_b.is_empty());
    let mut unreadable = Vec::new();
    for change in diff.changed.iter().flat_map(|object| &object.changes) {
        match change {
            Change::Unreadable { error, .. } => {
                output.error(error);
                unreadable.push(error);
            }
            _ => has_difference = true,
        }
    }
    let printed = if output.json {
        output.document(&document(arguments, &diff))
    } else {
        let names = [&arguments.a, &arguments.b].map(|path| short(path));
        let text = Text { names, first: &a };
        output.line(&text.of(&diff).join("\n"))
    };
    let mut changes = diff.changed.iter().flat_map(|object| &object.changes);
    if !arguments.dense && changes.any(|change| matches!(change, Change::Format { .. })) {
        output.hint("--dense compares values and ignores formats");
    }
    let exit = if has_difference {
        Exit::Failed
    } else {
        of_findings(unreadable)
    };
    Failure::unless_closed(printed).map(|()| exit)
}

fn document<'a>(arguments: &Arguments, diff: &'a Diff) -> Document<'a> {
    let bodies = |changes: &'a [Change]| changes.iter().filter_map(body).collect();
    let changed = diff.changed.iter().map(|object| ObjectBody {
        name: &object.name,
        changes: bodies(&object.changes),
    });
    Document {
        a: path_text(&arguments.a),
        b: path_text(&arguments.b),
        same: diff.is_same(),
        attributes: bodies(&diff.attributes),
        only_a: &diff.only_a,
        only_b: &diff.only_b,
        changed: changed.collect(),
        unchanged: diff.same,
    }
}

/// `None` for a change that this program does not know.
fn body(change: &Change) -> Option<ChangeBody<'_>> {
    Some(match change {
        Change::Shape { a, b } => ChangeBody::Shape { a, b },
        Change::Format { a, b } => ChangeBody::Format { a, b },
        Change::Attribute { key, a, b } => ChangeBody::Attribute {
            key: Any(key),
            a: a.as_ref().map(Any),
            b: b.as_ref().map(Any),
        },
        Change::Component { role, side } => ChangeBody::Component {
            component: role,
            r#in: letter(*side),
        },
        Change::DType { role, a, b } => ChangeBody::DType {
            component: role.as_deref(),
            a: a.as_str(),
            b: b.as_str(),
        },
        Change::LogicalType { role, a, b } => ChangeBody::Type {
            component: role.as_deref(),
            a: a.as_deref(),
            b: b.as_deref(),
        },
        Change::Values { role, diff } => {
            let float = |most: Extreme<f64>| ExtremeBody {
                value: Float(most.value),
                at: most.at,
            };
            ChangeBody::Values {
                component: role.as_deref(),
                count: diff.count,
                different: diff.different,
                first: diff.first,
                nan: diff.nan,
                max_abs: diff.max_abs.map(float),
                max_rel: diff.max_rel.map(float),
                max_ulp: diff
                    .max_ulp
                    .map(|Extreme { value, at }| ExtremeBody { value, at }),
            }
        }
        Change::Unreadable { side, error } => ChangeBody::Unreadable {
            r#in: letter(*side),
            error: ErrorBody::from(error),
        },
        _ => return None,
    })
}

const fn letter(side: Side) -> &'static str {
    match side {
        Side::A => "a",
        Side::B => "b",
    }
}

/// The path of a file, for a terminal.
fn short(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}

/// Lines for people.
struct Text<'f> {
    names: [String; 2],
    /// The first file, for the shapes of its objects.
    first: &'f File,
}

impl Text<'_> {
    fn of(&self, diff: &Diff) -> Vec<String> {
        let [a, b] = &self.names;
        let mut lines: Vec<String> = Vec::new();
        for change in &diff.attributes {
            lines.extend(self.line(change, &[]).map(|what| format!("file: {what}")));
        }
        for ObjectDiff { name, changes, .. } in &diff.changed {
            let tensor = self.first.tensor(name).ok();
            let shape = tensor.map_or(&[][..], |tensor| tensor.shape());
            for change in changes {
                let place = match role(change) {
                    Some(role) => format!("{}/{}", cell(name), cell(role)),
                    None => cell(name),
                };
                lines.extend(
                    self.line(change, shape)
                        .map(|what| format!("{place}: {what}")),
                );
            }
        }
        let only = |names: &[String], file: &str| -> Vec<String> {
            let line = |name: &String| format!("{}: only in {file}", cell(name));
            names.iter().map(line).collect()
        };
        lines.extend(only(&diff.only_a, a));
        lines.extend(only(&diff.only_b, b));
        let objects = |number: usize| count(number as u64, "object", "objects");
        lines.push(if diff.is_same() {
            format!(
                "no differences in {}",
                count(diff.same, "object", "objects")
            )
        } else {
            format!(
                "{} changed, {} only in {a}, {} only in {b}, {} the same",
                objects(diff.changed.len()),
                diff.only_a.len(),
                diff.only_b.len(),
                diff.same
            )
        });
        lines
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
                let word = |name: &Option<String>| name.as_deref().map_or("none".into(), cell);
                format!("type {} -> {}", word(a), word(b))
            }
            Change::Values { role: None, diff } => values(diff, Some(dimensions)),
            Change::Values { diff, .. } => values(diff, None),
            Change::Unreadable { side, error } => {
                let message = error.message();
                let message = printable(&message);
                format!(
                    "cannot be read in {}: [{}] {message}",
                    name(side),
                    error.code()
                )
            }
            _ => return None,
        })
    }
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
    let Some(value) = value else {
        return "none".to_owned();
    };
    let text = serde_json::to_string(&Any(value)); // Fails for no value.
    cell(&text.unwrap_or_default())
}

/// `3 of 4096 values differ, the first at [0, 5]; at most 0.5 at [1, 7], ...`.
fn values(diff: &ValueDiff, dimensions: Option<&[u64]>) -> String {
    let place = |at: u64| match dimensions.and_then(|dimensions| indices(at, dimensions)) {
        Some(indices) => format!("{indices:?}"),
        None => format!("[{at}]"),
    };
    let ValueDiff {
        count: all,
        different,
        ..
    } = diff;
    let mut text = format!(
        "{different} of {}",
        count(*all, "value differs", "values differ")
    );
    if let Some(at) = diff.first {
        text.push_str(&format!(", the first at {}", place(at)));
    }
    let largest = |what: &str, most: Option<Extreme<f64>>| {
        most.map(|most| format!(", {what} {:e} at {}", most.value, place(most.at)))
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
