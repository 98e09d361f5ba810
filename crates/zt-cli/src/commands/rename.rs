//! `zt rename`: rename objects of a file.

use std::collections::HashMap;

use clap::Args;
use serde::Serialize;
use zt::{Editor, Error, ErrorKind, File, WriteOptions};

use crate::args::complete;
use crate::args::edit::EditArgs;
use crate::args::hints;
use crate::args::select::{
    NameList, NewNames, Rule, expect_new_name, expect_new_names, name_list, rule,
};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::progress::Progress;
use crate::output::text::{cell, count};

/// Rename objects of a file of .zt, safetensors or GGUF
///
/// One object by its name, or many objects by rules, in one edit. The index of a set changes with its shards.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: EditArgs,
    /// Name of the object
    #[arg(
        requires = "new",
        required_unless_present_any = ["rule", "from"],
        add = complete::names()
    )]
    old: Option<String>,
    /// New name, which no other object may have
    new: Option<String>,
    /// Rename all objects by a rule as in `sed -E`: s/^model\.//; several rules apply in order
    #[arg(long, value_name = "RULE", value_parser = rule, conflicts_with = "old")]
    rule: Vec<Rule>,
    /// Rename objects as a file lists: in each line an old name, a tab, the new name; rules come after
    #[arg(
        long,
        value_name = "FILE",
        value_parser = name_list(),
        value_hint = clap::ValueHint::FilePath,
        conflicts_with = "old"
    )]
    from: Option<NameList>,
}

const EXAMPLES: &str = "\
Examples:
  zt rename model.zt transformer.wte.weight embed.weight
  zt rename model.zt --rule 's/^transformer\\.h\\.([0-9]+)/layers.\\1/'

Keys of --json: `file`, `dry_run`, `renamed` (each with `old` and `new`), `file_size` (of a set: of
the shards that changed), `indexes` (that changed); for one object also `old` and `new`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<&'a str>,
    #[serde(flatten)]
    done: &'a Done,
}

#[derive(Default, Serialize)]
struct Done {
    renamed: Vec<Renamed>,
    file_size: u64,
    indexes: Vec<String>,
}

#[derive(Clone, Serialize)]
struct Renamed {
    old: String,
    new: String,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let Some(set) = target.set()? else {
        let pairs = |file: &File, output: &mut Output| pairs(arguments, file, output);
        let done = rename(target, pairs, output)?;
        return answer(arguments, &done, output);
    };
    let renamed = pairs(arguments, set.file(), output)?;
    let mut all = Done::default();
    for (shard, names) in set.shards(target, renamed.iter().map(|pair| &pair.old))? {
        let here = renamed.iter().filter(|pair| names.contains(&pair.old));
        let done = rename(&shard, |_, _| Ok(here.cloned().collect()), output)?;
        all.indexes.extend(done.indexes);
        all.file_size += done.file_size;
    }
    all.indexes.dedup();
    answer(arguments, &Done { renamed, ..all }, output)
}

/// The new names that the arguments give to objects of `file`.
fn pairs(arguments: &Arguments, file: &File, output: &mut Output) -> Result<Vec<Renamed>, Failure> {
    let path = &arguments.target.file;
    let of_path = |error: Error| error.with_path(path);
    let (Some(old), Some(new)) = (&arguments.old, &arguments.new) else {
        let names = NewNames::new(&arguments.rule, arguments.from.as_ref())?;
        return Ok(new_names(file, &names).map_err(of_path)?);
    };
    expect_new_name(old, new).map_err(of_path)?;
    // A damaged object has a name, too.
    if file.get(old).is_none() {
        hints::hinted(file.tensor(old).map(drop), path, file, None, output)?;
    }
    let (old, new) = (old.clone(), new.clone());
    Ok(vec![Renamed { old, new }])
}

/// Renames objects of a file, and in the indexes that name it.
fn rename(
    target: &EditArgs,
    pairs: impl FnOnce(&File, &mut Output) -> Result<Vec<Renamed>, Failure>,
    output: &mut Output,
) -> Result<Done, Failure> {
    let new_name = |renamed: &[Renamed]| {
        let pairs = renamed.iter().map(|pair| (pair.old.clone(), pair.new.clone()));
        let new: HashMap<String, String> = pairs.collect();
        move |name: &str| Some(new.get(name).map_or(name, String::as_str).to_owned())
    };
    let (renamed, file_size, indexes);
    if let Some(rewrite) = target.rewrite()? {
        renamed = pairs(rewrite.file(), output)?;
        let new = new_name(&renamed);
        indexes = target.indexes(rewrite.file(), &new)?;
        file_size = rewrite.commit(new, Vec::new(), output)?;
    } else {
        // From here on, Ctrl-C does not end the process in the middle of this short edit.
        let _progress = Progress::new(Some(0));
        let mut edit = target.begin(WriteOptions::new())?;
        renamed = pairs(edit.editor.before(), output)?;
        rename_all(&mut edit.editor, &renamed).map_err(|error| error.with_path(&target.file))?;
        indexes = target.indexes(edit.editor.before(), new_name(&renamed))?;
        file_size = edit.commit()?;
    }
    Ok(Done { renamed, file_size, indexes: target.publish(indexes)? })
}

fn answer(arguments: &Arguments, done: &Done, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { target, old, new, .. } = arguments;
    let document = Document {
        file: target.shown(),
        dry_run: target.dry_run,
        old: old.as_deref(),
        new: new.as_deref(),
        done,
    };
    let what = match &done.renamed[..] {
        [Renamed { old, new }] => format!("{} renamed to {}", cell(old), cell(new)),
        all => format!("{} renamed", count(all.len() as u64, "object", "objects")),
    };
    target.answer(&document, &what, output)
}

/// Every object whose name changes.
fn new_names(file: &File, names: &NewNames<'_>) -> Result<Vec<Renamed>, Error> {
    let old = file.names().map(str::to_owned);
    let pairs = old.map(|old| {
        let new = names.of(&old)?;
        Ok(Renamed { old, new })
    });
    let changes = |pair: &Result<Renamed, Error>| !matches!(pair, Ok(pair) if pair.old == pair.new);
    let renamed: Vec<Renamed> = pairs.filter(changes).collect::<Result<_, _>>()?;
    if renamed.is_empty() {
        let message = "no object has a name that changes; `zt ls` lists names";
        return Err(Error::new(ErrorKind::Misuse, "not-found", message));
    }
    expect_new_names(file.names().map(|old| (old, names.of(old))))?;
    Ok(renamed)
}

fn rename_all(editor: &mut Editor, renamed: &[Renamed]) -> Result<(), Error> {
    if let [pair] = renamed {
        return editor.rename(&pair.old, &pair.new);
    }
    // A new name may be the old one of another object: all old names are given up first.
    let passing = |at: usize| format!("\0{at}");
    for (at, pair) in renamed.iter().enumerate() {
        editor.rename(&pair.old, &passing(at))?;
    }
    for (at, pair) in renamed.iter().enumerate() {
        editor.rename(&passing(at), &pair.new)?;
    }
    Ok(())
}
