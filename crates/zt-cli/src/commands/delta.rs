//! `zt delta`: write how one file differs from another.

use std::path::PathBuf;

use clap::Args;
use zt_model::delta_to_path;

use crate::args::input::{InputArgs, Truncated};
use crate::failure::{Exit, Failure};
use crate::files::remote::expect_local;
use crate::output::Output;
use crate::output::json::{object, path_text};
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text;

/// Write how a file differs from another, to make it again with `zt patch`
///
/// A delta is a .zt file with the objects that differ, each as its changes or whole, whichever takes
/// fewer bytes. It records the content identity of both files, which `zt hash` prints. The files may be
/// of any kind, and of different kinds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file that the receiver has
    base: PathBuf,
    /// The file that the receiver wants
    new: PathBuf,
    /// The delta to write
    #[arg(value_name = "DELTA", required_unless_present = "out")]
    delta: Option<PathBuf>,
    /// The delta to write, in the place of the third file
    #[arg(short, long, alias = "output", value_name = "DELTA", conflicts_with = "delta")]
    out: Option<PathBuf>,
    /// Replace DELTA if it exists; BASE and NEW are never replaced
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    input: InputArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt delta step-100.safetensors step-110.safetensors -o step-110.delta.zt
  zt patch step-100.safetensors step-110.delta.zt -o step-110.safetensors
  zt ls step-110.delta.zt
  zt delta base.zt second.zt --base base.zt --base first.zt -o both.zt    join two deltas";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { base: base_path, new: new_path, delta, out, force, input } = arguments;
    let Some(out) = out.as_ref().or(delta.as_ref()) else {
        return Err(Failure::misuse("expected DELTA"));
    };
    if !input.select.is_empty() {
        return Err(Failure::misuse(
            "a delta is one of whole files: `zt convert` writes a file with some of the objects",
        ));
    }
    expect_local(out, "DELTA must be a file of this machine")?;
    let base = input.open_input(base_path, Truncated::Refused)?;
    let new = input.open_input(new_path, Truncated::Refused)?;
    input.expect_all_used()?;
    let [a, b] = [&base, &new].map(|input| input.file().decoded_len());
    let progress = Progress::new(a.checked_add(b));
    let report = |bytes| progress.report(bytes);
    let reported = Some(zt::Progress::new(&report));
    let made = delta_to_path(&base, &new, out, *force, reported);
    drop(progress);
    let changes = made.inspect_err(|error| {
        if error.code() == "overwrite" && !force {
            output.hint("--force replaces it");
        }
    })?;
    let file_size = std::fs::metadata(out).map_or(0, |metadata| metadata.len());
    if output.json {
        output.document(&object! {
            base: path_text(base_path),
            new: path_text(new_path),
            output: path_text(out),
            same: changes.same,
            changed: changes.changed,
            whole: changes.whole,
            removed: changes.removed,
            bytes: changes.bytes,
            file_size: file_size,
        })?;
    } else {
        let (bytes, stored) = (human(changes.bytes), human(file_size));
        output.line(&format!(
            "{}: {} same, {} changed, {} whole, {} removed; {bytes} of values in {stored}",
            text::path(out),
            changes.same,
            changes.changed,
            changes.whole,
            changes.removed,
        ))?;
    }
    Ok(Exit::Ok)
}
