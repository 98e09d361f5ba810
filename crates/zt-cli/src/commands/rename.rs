//! `zt rename`: an object by another name.

use clap::Args;
use serde::Serialize;
use zt::WriteOptions;

use crate::args::edit::{EditArgs, told};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::text::cell;
use crate::progress::Progress;

/// Give an object of a .zt file another name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    editing: EditArgs,
    /// The object
    old: String,
    /// What it is to be called, as nothing else is
    new: String,
}

const EXAMPLES: &str = "\
Examples:
  zt rename model.zt transformer.wte.weight embed.weight

With --json the keys are `file`, `dry_run`, `old`, `new` and `file_size`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    old: &'a str,
    new: &'a str,
    file_size: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { editing, old, new } = arguments;
    // From here on Ctrl-C is heard when all is done, which is at once.
    let _progress = Progress::new(Some(0));
    let mut edit = editing.begin(WriteOptions::new())?;
    let renamed = edit.editor.rename(old, new);
    renamed.map_err(|error| error.with_path(&editing.file))?;
    let file_size = edit.commit()?;
    if output.json {
        output.document(&Document {
            file: editing.shown(),
            dry_run: editing.dry_run,
            old,
            new,
            file_size,
        })?;
    } else {
        let what = format!("{} is called {} now", cell(old), cell(new));
        output.line(&told(editing, &what))?;
    }
    Ok(Exit::Ok)
}
