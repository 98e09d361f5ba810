//! Writes a set of shards to a store, which cannot rename files and has no locks.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use zt::{Result, Warning};
use zt_foreign::{Existing, Fault, Input, SetForm, Sink, TargetFolder, open_one};

use super::index::Index;
use super::options::SplitOptions;
use super::split::{FileNames, Plan, Split, is_input};
use crate::merge::join_slices;
use crate::table::Kinds;

impl Kinds {
    /// As [`Kinds::split`], to a folder of a store.
    ///
    /// Each shard appears when it is complete, and the index is last: the set exists from then on. After
    /// an error the shards that were written are removed, unless the index may list them. A program that is
    /// killed may leave shards without an index.
    ///
    /// Of a numbered set, such as GGUF, the first file is written last. It does not open before.
    ///
    /// With [`ConvertOptions::overwrite`](zt_foreign::ConvertOptions::overwrite), an existing set of this name is replaced, also if it is an input and the new set
    /// has all its objects. The new shards have names that no file has. The old shards are removed when
    /// the new index is there.
    ///
    /// # Errors
    ///
    /// As [`Kinds::split`]; [`zt::ErrorKind::Io`] for errors of the store.
    pub fn split_to_store(
        &self,
        inputs: &[Input],
        folder: &dyn TargetFolder,
        options: &SplitOptions<'_>,
    ) -> Result<Split> {
        let overwrite = options.convert.overwrite;
        let inputs = &*join_slices(inputs)?;
        let existing = existing(overwrite);
        let mut plan = Plan::new(self, inputs, options)?;
        if plan.names.form == SetForm::Numbered {
            return plan.write_numbered(inputs, folder, overwrite);
        }
        let count = plan.shards.len();
        let index = plan.names.index();
        let old = Old::of(folder, &plan.names, count, inputs, overwrite)?;
        if old.is_input && !plan.has_all(old.objects) {
            return Err(is_input(&folder.path_of(&index)));
        }
        // A single shard replaces the file of its name.
        let files = plan.names.free(count, |name| {
            Ok(count > 1 && (old.shards.iter().any(|old| old == name) || folder.contains(name)?))
        })?;
        let mut written = Written { folder, names: Vec::new() };
        for (at, name) in files.iter().enumerate() {
            let path = folder.path_of(name);
            let mut write =
                |file: &mut (dyn Write + Send)| plan.write(at, path.clone(), Sink::new(file));
            if count == 1 {
                // This is the commit of a single file.
                folder.write(name, existing, &mut write)?;
            } else {
                folder.write(name, Existing::Refused, &mut write)?;
                written.names.push(name);
            }
        }
        if let Some(json) = plan.index_json(&files)? {
            let listed = folder.write(&index, existing, &mut |file| Ok(file.write_all(&json)?));
            if listed.is_err() && may_list(folder, &index, &files) {
                written.names.clear();
            }
            listed?;
            plan.split.index = Some(folder.path_of(&index));
        }
        written.names.clear();
        let mut split = plan.split;
        let stale = Some(&index).filter(|_| split.index.is_none() && old.has_index);
        for name in stale.into_iter().chain(&old.shards) {
            if files.contains(name) {
                continue;
            }
            match folder.remove(name) {
                Ok(()) => split.removed.push(folder.path_of(name)),
                Err(error) => {
                    let message = format!("{name} of the replaced set cannot be removed: {error}");
                    split.warnings.push(Warning::new("left-over", message));
                }
            }
        }
        Ok(split)
    }
}

impl Plan<'_> {
    /// Writes a numbered set. The first file is last, because the set does not open without it.
    fn write_numbered(
        mut self,
        inputs: &[Input],
        folder: &dyn TargetFolder,
        overwrite: bool,
    ) -> Result<Split> {
        let files = self.names.shards(self.shards.len(), 1);
        for name in &files {
            expect_no_input(&folder.path_of(name), inputs)?;
            if !overwrite && folder.contains(name)? {
                return Err(zt::Error::from(Fault::Exists).with_path(&folder.path_of(name)));
            }
        }
        if let [first, _, ..] = &files[..]
            && overwrite
            && folder.contains(first)?
        {
            // The files of two sets must not open together.
            folder.remove(first)?;
        }
        let mut written = Written { folder, names: Vec::new() };
        for (at, name) in files.iter().enumerate().rev() {
            let path = folder.path_of(name);
            folder.write(name, existing(overwrite), &mut |file| {
                self.write(at, path.clone(), Sink::new(file))
            })?;
            written.names.push(name);
        }
        written.names.clear();
        self.split.shards.reverse();
        Ok(self.split)
    }
}

/// Whether an existing file is replaced.
fn existing(overwrite: bool) -> Existing {
    if overwrite { Existing::Replaced } else { Existing::Refused }
}

/// Refuses to change a file that is an input.
fn expect_no_input<'i>(path: &Path, inputs: impl IntoIterator<Item = &'i Input>) -> Result<()> {
    let mut read = inputs.into_iter().flat_map(Input::paths);
    if read.any(|read| read == path) {
        return Err(is_input(path));
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

/// The set that is replaced.
#[derive(Default)]
struct Old {
    has_index: bool,
    /// Files that are removed: the listed shards, and others with the names of new shards.
    shards: Vec<String>,
    /// Whether the set is an input.
    is_input: bool,
    /// The objects that the index lists.
    objects: usize,
}

impl Old {
    /// Looks for the files that a set of `count` shards replaces.
    ///
    /// # Errors
    ///
    /// Code `overwrite`; [`zt::ErrorKind::Io`].
    fn of(
        folder: &dyn TargetFolder,
        names: &FileNames<'_>,
        count: usize,
        inputs: &[Input],
        overwrite: bool,
    ) -> Result<Self> {
        let index = names.index();
        let index_path = folder.path_of(&index);
        let is_set = |input: &Input| input.path() == Some(&*index_path) && input.paths().len() > 1;
        let expect_no_input = |path: &Path| {
            let others = inputs.iter().filter(|input| !(overwrite && is_set(input)));
            expect_no_input(path, others)
        };
        let mut old = Old { is_input: overwrite && inputs.iter().any(is_set), ..Old::default() };
        let expect = |name: &str| {
            let path = folder.path_of(name);
            expect_no_input(&path)?;
            let is_there = folder.contains(name)?;
            if is_there && !overwrite {
                return Err(zt::Error::from(Fault::Exists).with_path(&path));
            }
            Ok(is_there)
        };
        old.has_index = expect(&index)?;
        let opened = old.has_index.then(|| open_one(folder, &index));
        // An index that cannot be read lists nothing.
        if let Some(Ok(source)) = opened
            && let Ok(index) = Index::read(&source)
        {
            old.objects = index.tensors().len();
            old.shards = index.shards;
            old.shards.retain(|name| names.is_shard(name));
        }
        for name in &old.shards {
            expect_no_input(&folder.path_of(name))?;
        }
        let listed: HashSet<String> = old.shards.iter().cloned().collect();
        for name in names.shards(count, 1) {
            if expect(&name)? && !listed.contains(&name) {
                old.shards.push(name);
            }
        }
        Ok(old)
    }
}
