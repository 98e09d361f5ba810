//! `zt stats`: statistics of the values of every object.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;
use zt::manifest::Text;
use zt::stats::{Bound, ObjectStats, Stats, StatsOptions};
use zt_convert::Input;
use zt_report::{Odd, odd};

use crate::args::files::FilesArgs;
use crate::args::input::{InputArgs, Truncated};
use crate::args::jobs::Jobs;
use crate::commands::each::{Answer, each};
use crate::failure::{Exit, Failure, of_findings};
use crate::output::Output;
use crate::output::json::{FaultBody, object, path_text};
use crate::output::progress::Progress;
use crate::output::stats::Figures;
use crate::output::table::Table;
use crate::output::text::{cell, count, digits, shape};
use crate::output::tree::{Branch, Order, Summed, tree};

/// Print statistics of the values of every object, and their problems
///
/// Sparse objects count with their zeros, quantized ones by their decoded values, complex numbers by their
/// absolute values. Minimum, maximum, mean and deviation are of the finite values.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    files: FilesArgs,
    /// Print only objects with problems, of these kinds if some are named, and exit with 1 if there are any
    #[arg(
        long,
        value_enum,
        value_name = "KINDS",
        num_args = 0..,
        require_equals = true,
        value_delimiter = ','
    )]
    problems: Option<Vec<Problem>>,
    /// Order of the objects [default: offset]; by a number, the largest first
    #[arg(long, value_enum)]
    sort: Option<Sort>,
    /// Print only the first N objects
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print statistics by the parts of names, which dots and slashes separate
    #[arg(long, conflicts_with_all = ["problems", "sort", "top"])]
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
  zt stats model.safetensors
  zt stats --problems checkpoint.pt && echo sound
  zt stats --problems=nan,inf model.safetensors
  zt stats --sort std --top 10 model.gguf
  zt stats --tree --depth 3 model.zt

Problems are NaN and infinities, values that are all equal, and rows or columns of zeros in a matrix. An
object is also an outlier if its deviation is more than 10 times, or less than a tenth, of the median
of similar tensors, or if all others have one type and it has another. Similar are at least four of
one shape whose names differ only in numbers. In states of optimizers only NaN and infinities are
problems. Norms of ones and counters are none.

For several files, --json prints a list of documents, and the exit code is the highest one.";

/// A kind of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Problem {
    /// NaN
    Nan,
    /// Infinities
    Inf,
    /// Rows, columns or tensors of zeros
    Dead,
    /// Values that are all equal, and not 0
    Constant,
    /// A deviation far from that of similar tensors
    Outlier,
    /// Another type than similar tensors have
    Type,
}

