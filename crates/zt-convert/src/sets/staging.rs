//! Publishes several files together, or none of them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zt::foreign::AtomicFile;
use zt::{Error, Result};

/// The folder of replaced files. No staged file has this name, because all of them have an extension.
const ASIDE: &str = "replaced";

/// A temporary folder within the target folder that holds files until all are written. Dropping this
/// removes the folder and its files.
///
/// If the process is killed while files are renamed, the folder stays. It holds the replaced files,
/// below `replaced`, and the files that are not yet renamed.
pub(super) struct Staging {
    folder: PathBuf,
    target: PathBuf,
    /// Complete files, in the order of their renaming.
    names: Vec<OsString>,
    /// Renames that were done.
    moves: Vec<Move>,
}

/// A rename that was done.
struct Move {
    from: PathBuf,
    to: PathBuf,
}

impl Staging {
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if no folder can be created in `target`.
    pub(super) fn new(target: &Path, stem: &str) -> Result<Self> {
        let target = if target.as_os_str().is_empty() {
            Path::new(".")
        } else {
            target
        };
        // Most file systems limit a name to 255 bytes.
        let stem: String = stem.chars().take(48).collect();
        let mut serial = 0u64;
        let folder = loop {
            let name = format!(".{stem}.{}-{serial}.tmp", std::process::id());
            let folder = target.join(name);
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => serial += 1,
                Err(error) => return Err(Error::from(error).with_path(target)),
            }
        };
        Ok(Staging {
            folder,
            target: target.to_owned(),
            names: Vec::new(),
            moves: Vec::new(),
        })
    }

    /// Writes the file that becomes `name`, and makes it durable.
    pub(super) fn write(
        &mut self,
        name: impl Into<OsString>,
        write: impl FnOnce(&mut AtomicFile) -> Result<()>,
    ) -> Result<()> {
        let name = name.into();
        let of_target = |error: Error| error.with_path(&self.target.join(&name));
        let mut file = AtomicFile::create_new(self.folder.join(&name)).map_err(of_target)?;
        write(&mut file).map_err(of_target)?;
        file.publish().map_err(of_target)?;
        self.names.push(name);
        Ok(())
    }

    /// Moves the files in `replaced` out of the target folder, in this order, then renames the written
    /// files, in their order. An existing file that is not in `replaced` is an error. After an error the
    /// target folder is unchanged.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`]. If the replaced files cannot be put back, the message says where they are.
    pub(super) fn publish(mut self, replaced: &[OsString]) -> Result<()> {
        let Err(error) = self.rename_all(replaced) else {
            self.moves.clear();
            return Ok(());
        };
        if self.put_back() {
            return Err(error);
        }
        let folder = std::mem::take(&mut self.folder);
        let message = format!("{error}; the previous files are in {}", folder.display());
        Err(Error::from(io::Error::other(message)))
    }

    fn rename_all(&mut self, replaced: &[OsString]) -> Result<()> {
        let aside = self.folder.join(ASIDE);
        if !replaced.is_empty() {
            fs::create_dir(&aside).map_err(|error| Error::from(error).with_path(&self.target))?;
        }
        for name in replaced {
            let of_target = |error| Error::from(error).with_path(&self.target.join(name));
            self.keep_access(name).map_err(of_target)?;
            let (from, to) = (self.target.join(name), aside.join(name));
            self.rename(name, from, to)?;
        }
        for name in std::mem::take(&mut self.names) {
            let (from, to) = (self.folder.join(&name), self.target.join(&name));
            self.rename(&name, from, to)?;
        }
        sync(&self.target).map_err(|error| Error::from(error).with_path(&self.target))
    }

    /// Gives a new file the access rights of the file that it replaces.
    fn keep_access(&self, name: &OsStr) -> io::Result<()> {
        let old = fs::symlink_metadata(self.target.join(name))?;
        if !old.is_file() {
            return Ok(());
        }
        match fs::File::open(self.folder.join(name)) {
            Ok(new) => zt::foreign::keep_access(&new, &old),
            // A file that is removed without a successor has no rights to pass on.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn rename(&mut self, name: &OsStr, from: PathBuf, to: PathBuf) -> Result<()> {
        let renamed = rename_new(&from, &to);
        renamed.map_err(|error| Error::from(error).with_path(&self.target.join(name)))?;
        self.moves.push(Move { from, to });
        Ok(())
    }

    /// Undoes all renames. Returns whether all of them could be undone.
    fn put_back(&mut self) -> bool {
        // A failure does not stop the others.
        let mut all = true;
        for Move { from, to } in std::mem::take(&mut self.moves).into_iter().rev() {
            all &= rename_new(&to, &from).is_ok();
        }
        all
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // An error has no receiver here.
        if !self.folder.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A rename that replaces nothing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from).inspect_err(|_| {
            let _ = fs::remove_file(to); // The file is still at `from`.
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Without hard links (FAT), a check before the rename has to suffice.
        Err(_) => match fs::symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
    }
}

/// Makes new names durable, by syncing their folder.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Write;

    /// All files by path, including files in folders.
    fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(content(&path));
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
        found
    }

    fn staged(folder: &Path, names: &[&str]) -> Staging {
        let mut staging = Staging::new(folder, "set").unwrap();
        for name in names {
            let write = |file: &mut AtomicFile| Ok(file.write_all(b"new")?);
            staging.write(name, write).unwrap();
        }
        staging
    }

    /// A folder with the files `a`, `b` and `other`.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "other"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    #[test]
    fn files_are_replaced_together() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let staging = staged(folder.path(), &["b", "c"]);
        assert_eq!(fs::read(path("b")).unwrap(), b"b");
        staging.publish(&["a".into(), "b".into()]).unwrap();
        let expected = [("b", "new"), ("c", "new"), ("other", "other")];
        let expected = expected.map(|(name, text)| (path(name), text.into()));
        assert_eq!(content(folder.path()), expected.into());
        // The temporary folder is gone.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn the_folder_is_unchanged_after_any_failed_rename() {
        type Spoil = fn(&Path, &Staging);
        let nothing: Spoil = |_, _| {};
        let folder_in_the_way: Spoil = |folder, _| fs::create_dir(folder.join("d")).unwrap();
        let file_in_the_way: Spoil = |folder, _| fs::write(folder.join("d"), "d").unwrap();
        let lost: Spoil = |_, staging| fs::remove_file(staging.folder.join("c")).unwrap();
        for (replaced, spoil) in [
            (&["a", "b"][..], folder_in_the_way),
            (&["a", "b"], file_in_the_way),
            (&["a", "b"], lost),
            // A missing file cannot be moved, and a file that is not in the list is not replaced.
            (&["gone", "a", "b"], nothing),
            (&["a", "gone", "b"], nothing),
            (&["a", "b", "gone"], nothing),
            (&["a"], nothing),
            (&[], nothing),
        ] {
            let folder = folder();
            let staging = staged(folder.path(), &["a", "b", "c", "d"]);
            spoil(folder.path(), &staging);
            let hidden = staging.folder.clone();
            let mut before = content(folder.path());
            before.retain(|path, _| !path.starts_with(&hidden));
            let replaced: Vec<OsString> = replaced.iter().map(OsString::from).collect();
            let error = staging.publish(&replaced).unwrap_err();
            assert_eq!(error.kind(), zt::ErrorKind::Io, "{replaced:?}");
            assert_eq!(content(folder.path()), before, "{replaced:?}");
            assert!(!hidden.exists());
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_changes_nothing() {
        let folder = folder();
        let before = content(folder.path());
        let mut staging = staged(folder.path(), &["a"]);
        let full = |_: &mut AtomicFile| Err(io::Error::from(io::ErrorKind::StorageFull).into());
        let error = staging.write("b", full).unwrap_err();
        assert_eq!(error.path(), Some(&*folder.path().join("b")));
        drop(staging);
        assert_eq!(content(folder.path()), before);
    }

    #[test]
    fn files_that_cannot_be_put_back_are_not_lost() {
        let folder = folder();
        let mut staging = staged(folder.path(), &["b"]);
        let hidden = staging.folder.clone();
        // Another program moves `a` out of the temporary folder.
        staging.moves.push(Move {
            from: folder.path().join("a2"),
            to: hidden.join("taken"),
        });
        let replaced = ["a", "b", "gone"].map(OsString::from);
        let error = staging.publish(&replaced).unwrap_err();
        let message = error.message();
        assert!(message.contains(hidden.to_str().unwrap()), "{message}");
        assert!(hidden.exists());
        assert_eq!(fs::read(folder.path().join("b")).unwrap(), b"b");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_no_more_readable_than_the_one_it_replaces() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder();
        let path = folder.path().join("a");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let staging = staged(folder.path(), &["a"]);
        staging.publish(&["a".into()]).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(
            (mode & 0o777, &*fs::read(path).unwrap()),
            (0o600, &b"new"[..])
        );
    }

    /// No system has hard links to a folder.
    #[test]
    fn without_hard_links_a_rename_replaces_nothing() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("from")).unwrap();
        let error = rename_new(&path("from"), &path("a")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        rename_new(&path("from"), &path("to")).unwrap();
        assert!(path("to").is_dir() && !path("from").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_whose_access_rights_cannot_be_set_replaces_nothing() {
        let folder = folder();
        let staging = staged(folder.path(), &["b"]);
        std::os::unix::fs::symlink("a", staging.folder.join("a")).unwrap();
        assert!(staging.keep_access(OsStr::new("a")).is_err());
        // A file without a successor, and a file with one.
        staging.keep_access(OsStr::new("other")).unwrap();
        staging.keep_access(OsStr::new("b")).unwrap();
    }
}
