//! `zt rm`: objects out of a file.

use std::collections::{BTreeSet, HashSet};

use clap::Args;
use serde::Serialize;
use zt::{Entry, File, Span, WriteOptions};

use crate::args::edit::{EditArgs, told};
use crate::args::glob;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::size::human;
use crate::output::text::count;
use crate::progress::Progress;

/// Remove objects from a .zt file
///
/// Their bytes stay in FILE, belonging to nobody, so that this is quick and those who have it open
/// keep what they had: `zt compact` gives the space back. Objects that cannot be read can be
/// removed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    editing: EditArgs,
    /// The objects
    #[arg(value_name = "NAME", required_unless_present = "glob")]
    names: Vec<String>,
    /// All objects whose name is of this form, as in `zt ls`; may be given more than once
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    glob: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  zt rm model.zt lm_head.weight
  zt rm model.zt --glob 'optimizer.*' --dry-run
  zt rm model.zt --glob 'optimizer.*' && zt compact model.zt

With --json the keys are `file`, `dry_run`, `removed` (the names), `unused_bytes` that belong to
nobody now, and `file_size`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    removed: &'a BTreeSet<String>,
    unused_bytes: u64,
    file_size: u64,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let editing = &arguments.editing;
    // From here on Ctrl-C is heard when all is done, which is at once.
    let _progress = Progress::new(Some(0));
    let mut edit = editing.begin(WriteOptions::new())?;
    let removed = wanted(arguments, edit.editor.before())?;
    let of_path = |error: zt::Error| error.with_path(&editing.file);
    for name in &removed {
        edit.editor.remove(name).map_err(of_path)?;
    }
    let unused_bytes = bytes_of(edit.editor.before(), &removed);
    let file_size = edit.commit()?;
    if output.json {
        output.document(&Document {
            file: editing.shown(),
            dry_run: editing.dry_run,
            removed: &removed,
            unused_bytes,
            file_size,
        })?;
    } else {
        let objects = count(removed.len() as u64, "object", "objects");
        let unused = human(unused_bytes);
        let what = format!("{objects} removed, {unused} unused until it is compacted");
        output.line(&told(editing, &what))?;
    }
    Ok(Exit::Ok)
}

/// Whatever was named, each once.
fn wanted(arguments: &Arguments, file: &File) -> Result<BTreeSet<String>, Failure> {
    let mut wanted: BTreeSet<String> = arguments.names.iter().cloned().collect();
    for pattern in &arguments.glob {
        let before = wanted.len();
        let mut matched = file.names().filter(|name| glob::matches(pattern, name));
        wanted.extend(matched.by_ref().map(str::to_owned));
        if wanted.len() == before && !file.names().any(|name| glob::matches(pattern, name)) {
            return Err(Failure::Usage {
                code: "not-found",
                message: format!("there is no object of the form \"{pattern}\""),
            });
        }
    }
    Ok(wanted)
}

/// Stored bytes that only objects of these names have.
fn bytes_of(file: &File, names: &BTreeSet<String>) -> u64 {
    let spans = |is_wanted: bool| {
        let entries = file.entries().into_iter();
        let entries = entries.filter(move |entry| names.contains(entry.name()) == is_wanted);
        entries.flat_map(|entry| spans_of(&entry)).collect()
    };
    let (removed, kept): (HashSet<Span>, HashSet<Span>) = (spans(true), spans(false));
    let unused = removed.difference(&kept).map(|span| span.byte_len());
    unused.fold(0, u64::saturating_add)
}

fn spans_of(entry: &Entry<'_>) -> Vec<Span> {
    let object = entry.object();
    let components = object.iter().flat_map(|object| &object.components);
    components
        .map(|(_, component)| component.blob.span)
        .collect()
}
