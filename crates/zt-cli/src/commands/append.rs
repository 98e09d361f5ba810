//! `zt append`: add the objects of other files to a `.zt` file.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use zt_convert::{Summary, ZT, is_same_file};

use crate::args::convert::{ConvertArgs, exit_without};
use crate::args::edit::EditArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{object, paths, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{count, left_out, shared};

/// Add the objects of other files to a .zt file
///
/// Readers see the old FILE until the edit commits, and the new one after it. A program that maps
/// FILE, as the official one does, must not open it at the moment of the commit. After Ctrl-C, or on
/// a full disk, FILE is unchanged. After a kill or a loss of power, FILE opens as the old or the new
/// one, perhaps with a warning. The next edit removes the incomplete end. Attributes that FILE lacks
/// are added.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
    /// Files of any kind; no two objects may have one name, also not with FILE
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    convert: ConvertArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt append model.zt adapter.safetensors
  zt append model.zt layers.40.npz layers.41.npz --zstd
  zt append model.zt adapter.safetensors --dry-run

Keys of --json: `file`, `dry_run`, `inputs`, `added` (names), `objects` and `bytes` (added),
`shared_bytes` (not stored again), `file_size`, `left_out` and `damaged` (names), `warnings`.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let convert = &arguments.convert;
    let mut options = convert.options(ZT)?;
    let (inputs, total) = convert.open_all(&arguments.inputs, output)?;
    // The library checks this too, but it does not know the file in a dry run.
    let mut read = inputs.iter().flat_map(zt_convert::Input::paths);
    if read.any(|input| is_same_file(input, &target.file)) {
        return Err(Failure::overwrite(
            &target.file,
            "is one of the inputs and cannot be added to itself",
        ));
    }
    let progress = Progress::new(Some(total));
    let report = |bytes| progress.report(bytes);
    let mut edit = target.begin(options.write.clone())?;
    options.progress = Some(zt::Progress::new(&report));
    let appended = zt_convert::append(&inputs, &mut edit.editor, &options);
    let summary = appended
        .map_err(|error| Failure::from(error.with_path(&target.file)))
        .inspect_err(|failure| convert.hint(failure, &inputs, true, output))?;
    let file_size = edit.commit()?;
    drop(progress);
    output.warnings(&summary.warnings);
    if output.json {
        let left_out: HashSet<&String> = summary.left_out.iter().collect();
        let names = inputs.iter().flat_map(|input| input.file().entries());
        let names = names.map(|entry| entry.name().to_owned());
        let added: Vec<String> = names.filter(|name| !left_out.contains(name)).collect();
        output.document(&object! {
            file: target.shown(),
            dry_run: target.dry_run,
            inputs: paths(&arguments.inputs),
            added,
            objects: summary.objects,
            bytes: summary.bytes,
            shared_bytes: summary.shared,
            file_size,
            left_out: &summary.left_out,
            damaged: &summary.damaged,
            warnings: warnings(&summary.warnings),
        })?;
    } else {
        output.line(&target.line(&summary_line(&summary, file_size)))?;
    }
    Ok(exit_without(&summary.damaged, &inputs))
}

fn summary_line(summary: &Summary, file_size: u64) -> String {
    format!(
        "{} added, {}{}; the file has {}{}",
        count(summary.objects, "object", "objects"),
        human(summary.bytes),
        shared(summary.shared),
        human(file_size),
        left_out(&summary.left_out)
    )
}
