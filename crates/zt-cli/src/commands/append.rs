//! `zt append`: add the objects of other files to a `.zt` file.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use clap::Args;
use zt_convert::{Duplicate, Summary, ZT, is_same_file};

use crate::args::convert::{ConvertArgs, DuplicateArgs, exit_without};
use crate::args::edit::EditArgs;
use crate::args::input::byte_len;
use crate::failure::{Exit, Failure};
use crate::files::kinds;
use crate::output::Output;
use crate::output::absent;
use crate::output::json::{casts, object, paths, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::{count, left_out, shared};

/// Add the objects of other files to a .zt file
///
/// Readers see the old FILE until the edit commits, and the new one after it. A program that maps
/// FILE, such as the package ztensor, must not open it at the moment of the commit. After Ctrl-C, or
/// on a full disk, FILE is unchanged. After a kill or a loss of power, FILE opens as the old or the new
/// one, perhaps with a warning. The next edit removes the incomplete end. Attributes that FILE lacks
/// are added. A name that FILE has already is a duplicate, too.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
    /// Files of any kind
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    duplicates: DuplicateArgs,
    #[command(flatten)]
    convert: ConvertArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt append model.zt adapter.safetensors
  zt append model.zt layers.40.npz layers.41.npz --zstd
  zt append model.zt adapter.safetensors --dry-run

Keys of --json: `file`, `dry_run`, `inputs`, `added` (names), `objects` and `bytes` (added),
`shared_bytes` (not stored again), `file_size`, `left_out` and `damaged` (names), `excluded` and
`duplicates` (each with `input` and `names`), `casts`, `warnings`.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let convert = &arguments.convert;
    let mut options = convert.options(ZT)?;
    options.on_duplicate = arguments.duplicates.policy();
    let opened = convert.open_all(&arguments.inputs, output)?;
    let inputs = &opened.inputs;
    convert.choose_types(inputs, &mut options)?;
    // The library checks this too, but it does not know the file in a dry run.
    let mut read = inputs.iter().flat_map(zt_convert::Input::paths);
    if read.any(|input| is_same_file(input, &target.file)) {
        return Err(Failure::overwrite(
            &target.file,
            "is one of the inputs and cannot be added to itself",
        ));
    }
    let progress = Progress::new(byte_len(&opened.inputs));
    let report = |bytes| progress.report(bytes);
    let mut edit = target.begin(options.write.clone())?;
    target.expect_no_shard()?;
    options.progress = Some(zt::Progress::new(&report));
    let appended = kinds::table().append(inputs, &mut edit.editor, &options);
    let summary = appended
        .map_err(|error| Failure::from(error.with_path(&target.file)))
        .inspect_err(|failure| convert.hint(failure, inputs, true, output))?;
    let file_size = edit.commit()?;
    drop(progress);
    output.warnings(&summary.warnings);
    let duplicates = absent::duplicates(&summary.duplicates);
    if output.json {
        let left_out: HashSet<&str> = summary.left_out.iter().map(String::as_str).collect();
        // A file that was given twice has two objects of one name and one path.
        let mut replaced: HashMap<(Option<&Path>, &str), usize> = HashMap::new();
        for Duplicate { name, path, .. } in &summary.duplicates {
            *replaced.entry((path.as_deref(), name)).or_default() += 1;
        }
        let mut added = Vec::new();
        for input in inputs {
            let entries = input.file().entries().into_iter();
            for name in entries.map(|entry| entry.name()) {
                match replaced.get_mut(&(input.path(), name)) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ if left_out.contains(name) => {}
                    _ => added.push(name),
                }
            }
        }
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
            excluded: &opened.excluded,
            duplicates: &duplicates,
            casts: casts(&summary.casts),
            warnings: warnings(&summary.warnings),
        })?;
    } else {
        let excluded = absent::text("excluded", &opened.excluded);
        let duplicates = absent::text("duplicates left out", &duplicates);
        let line = summary_line(&summary, file_size);
        output.casts(&summary.casts);
        output.line(&target.line(&format!("{line}{excluded}{duplicates}")))?;
    }
    Ok(exit_without(&summary.damaged, inputs))
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
