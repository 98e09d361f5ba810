//! `zt rename`: rename objects of a file.

use std::collections::HashMap;

use clap::Args;
use serde::Serialize;
use zt::{Editor, Error, ErrorKind, File, WriteOptions};

use crate::args::complete;
use crate::args::edit::EditArgs;
use crate::args::hints;
use crate::args::rewrite::Rewrite;
use crate::args::select::{
    NameList, NewNames, Rule, expect_new_name, expect_new_names, name_list, rule,
};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::output::progress::Progress;
use crate::output::text::{cell, count};

/// Rename objects of a file of .zt, safetensors or GGUF
///
/// One object by its name, or many objects by rules, in one edit.
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

Keys of --json: `file`, `dry_run`, `renamed` (each with `old` and `new`), `file_size`; for one
object also `old` and `new`.";

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<&'a str>,
    renamed: &'a [Renamed],
    file_size: u64,
}

#[derive(Serialize)]
struct Renamed {
    old: String,
    new: String,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { target, old, new, .. } = arguments;
    if let Some(rewrite) = target.rewrite()? {
        return rename_anew(rewrite, arguments, output);
    }
    // From here on, Ctrl-C does not end the process in the middle of this short edit.
    let _progress = Progress::new(Some(0));
    let mut edit = target.begin(WriteOptions::new())?;
    let of_path = |error: Error| error.with_path(&target.file);
    let renamed = match (old, new) {
        (Some(old), Some(new)) => {
            expect_new_name(old, new).map_err(of_path)?;
            let done = edit.editor.rename(old, new);
            hints::hinted(done, &target.file, edit.editor.before(), None, output)?;
            let (old, new) = (old.clone(), new.clone());
            vec![Renamed { old, new }]
        }
        _ => {
            let names = NewNames::new(&arguments.rule, arguments.from.as_ref())?;
            rename_all(&mut edit.editor, &names).map_err(of_path)?
        }
    };
    let file_size = edit.commit()?;
    answer(arguments, &renamed, file_size, output)
}

/// Renames objects of a file that is written anew.
fn rename_anew(
    rewrite: Rewrite<'_>,
    arguments: &Arguments,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let target = &arguments.target;
    let of_path = |error: Error| error.with_path(&target.file);
    let renamed = match (&arguments.old, &arguments.new) {
        (Some(old), Some(new)) => {
            expect_new_name(old, new).map_err(of_path)?;
            let found = rewrite.file().tensor(old).map(drop);
            hints::hinted(found, &target.file, rewrite.file(), None, output)?;
            let (old, new) = (old.clone(), new.clone());
            vec![Renamed { old, new }]
        }
        _ => {
            let names = NewNames::new(&arguments.rule, arguments.from.as_ref())?;
            new_names(rewrite.file(), &names).map_err(of_path)?
        }
    };
    let pairs = renamed.iter().map(|pair| (pair.old.as_str(), &pair.new));
    let new: HashMap<&str, &String> = pairs.collect();
    let choose = |name: &str| Some(new.get(name).map_or(name, |new| new.as_str()).to_owned());
    let file_size = rewrite.commit(choose, Vec::new(), output)?;
    answer(arguments, &renamed, file_size, output)
}

fn answer(
    arguments: &Arguments,
    renamed: &[Renamed],
    file_size: u64,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let Arguments { target, old, new, .. } = arguments;
    let document = Document {
        file: target.shown(),
        dry_run: target.dry_run,
        old: old.as_deref(),
        new: new.as_deref(),
        renamed,
        file_size,
    };
    let what = match renamed {
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

/// Renames every object whose name changes.
fn rename_all(editor: &mut Editor, names: &NewNames<'_>) -> Result<Vec<Renamed>, Error> {
    let renamed = new_names(editor.before(), names)?;
    // A new name may be the old one of another object: all old names are given up first.
    let passing = |at: usize| format!("\0{at}");
    for (at, pair) in renamed.iter().enumerate() {
        editor.rename(&pair.old, &passing(at))?;
    }
    for (at, pair) in renamed.iter().enumerate() {
        editor.rename(&passing(at), &pair.new)?;
    }
    Ok(renamed)
}
