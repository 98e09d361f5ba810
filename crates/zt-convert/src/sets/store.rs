//! Writes a set of shards to a store, which cannot rename files and has no locks.

use zt::{Result, Warning};
use zt_foreign::{Existing, SetForm, Sink, TargetFolder};

use super::index::Index;
use super::replaced::Replaced;
use super::split::Plan;

/// Writes the shards of a plan as `files`, then the index, and removes the old ones.
pub(super) fn write(
    folder: &dyn TargetFolder,
    plan: &mut Plan<'_>,
    files: &[String],
    old: &Replaced,
) -> Result<()> {
    let (is_numbered, is_one) = (plan.names.form == SetForm::Numbered, files.len() == 1);
    let replaced = if plan.options.overwrite { Existing::Replaced } else { Existing::Refused };
    if let [first, _, ..] = files
        && is_numbered
        && old.existing.contains(first)
    {
        // The files of two sets must not open together.
        folder.remove(first)?;
    }
    let mut written = Written { folder, names: Vec::new() };
    let mut order: Vec<(usize, &String)> = files.iter().enumerate().collect();
    if is_numbered {
        // The set does not open without its first file.
        order.reverse();
    }
    for (at, name) in order {
        let path = folder.path_of(name);
        // The file of a set of one is its commit.
        let existing = if is_numbered || is_one { replaced } else { Existing::Refused };
        folder.write(name, existing, &mut |file| plan.write(at, path.clone(), Sink::new(file)))?;
        written.names.push(name);
    }
    if is_numbered {
        written.names.clear();
        plan.split.shards.reverse();
        return Ok(());
    }
    let index = plan.names.index();
    if let Some(json) = plan.index_json(files)? {
        let listed = folder.write(&index, replaced, &mut |file| Ok(file.write_all(&json)?));
        if listed.is_err() && may_list(folder, &index, files) {
            written.names.clear();
        }
        listed?;
        plan.split.index = Some(folder.path_of(&index));
    }
    written.names.clear();
    let is_stale = |name: &&String| {
        let is_index = is_one && **name == index;
        is_index || plan.names.is_shard(name) && !files.contains(name)
    };
    let stale: Vec<&String> = old.existing.iter().filter(is_stale).collect();
    for name in stale {
        match folder.remove(name) {
            Ok(()) => plan.split.removed.push(folder.path_of(name)),
            Err(error) => {
                let message = format!("{name} of the replaced set cannot be removed: {error}");
                plan.split.warnings.push(Warning::new("left-over", message));
            }
        }
    }
    Ok(())
}

/// Whether the index may list one of these shards, after it could not be written. The answer of the store
/// can be lost, and shards that an index lists must stay.
fn may_list(folder: &dyn TargetFolder, index: &str, shards: &[String]) -> bool {
    match folder.open(&[index]).pop() {
        Some(Ok(None)) => false,
        Some(Ok(Some(source))) => Index::read(&source)
            .map_or(true, |index| index.shards.iter().any(|name| shards.contains(name))),
        _ => true,
    }
}

/// Shards without an index. They are removed if there is an error.
struct Written<'s> {
    folder: &'s dyn TargetFolder,
    names: Vec<&'s str>,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = self.folder.remove(name); // An error has no receiver here.
        }
    }
}
