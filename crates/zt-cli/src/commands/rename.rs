//! `zt rename`: rename an object of a `.zt` file.

use clap::Args;
use serde::Serialize;
use zt::WriteOptions;

use crate::args::edit::EditArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::text::cell;
use crate::progress::Progress;

/// Rename an object of a .zt file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
    /// Name of the object
    old: String,
    /// New name, which no other object may have
    new: String,
}

const EXAMPLES: &str = "\
Examples:
  zt rename model.zt transformer.wte.weight embed.weight

Keys of --json: `file`, `dry_run`, `old`, `new`, `file_size`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    old: &'a str,
    new: &'a str,
    file_size: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { target, old, new } = arguments;
    // From here on, Ctrl-C does not end the process in the middle of this short edit.
    let _progress = Progress::new(Some(0));
    let mut edit = target.begin(WriteOptions::new())?;
    let renamed = edit.editor.rename(old, new);
    renamed.map_err(|error| error.with_path(&target.file))?;
    let file_size = edit.commit()?;
    if output.json {
        output.document(&Document {
            file: target.shown(),
            dry_run: target.dry_run,
            old,
            new,
            file_size,
        })?;
    } else {
        let what = format!("{} renamed to {}", cell(old), cell(new));
        output.line(&target.line(&what))?;
    }
    Ok(Exit::Ok)
}
