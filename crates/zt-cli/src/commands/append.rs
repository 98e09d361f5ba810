//! `zt append`: objects of other files into one that is there.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use zt_convert::{Summary, ZT, is_same_file};

use crate::args::convert::ConvertArgs;
use crate::args::edit::{EditArgs, told};
use crate::args::write::WriteArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{WarningBody, paths, warnings};
use crate::output::size::human;
use crate::output::text::{count, left_out, shared};
use crate::progress::Progress;

/// Add the objects of other files to a .zt file
///
/// Whoever opens FILE meanwhile, with any program, finds it as it was; then with all that is added.
/// (A program that maps FILE, as the official one does, must not be opening it at that moment.)
/// So it is left if this is interrupted or the disk is full. A kill, too, loses nothing that was
/// there: what it may leave behind the end the next edit takes away, or `zt repair` if the file no
/// longer opens. What is in FILE stays where it is. Attributes that FILE lacks are added.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    editing: EditArgs,
    /// The files to read, of any kind; no name may occur twice, or be in FILE
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    storing: WriteArgs,
    #[command(flatten)]
    taking: ConvertArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt append model.zt adapter.safetensors
  zt append model.zt layers.40.npz layers.41.npz --zstd
  zt append model.zt adapter.safetensors --dry-run

With --json the keys are `file`, `dry_run`, `inputs`, `added` (the names), `objects` and `bytes` of
values that were added, `shared_bytes` of them that were not stored again, `file_size`, `left_out`
(the names) and `warnings`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    inputs: Vec<String>,
    added: Vec<String>,
    objects: u64,
    bytes: u64,
    shared_bytes: u64,
    file_size: u64,
    left_out: &'a [String],
    warnings: Vec<WarningBody<'a>>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let editing = &arguments.editing;
    let write = arguments.storing.options()?;
    let (inputs, total) = arguments.taking.open(&arguments.inputs)?;
    // A dry run is not told by the library, which does not know the file then.
    let mut read = inputs.iter().flat_map(zt_convert::Input::paths);
    if read.any(|input| is_same_file(input, &editing.file)) {
        return Err(Failure::overwrite(
            &editing.file,
            "is one of the inputs, and cannot be added to itself",
        ));
    }
    let progress = Progress::new(Some(total));
    let report = |bytes| progress.report(bytes);
    let mut edit = editing.begin(write)?;
    let mut options = arguments.taking.options(ZT);
    options.deduplicate = !arguments.storing.no_dedup;
    options.progress = Some(&report);
    let appended = zt_convert::append(&inputs, &mut edit.editor, &options);
    let summary = appended
        .map_err(|error| Failure::from(error.with_path(&editing.file)))
        .inspect_err(|failure| arguments.taking.hint(failure, &inputs, true, output))?;
    let file_size = edit.commit()?;
    drop(progress);
    output.warnings(&summary.warnings);
    if output.json {
        let left_out: HashSet<&String> = summary.left_out.iter().collect();
        let names = inputs.iter().flat_map(|input| input.file().entries());
        let names = names.map(|entry| entry.name().to_owned());
        let added: Vec<String> = names.filter(|name| !left_out.contains(name)).collect();
        output.document(&Document {
            file: editing.shown(),
            dry_run: editing.dry_run,
            inputs: paths(&arguments.inputs),
            added,
            objects: summary.objects,
            bytes: summary.bytes,
            shared_bytes: summary.shared,
            file_size,
            left_out: &summary.left_out,
            warnings: warnings(&summary.warnings),
        })?;
    } else {
        output.line(&told(editing, &what(&summary, file_size)))?;
    }
    Ok(Exit::Ok)
}

fn what(summary: &Summary, file_size: u64) -> String {
    format!(
        "{} added, {}{}; {} in all{}",
        count(summary.objects, "object", "objects"),
        human(summary.bytes),
        shared(summary.shared),
        human(file_size),
        left_out(&summary.left_out)
    )
}
