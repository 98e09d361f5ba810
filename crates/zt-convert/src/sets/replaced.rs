//! What a new set replaces, in a folder of this machine or of a store.

use std::fs;
use std::path::{Path, PathBuf};

use zt::{Error, Result};
use zt_foreign::{Fault, Input, SetForm, TargetFolder, open_one};

use super::index::Index;
use super::split::FileNames;
use crate::merge::{check_is_no_input, check_name, is_same_file};

/// Where the files of a set appear.
#[derive(Clone, Copy)]
pub(super) enum Place<'s> {
    Local(&'s Path),
    Store(&'s dyn TargetFolder),
}

impl Place<'_> {
    /// The path or the URL of the file `name`.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        match self {
            Place::Local(folder) => folder.join(name),
            Place::Store(folder) => folder.path_of(name),
        }
    }

    pub(super) fn contains(&self, name: &str) -> Result<bool> {
        match self {
            Place::Local(folder) => Ok(fs::symlink_metadata(folder.join(name)).is_ok()),
            Place::Store(folder) => folder.contains(name),
        }
    }

    /// The index `name`; `None` if it cannot be read.
    fn index(&self, name: &str) -> Option<Index> {
        match self {
            Place::Local(folder) => Index::open(folder.join(name)).ok(),
            Place::Store(folder) => Index::read(&open_one(*folder, name).ok()?).ok(),
        }
    }

    /// Refuses to change the file `name` if it is an input.
    pub(super) fn expect_no_input(&self, name: &str, inputs: &[Input]) -> Result<()> {
        let path = self.path_of(name);
        let checked = match self {
            Place::Local(_) => check_is_no_input(&path, inputs),
            Place::Store(_) => match inputs.iter().flat_map(Input::paths).find(|it| **it == path) {
                Some(input) => Err(Fault::IsInput { input: input.clone() }.into()),
                None => Ok(()),
            },
        };
        checked.map_err(|error| error.with_path(&path))
    }

    /// Whether a file `name` is there that may be replaced.
    ///
    /// # Errors
    ///
    /// Code `overwrite`.
    fn expect_free(&self, name: &str, inputs: &[Input], overwrite: bool) -> Result<bool> {
        let path = self.path_of(name);
        let checked = match self {
            Place::Local(_) => check_name(&path, inputs, overwrite),
            Place::Store(_) => {
                self.expect_no_input(name, inputs)?;
                match self.contains(name)? {
                    true if !overwrite => Err(Fault::Exists.into()),
                    is_there => Ok(is_there),
                }
            }
        };
        checked.map_err(|error: Error| error.with_path(&path))
    }
}

/// The set that is replaced.
#[derive(Default)]
pub(super) struct Replaced {
    /// The names that its index lists.
    pub(super) listed: Vec<String>,
    /// Files that have the name of one of several new shards and are not listed.
    pub(super) unlisted: Vec<String>,
    /// All files that are there, and those that the index lists.
    pub(super) existing: Vec<String>,
    /// Whether the set is an input.
    pub(super) is_input: bool,
    /// The objects that the index lists.
    pub(super) objects: usize,
}

impl Replaced {
    /// Looks for the files that a set of `count` shards replaces.
    ///
    /// # Errors
    ///
    /// Code `overwrite`; [`zt::ErrorKind::Io`].
    pub(super) fn of(
        place: Place<'_>,
        names: &FileNames<'_>,
        count: usize,
        inputs: &[Input],
        overwrite: bool,
    ) -> Result<Self> {
        let (index, is_indexed) = (names.index(), names.form == SetForm::Indexed);
        let path = place.path_of(&index);
        let is_set = |input: &Input| {
            let is_index = |input: &Path| match place {
                Place::Local(_) => is_same_file(input, &path),
                Place::Store(_) => input == path,
            };
            input.paths().len() > 1 && input.path().is_some_and(is_index)
        };
        // A set may replace itself, because the new one has everything.
        let is_input = overwrite && is_indexed && inputs.iter().any(is_set);
        let others = inputs.iter().filter(|input| !(is_input && is_set(input)));
        let others: Vec<Input> = others.cloned().collect();
        let mut old = Replaced { is_input, ..Replaced::default() };
        if is_indexed && place.expect_free(&index, &others, overwrite)? {
            // An index that cannot be read lists nothing.
            if let Some(index) = place.index(&index) {
                old.objects = index.tensors().len();
                old.listed = index.shards;
            }
            old.existing.push(index);
        }
        for name in names.shards(count, 1) {
            if place.expect_free(&name, &others, overwrite)? {
                if count > 1 && !old.listed.contains(&name) {
                    old.unlisted.push(name.clone());
                }
                old.existing.push(name);
            }
        }
        for name in old.listed.iter().filter(|name| names.is_shard(name)) {
            place.expect_no_input(name, &others)?;
            if !old.existing.contains(name) {
                old.existing.push(name.clone());
            }
        }
        Ok(old)
    }
}
