//! Files that take their names together, or not at all.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zt::foreign::AtomicFile;
use zt::{Error, Result};

/// Where files of a folder that are replaced are meanwhile: no file that is staged has this name,
/// because all of them have an extension.
const ASIDE: &str = "replaced";

/// A folder within the one that files are for, where they are until all are written. It goes when
/// this is dropped, with what is in it.
///
/// If the process is killed while the files take their names, the folder stays: what has been
/// replaced is in it, below `replaced`, and what has no name yet.
pub(super) struct Staging {
    folder: PathBuf,
    target: PathBuf,
    /// Files that are complete, in the order in which they take their names.
    names: Vec<OsString>,
    /// What has been renamed.
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
    /// [`zt::ErrorKind::Io`] where no folder can be made in `target`.
    pub(super) fn new(target: &Path, stem: &str) -> Result<Self> {
        let target = match target.as_os_str().is_empty() {
            true => Path::new("."),
            false => target,
        };
        // Names are bounded at 255 bytes nearly everywhere.
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

    /// Writes a file that will have this name, and makes it durable.
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

    /// Takes the files in `replaced` out of the folder, in this order, and gives those that were
    /// written their names, in theirs. What has one of these names and is not in `replaced` is left
    /// alone, and an error. After an error the folder is as it was.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`]. Where not even what was there can be put back, the message says where
    /// it is.
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

    /// A file that takes the place of another is open to nobody whom that was closed to.
    fn keep_access(&self, name: &OsStr) -> io::Result<()> {
        let old = fs::symlink_metadata(self.target.join(name))?;
        if !old.is_file() {
            return Ok(());
        }
        match fs::File::open(self.folder.join(name)) {
            Ok(new) => zt::foreign::keep_access(&new, &old),
            // What is replaced by no file leaves no access to anybody.
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

    /// Undoes all renames; whether all of them are undone.
    fn put_back(&mut self) -> bool {
        // One that fails is no reason to leave the others.
        let mut all = true;
        for Move { from, to } in std::mem::take(&mut self.moves).into_iter().rev() {
            all &= rename_new(&to, &from).is_ok();
        }
        all
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // There is nobody left to tell.
        if !self.folder.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// A rename that replaces nothing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from).inspect_err(|_| {
            let _ = fs::remove_file(to); // It is still where it was.
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Where there are no second names (FAT), the look before has to do.
        Err(_) => match fs::symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
    }
}

/// New names are durable once their folder is.
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

    /// Files by name, those in folders too.
    fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(content(&path)),
                false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
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

    /// A folder with two files, of which `a` and `b` are to be replaced.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "other"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    #[test]
    fn files_take_the_place_of_others_together() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let staging = staged(folder.path(), &["b", "c"]);
        assert_eq!(fs::read(path("b")).unwrap(), b"b");
        staging.publish(&["a".into(), "b".into()]).unwrap();
        let expected = [("b", "new"), ("c", "new"), ("other", "other")];
        let expected = expected.map(|(name, text)| (path(name), text.into()));
        assert_eq!(content(folder.path()), expected.into());
        // Without a trace.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn whichever_rename_fails_the_folder_is_as_it_was() {
        type Spoil = fn(&Path, &Staging);
        let nothing: Spoil = |_, _| {};
        let folder_in_the_way: Spoil = |folder, _| fs::create_dir(folder.join("d")).unwrap();
        let file_in_the_way: Spoil = |folder, _| fs::write(folder.join("d"), "d").unwrap();
        let lost: Spoil = |_, staging| fs::remove_file(staging.folder.join("c")).unwrap();
        for (replaced, spoil) in [
            (&["a", "b"][..], folder_in_the_way),
            (&["a", "b"], file_in_the_way),
            (&["a", "b"], lost),
            // What is not there cannot be moved aside; nor can what is not said to be replaced.
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
    fn what_cannot_be_put_back_is_not_lost() {
        let folder = folder();
        let mut staging = staged(folder.path(), &["b"]);
        let hidden = staging.folder.clone();
        // Somebody takes `a` out of the folder that it was moved to.
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

    /// A folder has no second name on any system.
    #[test]
    fn what_can_have_no_second_name_is_renamed_and_replaces_nothing() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("from")).unwrap();
        let error = rename_new(&path("from"), &path("a")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        rename_new(&path("from"), &path("to")).unwrap();
        assert!(path("to").is_dir() && !path("from").exists());
    }

    /// Who may read the old file is not known to be who may read the new one.
    #[cfg(unix)]
    #[test]
    fn a_file_whose_access_cannot_be_set_replaces_none() {
        let folder = folder();
        let staging = staged(folder.path(), &["b"]);
        std::os::unix::fs::symlink("a", staging.folder.join("a")).unwrap();
        assert!(staging.keep_access(OsStr::new("a")).is_err());
        // What none replaces, and what is replaced.
        staging.keep_access(OsStr::new("other")).unwrap();
        staging.keep_access(OsStr::new("b")).unwrap();
    }
}
