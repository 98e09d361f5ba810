//! `zt rm`: remove objects from a file.

use std::collections::{BTreeSet, HashSet};

use clap::Args;
use zt::{Entry, File, Span, WriteOptions};

use crate::args::complete;
use crate::args::edit::EditArgs;
use crate::args::glob;
use crate::args::hints;
use crate::args::rewrite::Rewrite;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::object;
use crate::output::progress::Progress;
use crate::output::size::human;
use crate::output::text::count;

/// Remove objects from a file of .zt, safetensors or GGUF
///
/// The bytes of the objects stay in a .zt file and are unused, so that this is fast and open readers
/// are not disturbed. `zt compact` removes unused bytes. Damaged objects can be removed too. A file of
/// safetensors or GGUF is written anew without the objects.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
    /// Names of objects
    #[arg(value_name = "NAME", required_unless_present = "glob", add = complete::names())]
    names: Vec<String>,
    /// Remove all objects whose name matches, as in `zt ls`; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = glob::pattern)]
    glob: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  zt rm model.zt lm_head.weight
  zt rm model.zt --glob 'optimizer.*' --dry-run
  zt rm model.zt --glob 'optimizer.*' && zt compact model.zt

Keys of --json: `file`, `dry_run`, `removed` (names), `unused_bytes` (of the removed objects),
`file_size`.";

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    if let Some(rewrite) = target.rewrite()? {
        return remove_anew(rewrite, arguments, output);
    }
    // From here on, Ctrl-C does not end the process in the middle of this short edit.
    let _progress = Progress::new(Some(0));
    let mut edit = target.begin(WriteOptions::new())?;
    let removed = wanted(arguments, edit.editor.before())?;
    for name in &removed {
        let done = edit.editor.remove(name);
        let before = edit.editor.before();
        hints::hinted(done, &target.file, before, Some("--glob"), output)?;
    }
    let unused_bytes = bytes_of(edit.editor.before(), &removed);
    let file_size = edit.commit()?;
    let document = object! {
        file: target.shown(),
        dry_run: target.dry_run,
        removed: &removed,
        unused_bytes,
        file_size,
    };
    let objects = count(removed.len() as u64, "object", "objects");
    let unused = human(unused_bytes);
    let what = format!("{objects} removed; {unused} are unused until `zt compact`");
    target.answer(&document, &what, output)
}

/// Removes objects of a file that is written anew.
fn remove_anew(
    rewrite: Rewrite<'_>,
    arguments: &Arguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let removed = wanted(arguments, rewrite.file())?;
    for name in &removed {
        let found = rewrite.file().tensor(name).map(drop);
        hints::hinted(found, &target.file, rewrite.file(), Some("--glob"), output)?;
    }
    let choose = |name: &str| (!removed.contains(name)).then(|| name.to_owned());
    let file_size = rewrite.commit(choose, Vec::new(), output)?;
    let document = object! {
        file: target.shown(),
        dry_run: target.dry_run,
        removed: &removed,
        unused_bytes: 0,
        file_size,
    };
    let objects = count(removed.len() as u64, "object", "objects");
    target.answer(&document, &format!("{objects} removed"), output)
}

/// The names to remove, each once.
fn wanted(arguments: &Arguments, file: &File) -> Result<BTreeSet<String>, Failure> {
    let mut wanted: BTreeSet<String> = arguments.names.iter().cloned().collect();
    for pattern in &arguments.glob {
        let matched = file.names().filter(|name| glob::matches(pattern, name));
        let matched: Vec<&str> = matched.collect();
        if matched.is_empty() {
            return Err(Failure::Usage {
                code: "not-found",
                message: format!("no object matches \"{pattern}\""),
            });
        }
        wanted.extend(matched.into_iter().map(str::to_owned));
    }
    Ok(wanted)
}

/// Stored bytes that belong to objects of these names alone.
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
    components.map(|(_, component)| component.blob.span).collect()
}