impl Problem {
    fn of(odd: Odd) -> Option<Self> {
        Some(match odd {
            Odd::Nan(_) => Problem::Nan,
            Odd::Infinities(_) => Problem::Inf,
            Odd::ZeroRows(_) | Odd::ZeroColumns(_) | Odd::AllZero => Problem::Dead,
            Odd::Constant => Problem::Constant,
            Odd::Deviation(_) => Problem::Outlier,
            Odd::Type => Problem::Type,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// By name
    Name,
    /// The minimum
    Min,
    /// The maximum
    Max,
    /// The mean
    Mean,
    /// The standard deviation
    Std,
    /// The share of zeros
    Zeros,
    /// The number of NaN
    Nan,
    /// The number of infinities
    Inf,
}

/// An object with its problems.
#[derive(Serialize)]
struct Row {
    name: String,
    r#type: Option<Text>,
    shape: Vec<u64>,
    #[serde(flatten)]
    figures: Figures,
    constant: bool,
    dead_rows: u64,
    dead_columns: u64,
    problems: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { files, input, .. } = arguments;
    each(files, input, Truncated::Opened, output, |path, opened, answer| {
        print(path, &opened?, arguments, answer)
    })
}

fn print(
    path: &Path,
    input: &Input,
    arguments: &Arguments,
    answer: &mut Answer<'_>,
) -> Result<Exit, Failure> {
    let file = input.file();
    answer.output.warnings_about(path, &file.warnings());
    arguments.input.warn_of_codes(path, file, answer.output);
    let progress = Progress::of(|| Some(file.decoded_len()));
    let report = |bytes| progress.report(bytes);
    let options =
        StatsOptions::new().threads(arguments.jobs.threads()).progress(zt::Progress::new(&report));
    let found = zt::stats::stats(file, &options);
    drop(progress);
    let found = found.map_err(|error| input.blame(error))?;
    let errors = found.iter().filter_map(|found| found.as_ref().err());
    let errors: Vec<zt::Error> = errors.map(|error| input.blame(error.clone())).collect();
    answer.output.errors(&errors);
    answer.output.delta(path, file);
    let objects = found.len() as u64;
    let wanted = arguments.problems.as_deref().unwrap_or_default();
    let mut rows = rows(found.into_iter().flatten().collect(), wanted);
    let odd = rows.iter().filter(|row| !row.problems.is_empty()).count();
    let mut exit = of_findings(errors.iter().chain(file.truncated()));
    if arguments.problems.is_some() {
        rows.retain(|row| !row.problems.is_empty());
        exit = exit.max(if odd > 0 { Exit::Failed } else { Exit::Ok });
    }
    if let Some(sort) = arguments.sort {
        sort.apply(&mut rows);
    }
    rows.truncate(arguments.top.unwrap_or(usize::MAX));
    let branches = arguments.tree.then(|| branches(&rows, arguments));
    if answer.output.json {
        let faults: Vec<_> = errors
            .iter()
            .map(|error| object! { name: error.object(), error: FaultBody::from(error) })
            .collect();
        answer.document(&object! {
            file: path_text(path),
            objects: &rows,
            tree: branches,
            errors: faults,
        })?;
        return Ok(exit);
    }
    let colored = answer.output.colored();
    let table = match &branches {
        Some(branches) => tree_table(branches),
        None => table(&rows),
    };
    if arguments.problems.is_none() || odd > 0 {
        answer.text(&table.render(colored))?;
    }
    let of = count(objects, "object", "objects");
    let unread = match errors.len() {
        0 => String::new(),
        unread => format!(", {unread} not read"),
    };
    answer.text(&format!("{of}, {odd} with problems{unread}"))?;
    Ok(exit)
}

/// The objects with their problems of the kinds that are `wanted`; of all kinds, if none is.
fn rows(found: Vec<ObjectStats>, wanted: &[Problem]) -> Vec<Row> {
    let odd = odd(&found.iter().collect::<Vec<_>>());
    let is_wanted = |odd: &&Odd| {
        wanted.is_empty() || Problem::of(**odd).is_some_and(|kind| wanted.contains(&kind))
    };
    let rows = found.into_iter().zip(odd).map(|(stats, odd)| Row {
        name: stats.name,
        r#type: stats.value_type,
        shape: stats.shape,
        constant: stats.values.is_constant(),
        dead_rows: stats.dead_rows,
        dead_columns: stats.dead_columns,
        problems: odd.iter().filter(is_wanted).map(ToString::to_string).collect(),
        figures: Figures(stats.values),
    });
    rows.collect()
}

impl Sort {
    fn apply(self, rows: &mut [Row]) {
        if self == Sort::Name {
            return rows.sort_by(|a, b| a.name.cmp(&b.name));
        }
        // What has no such number comes last.
        let key = |row: &Row| {
            let stats = &row.figures.0;
            let finite = stats.finite;
            let number = match self {
                Sort::Name => None,
                Sort::Min => finite.map(|finite| finite.min.as_f64()),
                Sort::Max => finite.map(|finite| finite.max.as_f64()),
                Sort::Mean => finite.map(|finite| finite.mean),
                Sort::Std => finite.map(|finite| finite.std),
                Sort::Zeros => Some(share_of_zeros(stats)),
                Sort::Nan => Some(stats.nan as f64),
                Sort::Inf => Some(stats.inf as f64),
            };
            number.unwrap_or(f64::NEG_INFINITY)
        };
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    }
}

fn share_of_zeros(stats: &Stats) -> f64 {
    stats.zeros as f64 / stats.count.max(1) as f64
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Integer(value) => value.to_string(),
        Bound::Real(value) => digits(value),
    }
}

/// Minimum, maximum, mean, deviation, and the share of zeros.
fn cells(stats: &Stats) -> [String; 5] {
    let none = || "-".to_owned();
    let zeros = match stats.zeros {
        0 => none(),
        _ => format!("{:.1} %", 100.0 * share_of_zeros(stats)),
    };
    match stats.finite {
        Some(finite) => {
            [bound(finite.min), bound(finite.max), digits(finite.mean), digits(finite.std), zeros]
        }
        None => [none(), none(), none(), none(), zeros],
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "NAME", "TYPE", "SHAPE", ">MIN", ">MAX", ">MEAN", ">STD", ">ZEROS", "PROBLEMS",
    ]);
    for row in rows {
        let value_type = row.r#type.as_deref().map_or("?".into(), cell);
        let head = [cell(&row.name).into_owned(), value_type.into_owned(), shape(&row.shape)];
        let odd = [row.problems.join(", ")];
        let cells = head.into_iter().chain(cells(&row.figures.0)).chain(odd);
        table.marked_row(!row.problems.is_empty(), cells);
    }
    table
}

impl Summed for Figures {
    fn add(&mut self, other: &Self) {
        self.0.append(&other.0);
    }

    fn size(&self) -> u64 {
        self.0.count
    }
}

fn branches<'r>(rows: &'r [Row], arguments: &Arguments) -> Vec<Branch<'r, Figures>> {
    let named: Vec<_> = rows.iter().map(|row| (&*row.name, row.figures.clone())).collect();
    tree(&named, Order::Name, arguments.depth.map_or(usize::MAX, usize::from))
}

fn tree_table(tree: &[Branch<'_, Figures>]) -> Table {
    let mut table =
        Table::new(&["NAME", ">VALUES", ">MIN", ">MAX", ">MEAN", ">STD", ">ZEROS", ">NAN", ">INF"]);
    for branch in tree {
        let stats = &branch.sums.0;
        let head = [branch.label(), stats.count.to_string()];
        let tail = [stats.nan.to_string(), stats.inf.to_string()];
        table.row(head.into_iter().chain(cells(stats)).chain(tail));
    }
    table
}
