//! `zt compact`: remove unused bytes from a `.zt` file.

use clap::Args;
use zt::Warning;
use zt::foreign::parted_links;

use crate::args::edit::EditArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::{object, warnings};
use crate::output::progress::Progress;
use crate::output::size::human;

/// Remove the unused bytes that edits leave in a .zt file
///
/// Stored components are copied unchanged, and their digests are checked. The new file replaces the
/// old one when it is complete, so the disk needs room for both. A program that has the old file
/// open keeps it, and so do other names of the file (hard links), with a warning.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt compact model.zt --dry-run    print how much it would save
  zt compact model.zt

Keys of --json: `file`, `dry_run`, `old_file_size`, `file_size`, `warnings`.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    target.expect_zt()?;
    let planned = zt::compacted_len(&target.file)?;
    let parted: Vec<Warning> = parted_links(&target.file).into_iter().collect();
    let (old_len, new_len) = if target.dry_run {
        planned
    } else {
        let progress = Progress::new(Some(planned.1));
        let report = |bytes| progress.report(bytes);
        let compact = || zt::compact(&target.file, Some(zt::Progress::new(&report)));
        target.wait.retry(compact)?
    };
    output.warnings(&parted);
    let document = object! {
        file: target.shown(),
        dry_run: target.dry_run,
        old_file_size: old_len,
        file_size: new_len,
        warnings: warnings(&parted),
    };
    let what = match old_len.checked_sub(new_len) {
        Some(0) | None => format!("no unused bytes, {}", human(new_len)),
        Some(saved) => format!("{} removed, {} left", human(saved), human(new_len)),
    };
    target.answer(&document, &what, output)
}
