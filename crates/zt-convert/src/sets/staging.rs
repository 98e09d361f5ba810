//! Publishes the files of a set with one step.
//!
//! ```text
//! written     the shards are durable and have no names
//! listed      .INDEX.zt-new is the new index, .INDEX.zt-old is another name of the old one
//! named       the shards have their names, which no file of the old set has
//! committed   .INDEX.zt-new is renamed over the index
//! cleaned     the shards of the old set are gone, and .INDEX.zt-old
//! ```
//!
//! A set opens by its index. Until the commit it lists the old shards, and after it the new ones, all
//! complete. If the process is killed, a hidden index lists the shards that the next run removes.
//!
//! A numbered set has no index, and opens only if it has its first file. So the name of that file is the
//! commit:
//!
//! ```text
//! listed      .INDEX.zt-new lists the new files
//! removed     files of an old set with these names are gone, the first one first
//! named       all files but the first have their names
//! committed   the first file has its name
//! cleaned     .INDEX.zt-new is gone
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use zt::foreign::{
    AtomicFile, expect_unlocked, keep_access, open_locked, sync_folder, synced, uninterrupted,
};
use zt::{Error, Result, Warning};
use zt_foreign::{SetForm, Sink};

use super::index::shards_of;
use super::replaced::Replaced;
use super::split::Plan;

/// Writes the shards of a plan as `files`, so that they become a set in one step, and removes the old ones.
pub(super) fn write(
    folder: &Path,
    plan: &mut Plan<'_>,
    files: &[String],
    old: &Replaced,
) -> Result<()> {
    let existing = old.existing.iter().map(|name| folder.join(name));
    let existing: Vec<PathBuf> = existing.filter(|path| is_there(path)).collect();
    existing.iter().try_for_each(expect_unlocked)?;
    // The new files get the rights of the file with the fewest.
    let like = existing.iter().filter_map(|path| fs::symlink_metadata(path).ok());
    let like = like.filter(fs::Metadata::is_file).min_by_key(rights);
    let (index, names) = (plan.names.index(), plan.names.clone());
    let mut staging =
        Staging { folder, index: &index, like, shards: Vec::new(), named: Vec::new() };
    let is_replaced = plan.options.overwrite && files.len() == 1;
    for (at, name) in files.iter().enumerate() {
        let path = folder.join(name);
        staging.write(name, is_replaced, |file| plan.write(at, path, Sink::file(file)))?;
    }
    let json = plan.index_json(files)?;
    if names.form == SetForm::Numbered {
        return staging.publish_numbered(json.as_deref(), &old.unlisted);
    }
    plan.split.index = json.is_some().then(|| folder.join(&index));
    let is_ours = |name: &str| names.is_shard(name);
    let (removed, warnings) = staging.publish(json.as_deref(), &old.unlisted, is_ours)?;
    plan.split.removed = removed;
    plan.split.warnings.extend(warnings);
    Ok(())
}

/// How many rights a file gives.
#[cfg(unix)]
fn rights(metadata: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode().count_ones()
}

#[cfg(not(unix))]
fn rights(metadata: &fs::Metadata) -> bool {
    !metadata.permissions().readonly()
}

/// A set that is being written into a folder. If this is dropped before the commit, nothing is left of
/// it, and the old set is as it was.
pub(super) struct Staging<'s> {
    folder: &'s Path,
    /// The name of the index. A numbered set has none, and only hidden names are made of it.
    index: &'s str,
    /// A file with the access rights that the new files get.
    like: Option<fs::Metadata>,
    /// Complete files without names.
    shards: Vec<(String, AtomicFile)>,
    /// New files that have names. They go if there is no commit.
    named: Vec<PathBuf>,
}

impl<'s> Staging<'s> {
    /// Removes what a killed process left of a set with this index. `is_ours` allows the removal of a
    /// shard.
    ///
    /// # Errors
    ///
    /// Code `locked` if another process is writing the set.
    pub(super) fn clean(
        folder: &Path,
        index: &str,
        form: SetForm,
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let [new, old] = hidden(folder, index);
        let killed = match open_locked(&new) {
            Ok(file) => Some(file),
            Err(_) if !is_there(&new) => None,
            Err(error) => return Err(error),
        };
        // Before the commit the new shards are left over, and after it the old ones.
        let left = shards_of(if killed.is_some() { &new } else { &old }).unwrap_or_default();
        let kept = if form == SetForm::Numbered {
            let first = left.first();
            let is_whole = first.is_some_and(|first| is_there(&folder.join(first)));
            is_whole.then(|| left.clone())
        } else {
            match shards_of(&folder.join(index)) {
                Err(_) if is_there(&folder.join(index)) => Some(left.clone()), // Nothing is known of it.
                kept => kept.ok(),
            }
        };
        let kept = kept.unwrap_or_default();
        for name in left {
            if is_ours(&name) && !kept.contains(&name) {
                remove(&folder.join(name))?;
            }
        }
        remove(&old)?;
        remove(&new)
    }

    /// Writes the file that becomes `name`, and makes it durable. A file of that name is replaced if
    /// `overwrite` is true.
    fn write(
        &mut self,
        name: &str,
        overwrite: bool,
        write: impl FnOnce(&mut AtomicFile) -> Result<()>,
    ) -> Result<()> {
        let path = self.folder.join(name);
        let of_path = |error: Error| error.with_path(&path);
        let mut file = AtomicFile::create_member(&path, self.like.as_ref(), overwrite)?;
        write(&mut file).map_err(of_path)?;
        file.sync()?;
        self.shards.push((name.to_owned(), file));
        Ok(())
    }

