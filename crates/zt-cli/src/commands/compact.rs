//! `zt compact`: a file without the bytes that belong to nobody.

use clap::Args;
use serde::Serialize;

use crate::args::edit::{EditArgs, told};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::size::human;
use crate::progress::Progress;

/// Write a .zt file anew without what edits have left in it
///
/// Components are moved as they are stored, and their digests are checked on the way. The new file
/// takes the place of the old one when it is whole: until then there is room for both on the disk.
/// Those who have the old one open keep it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    editing: EditArgs,
}

const EXAMPLES: &str = "\
Examples:
  zt compact model.zt --dry-run    how much it would save
  zt compact model.zt

With --json the keys are `file`, `dry_run`, `old_file_size` and `file_size`.";

#[derive(Serialize)]
struct Document {
    file: String,
    dry_run: bool,
    old_file_size: u64,
    file_size: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let editing = &arguments.editing;
    editing.expect_zt()?;
    let planned = zt::compacted_len(&editing.file)?;
    let (old_len, new_len) = if editing.dry_run {
        planned
    } else {
        let progress = Progress::new(Some(planned.1));
        zt::compact(&editing.file, Some(&|bytes| progress.report(bytes)))?
    };
    if output.json {
        output.document(&Document {
            file: editing.shown(),
            dry_run: editing.dry_run,
            old_file_size: old_len,
            file_size: new_len,
        })?;
    } else {
        let what = match old_len.checked_sub(new_len) {
            Some(0) | None => format!("{}, nothing to give back", human(new_len)),
            Some(saved) => format!("{} given back, {} left", human(saved), human(new_len)),
        };
        output.line(&told(editing, &what))?;
    }
    Ok(Exit::Ok)
}
