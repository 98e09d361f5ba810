//! `zt rm`: remove objects from a file.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;

use clap::Args;
use zt::{Entry, File, Span, WriteOptions};

use crate::args::complete;
use crate::args::edit::EditArgs;
use crate::args::glob;
use crate::args::hints;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::json::object;
use crate::output::progress::Progress;
use crate::output::size::{Sum, human};
use crate::output::text::count;

/// Remove objects from a file of .zt, safetensors or GGUF
///
/// The bytes of the objects stay in a .zt file and are unused, so that this is fast and open readers
/// are not disturbed. `zt compact` removes unused bytes. Damaged objects can be removed too. A file of
/// safetensors or GGUF is written anew without the objects. The index of a set changes with its shards.
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
`file_size` (of a set: of the shards that changed), `indexes` (that changed).";

/// What was removed.
#[derive(Default)]
struct Removed {
    names: BTreeSet<String>,
    unused_bytes: Sum,
    file_size: u64,
    indexes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let mut all = Removed::default();
    if let Some(set) = target.set()? {
        let wanted = wanted(arguments, set.file())?;
        expect(&wanted, target, set.file(), output)?;
        for (shard, names) in set.shards(target, &wanted)? {
            remove(&shard, |_| Ok(names), &mut all, output)?;
        }
    } else {
        remove(target, |file| wanted(arguments, file), &mut all, output)?;
    }
    all.indexes.dedup();
    let Removed { names: removed, unused_bytes, file_size, indexes } = all;
    let document = object! {
        file: target.shown(),
        dry_run: target.dry_run,
        removed: &removed,
        unused_bytes,
        file_size,
        indexes: &indexes,
    };
    let mut what = format!("{} removed", count(removed.len() as u64, "object", "objects"));
    if unused_bytes.0 != Some(0) {
        let _ = write!(what, "; {} are unused until `zt compact`", unused_bytes.text(human));
    }
    target.answer(&document, &what, output)
}

/// Removes the objects that `wanted` chooses, from a file and from the indexes that name it.
fn remove(
    target: &EditArgs,
    wanted: impl FnOnce(&File) -> Result<BTreeSet<String>, Failure>,
    all: &mut Removed,
    output: &mut Output,
) -> Result<(), Failure> {
    let (removed, unused_bytes, file_size, indexes);
    let kept =
        |removed: &BTreeSet<String>, name: &str| (!removed.contains(name)).then(|| name.to_owned());
    if let Some(rewrite) = target.rewrite()? {
        removed = wanted(rewrite.file())?;
        expect(&removed, target, rewrite.file(), output)?;
        indexes = target.indexes(rewrite.file(), |name| kept(&removed, name))?;
        file_size = rewrite.commit(|name| kept(&removed, name), Vec::new(), output)?;
        unused_bytes = Sum::default();
    } else {
        // From here on, Ctrl-C does not end the process in the middle of this short edit.
        let _progress = Progress::new(Some(0));
        let mut edit = target.begin(WriteOptions::new())?;
        removed = wanted(edit.editor.before())?;
        for name in &removed {
            let done = edit.editor.remove(name);
            hints::hinted(done, &target.file, edit.editor.before(), Some("--glob"), output)?;
        }
        indexes = target.indexes(edit.editor.before(), |name| kept(&removed, name))?;
        unused_bytes = bytes_of(edit.editor.before(), &removed);
        file_size = edit.commit()?;
    }
    all.indexes.extend(target.publish(indexes)?);
    all.names.extend(removed);
    all.unused_bytes.add(unused_bytes.0);
    all.file_size += file_size;
    Ok(())
}

/// Refuses a name that no object has.
fn expect(
    names: &BTreeSet<String>,
    target: &EditArgs,
    file: &File,
    output: &mut Output,
) -> Result<(), Failure> {
    for name in names {
        let found = file.tensor(name).map(drop);
        hints::hinted(found, &target.file, file, Some("--glob"), output)?;
    }
    Ok(())
}

/// The names to remove, each once.
fn wanted(arguments: &Arguments, file: &File) -> Result<BTreeSet<String>, Failure> {
    glob::expect_few(&arguments.glob)?;
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
fn bytes_of(file: &File, names: &BTreeSet<String>) -> Sum {
    let spans = |is_wanted: bool| {
        let entries = file.entries().into_iter();
        let entries = entries.filter(move |entry| names.contains(entry.name()) == is_wanted);
        entries.flat_map(|entry| spans_of(&entry)).collect()
    };
    let (removed, kept): (HashSet<Span>, HashSet<Span>) = (spans(true), spans(false));
    Sum::of(removed.difference(&kept).map(|span| span.byte_len()))
}

fn spans_of(entry: &Entry<'_>) -> Vec<Span> {
    let object = entry.object();
    let components = object.iter().flat_map(|object| &object.components);
    components.map(|(_, component)| component.blob.span).collect()
}