    /// Gives the written files their names, and puts the index `json` in the place of the old one. Then
    /// it removes the files called `others`, and the shards of the old index that `is_ours` allows.
    /// Returns the paths of the removed files, and a warning for each file that could not be removed.
    ///
    /// Without `json` there is one written file and no index: the commit removes the old index.
    ///
    /// # Errors
    ///
    /// Code `locked` if another process is writing the set or editing one of its files;
    /// [`zt::ErrorKind::Io`].
    fn publish(
        mut self,
        json: Option<&[u8]>,
        others: &[String],
        is_ours: impl Fn(&str) -> bool,
    ) -> Result<(Vec<PathBuf>, Vec<Warning>)> {
        let index = self.folder.join(self.index);
        let of_index = |error: io::Error| Error::from(error).with_path(&index);
        let [new, old] = hidden(self.folder, self.index);
        let journal = json.map(|json| self.list(&new, json)).transpose()?;
        let mut listed = Vec::new();
        if is_there(&index) {
            expect_unlocked(&index)?;
            listed = shards_of(&index).unwrap_or_default();
            listed.retain(|name| is_ours(name));
            let mut replaced = listed.iter().map(|name| self.folder.join(name));
            replaced.try_for_each(expect_unlocked)?;
            if journal.is_some() {
                link(&index, &old).map_err(of_index)?;
                self.named.push(old.clone());
            }
        }
        self.sync()?;
        for (name, file) in std::mem::take(&mut self.shards) {
            self.name(&name, file)?;
        }
        self.sync()?;
        match &journal {
            Some(file) => {
                let like = self.like.as_ref();
                let kept = like.map_or(Ok(()), |like| keep_access(file, like));
                kept.and_then(|()| uninterrupted(|| fs::rename(&new, &index))).map_err(of_index)?;
            }
            None if is_there(&index) => {
                uninterrupted(|| fs::rename(&index, &old)).map_err(of_index)?
            }
            None => {}
        }
        self.named.clear();
        self.sync()?;
        // The journal is locked up to here, so that no other process takes the old index for its own.
        let mut removed = Vec::new();
        if json.is_none() && is_there(&old) {
            removed.push(index);
        }
        let mut warnings = Vec::new();
        for name in listed.iter().chain(others) {
            let path = self.folder.join(name);
            match uninterrupted(|| fs::remove_file(&path)) {
                Ok(()) => removed.push(path),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let message = format!("{name} of the replaced set cannot be removed: {error}");
                    warnings.push(Warning::new("left-over", message));
                }
            }
        }
        // The next run tries again.
        if warnings.is_empty() {
            let _ = remove(&old);
        }
        Ok((removed, warnings))
    }

    /// As [`Staging::publish`], for a numbered set with this list of its files. Files called `replaced` are
    /// removed before the new ones get their names, so that no mixture of both opens.
    ///
    /// Without `json` there is one file, which may replace another.
    ///
    /// # Errors
    ///
    /// As [`Staging::publish`].
    fn publish_numbered(mut self, json: Option<&[u8]>, replaced: &[String]) -> Result<()> {
        let [list, _] = hidden(self.folder, self.index);
        let journal = json.map(|json| self.list(&list, json)).transpose()?;
        for name in replaced {
            remove(&self.folder.join(name))?;
        }
        let mut first = std::mem::take(&mut self.shards);
        let rest = first.split_off(first.len().min(1));
        for files in [rest, first] {
            self.sync()?;
            for (name, file) in files {
                self.name(&name, file)?;
            }
        }
        self.named.clear();
        self.sync()?;
        if journal.is_some() {
            remove(&list)?;
        }
        Ok(())
    }

    /// Gives a written file its name.
    fn name(&mut self, name: &str, file: AtomicFile) -> Result<()> {
        let path = self.folder.join(name);
        // A single file may replace another. Then it stays.
        let is_new = !is_there(&path);
        file.publish_unsynced()?;
        if is_new {
            self.named.push(path);
        }
        Ok(())
    }

    /// Writes the new index under its hidden name, durable and locked.
    fn list(&mut self, path: &Path, json: &[u8]) -> Result<File> {
        let of_path = |error: io::Error| Error::from(error).with_path(path);
        let mut options = File::options();
        #[cfg(unix)]
        if self.like.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let created = options.write(true).create_new(true).open(path);
        drop(created.map_err(|error| match expect_unlocked(path) {
            Err(locked) => locked,
            Ok(()) => of_path(error),
        })?);
        self.named.push(path.to_owned());
        let mut file = match open_locked(path) {
            // Another process that writes the set finds the name taken.
            Err(error) if error.code() == zt::codes::NO_LOCKS => {
                let opened = File::options().write(true).open(path);
                opened.map_err(of_path)?
            }
            locked => locked?,
        };
        file.write_all(json).map_err(of_path)?;
        synced(&file).map_err(of_path)?;
        Ok(file)
    }

    /// Makes new names durable, by syncing their folder.
    fn sync(&self) -> Result<()> {
        let of_folder = |error: io::Error| Error::from(error).with_path(self.folder);
        sync_folder(self.folder).map_err(of_folder)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        for path in self.named.iter().rev() {
            let _ = fs::remove_file(path); // An error has no receiver here.
        }
    }
}

/// The hidden names of the new index and of the old one.
fn hidden(folder: &Path, index: &str) -> [PathBuf; 2] {
    ["new", "old"].map(|which| folder.join(format!(".{index}.zt-{which}")))
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Removes a file that may be missing.
fn remove(path: &Path) -> Result<()> {
    match uninterrupted(|| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::from(error).with_path(path))
        }
        _ => Ok(()),
    }
}

/// Gives a file another name. File systems without hard links (FAT) get a copy.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match uninterrupted(|| fs::hard_link(from, to)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::copy(from, to).map(drop),
        linked => linked,
    }
}
