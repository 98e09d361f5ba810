//! A file that appears under its name completely, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::access::keep_access;
use crate::disk::reserve::ReservingFile;
use crate::disk::temporary::{create_unnamed, give_name};
use crate::error::{Fault, Result};

/// Small writes are gathered; larger ones go straight through, such as most frames.
pub(crate) const BUFFER: usize = 256 << 10;

/// Writes to a file without a name, or to one beside the target, which [`AtomicFile::publish`] makes
/// durable and renames over the target. Dropped before that, it removes what it wrote; the old file
/// is untouched. If the process is killed, nothing is left where files without a name exist (on
/// Linux, most file systems), unless that happens between the last two steps: naming and renaming.
///
/// A target that exists and is no regular file (a device, a pipe) is written to directly, because
/// renaming over `/dev/null` would replace the device.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while publishing.
    file: Option<BufWriter<ReservingFile>>,
    place: Place,
    target: PathBuf,
    /// Whether a file that has the name by now stays.
    is_new: bool,
}

/// Makes a file without a name, on the file system of a folder.
type Unnamed = fn(&Path, u32) -> Option<File>;

/// Where the bytes are until they are published.
#[derive(Debug)]
enum Place {
    /// In the target: a device or a pipe, or all is done.
    Target,
    /// Beside the target, under this name.
    Beside(PathBuf),
    /// On the file system of the target, under no name.
    Nowhere,
}

impl AtomicFile {
    /// Begins a file that will be `path`. A symbolic link is followed: the file it names is
    /// replaced, the link stays.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`] where `path` is a folder, or the temporary file cannot be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::begin(path, create_unnamed).map_err(|error| error.with_path(path))
    }

    /// As [`AtomicFile::create`], for a file that must not be there yet: one that appears in the
    /// meantime is not replaced either.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]; code `overwrite`, here or when it is published.
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if fs::symlink_metadata(path).is_ok() {
            return Err(crate::error::Error::from(Fault::Exists).with_path(path));
        }
        let mut file = Self::begin(path, create_unnamed).map_err(|error| error.with_path(path))?;
        file.is_new = true;
        Ok(file)
    }

    fn begin(path: &Path, unnamed: Unnamed) -> Result<Self> {
        let target = resolved(path)?;
        let replaced = match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(Fault::IsAFolder.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = fs::OpenOptions::new().write(true).open(&target)?;
                return Ok(AtomicFile {
                    file: Some(buffered(file, false)),
                    place: Place::Target,
                    target,
                    is_new: false,
                });
            }
            Ok(metadata) => Some(metadata),
            Err(_) => None,
        };
        let (file, place) = create_hidden(&target, replaced.as_ref(), unnamed)?;
        Ok(AtomicFile {
            file: Some(buffered(file, true)),
            place,
            target,
            is_new: false,
        })
    }

    /// Makes the bytes durable and gives them their name: flush, sync, rename, sync of the folder.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]. A failed sync is final and never retried: the system may have
    /// dropped the data. Up to the rename the old file is still there and the temporary is removed.
    pub fn publish(self) -> Result<()> {
        self.publish_as(true)
    }

    /// As [`AtomicFile::publish`], but not durable: other processes see the file whole or not at all,
    /// and what a crash of the system leaves of it is the system's business. For many files that can
    /// be made again: each sync waits for the disk.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]. Up to the rename the old file is still there and the temporary is
    /// removed.
    pub fn publish_unsynced(self) -> Result<()> {
        self.publish_as(false)
    }

    fn publish_as(mut self, is_durable: bool) -> Result<()> {
        let target = std::mem::take(&mut self.target);
        self.commit(&target, is_durable)
            .map_err(|error| error.with_path(&target))
    }

    fn commit(&mut self, target: &Path, is_durable: bool) -> Result<()> {
        let sync_name = || match is_durable {
            true => Ok(sync_folder(target)?),
            false => Ok(()),
        };
        let Some(mut buffered) = self.file.take() else {
            return Ok(());
        };
        buffered.flush()?;
        if matches!(self.place, Place::Target) {
            return Ok(());
        }
        buffered.get_mut().release()?;
        let file = buffered.get_ref().file();
        if is_durable {
            file.sync_all()?;
        }
        if matches!(self.place, Place::Nowhere) {
            // Naming never replaces what has the name.
            if give_name(file, target).is_ok() {
                self.place = Place::Target;
                return sync_name();
            }
            self.place = Place::Beside(name_beside(file, target)?);
        }
        drop(buffered); // Some systems refuse to rename an open file.
        let Place::Beside(temporary) = &self.place else {
            return Ok(());
        };
        if self.is_new {
            // A rename replaces; a second name does not. Where there are no second names (FAT), the
            // look before the rename has to do.
            match fs::hard_link(temporary, target) {
                Ok(()) => fs::remove_file(temporary)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Fault::Exists.into());
                }
                Err(_) => fs::rename(temporary, target)?,
            }
        } else {
            fs::rename(temporary, target)?;
        }
        self.place = Place::Target;
        sync_name()
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file
            .as_mut()
            .map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if matches!(self.place, Place::Target) {
            return;
        }
        if let Some(file) = self.file.take() {
            let _ = file.into_parts(); // Without flushing: the bytes are not wanted.
        }
        if let Place::Beside(temporary) = &self.place {
            let _ = fs::remove_file(temporary); // There is nobody left to tell.
        }
    }
}

fn buffered(file: File, can_reserve: bool) -> BufWriter<ReservingFile> {
    BufWriter::with_capacity(BUFFER, ReservingFile::new(file, can_reserve))
}

/// The file that a path means: absolute, so that it stays the same if the process changes its
/// folder, and behind every link, those included that lead to nothing yet.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    /// As many links as Linux follows.
    const MOST: usize = 40;
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut target = std::path::absolute(path)?;
    for _ in 0..=MOST {
        match fs::canonicalize(&target) {
            Ok(target) => return Ok(target),
            // A link to what is there and has no path: `/dev/fd/1`, where that is a pipe.
            Err(_) if fs::metadata(&target).is_ok() => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match fs::read_link(&target) {
            // Relative to the folder of the link; an absolute one replaces all of it.
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

/// A new file on the file system of `target`, so that the rename stays there. Nobody but who makes it
/// may read it who might not read the file that it replaces; it belongs to the same user and group
/// where this process may give it to them.
fn create_hidden(
    target: &Path,
    replaced: Option<&fs::Metadata>,
    unnamed: Unnamed,
) -> io::Result<(File, Place)> {
    // Whose it is going to be is not known yet: who opens it before that could go on to read.
    #[cfg(unix)]
    let mode = replaced.map_or(0o666, |_| 0o600);
    #[cfg(not(unix))]
    let mode = 0;
    let (file, place) = match unnamed(folder_of(target), mode) {
        Some(file) => (file, Place::Nowhere),
        None => {
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
            let (file, temporary) = beside(target, |temporary| options.open(temporary))?;
            (file, Place::Beside(temporary))
        }
    };
    if let Err(error) = replaced.map_or(Ok(()), |replaced| keep_access(&file, replaced)) {
        if let Place::Beside(temporary) = &place {
            let _ = fs::remove_file(temporary);
        }
        return Err(error);
    }
    Ok((file, place))
}

/// Gives a file a name beside the target.
fn name_beside(file: &File, target: &Path) -> io::Result<PathBuf> {
    let ((), temporary) = beside(target, |temporary| give_name(file, temporary))?;
    Ok(temporary)
}

/// Makes something in the folder of `target`, under a name that nothing has.
fn beside<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = target
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    // Names are bounded at 255 bytes nearly everywhere; the target's may be that long already.
    let stem: String = name.chars().take(48).collect();
    loop {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary =
            target.with_file_name(format!(".{stem}.{}-{serial}.tmp", std::process::id()));
        match make(&temporary) {
            Ok(made) => return Ok((made, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    let folder = target.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The new name is durable once the folder is.
#[cfg(unix)]
fn sync_folder(target: &Path) -> io::Result<()> {
    File::open(folder_of(target))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nowhere, where there is such a place, and beside the target.
    const WAYS: [Unnamed; 2] = [create_unnamed, |_, _| None];

    fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read(entry.path()).unwrap())
            })
            .collect()
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        for unnamed in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            for text in ["new", "replaced", "new"] {
                let before = fs::read(&path).ok();
                let mut dropped = AtomicFile::begin(&path, unnamed).unwrap();
                dropped.write_all(b"unwanted").unwrap();
                dropped.flush().unwrap();
                assert_eq!(fs::read(&path).ok(), before);
                drop(dropped);
                let mut file = AtomicFile::begin(&path, unnamed).unwrap();
                file.write_all(text.as_bytes()).unwrap();
                assert_eq!(fs::read(&path).ok(), before);
                match text {
                    "new" => file.publish_unsynced().unwrap(),
                    _ => file.publish().unwrap(),
                }
                let expected = [("x".to_owned(), text.as_bytes().to_vec())];
                assert_eq!(content(folder.path()), expected);
            }
        }
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_stays_with_what_has_it() {
        for unnamed in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            let begin = || {
                let mut file = AtomicFile::begin(&path, unnamed).unwrap();
                file.is_new = true;
                file.write_all(b"second").unwrap();
                file
            };
            let second = begin();
            fs::write(&path, "first").unwrap();
            let error = second.publish().unwrap_err();
            assert_eq!(error.code(), "overwrite");
            assert_eq!(
                content(folder.path()),
                [("x".to_owned(), b"first".to_vec())]
            );
            fs::remove_file(&path).unwrap();
            begin().publish().unwrap();
            assert_eq!(
                content(folder.path()),
                [("x".to_owned(), b"second".to_vec())]
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        for unnamed in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            fs::write(&path, "").unwrap();
            for mode in [0o600, 0o666, 0o751] {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                let file = AtomicFile::begin(&path, unnamed).unwrap();
                file.publish().unwrap();
                let found = fs::metadata(&path).unwrap().permissions().mode();
                assert_eq!(found & 0o777, mode);
            }
        }
    }

    /// Only an administrator may give files away; who runs the tests need not be one.
    #[cfg(unix)]
    #[test]
    fn the_owner_stays() {
        use std::os::unix::fs::{MetadataExt, chown};
        for unnamed in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            fs::write(&path, "").unwrap();
            let _ = chown(&path, Some(12_345), Some(23_456));
            let owner = |metadata: fs::Metadata| (metadata.uid(), metadata.gid());
            let before = owner(fs::metadata(&path).unwrap());
            AtomicFile::begin(&path, unnamed)
                .unwrap()
                .publish()
                .unwrap();
            assert_eq!(owner(fs::metadata(&path).unwrap()), before);
        }
    }

    /// Of a process of the same number that was killed before the machine was started anew.
    #[test]
    fn temporary_names_that_are_taken_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let taken = (0..200).map(|serial| {
            let name = format!(".x.{}-{serial}.tmp", std::process::id());
            folder.path().join(name)
        });
        let taken: Vec<PathBuf> = taken.collect();
        taken
            .iter()
            .for_each(|name| fs::write(name, "theirs").unwrap());
        let mut file = AtomicFile::begin(&path, |_, _| None).unwrap();
        file.write_all(b"ours").unwrap();
        file.publish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        for name in taken {
            assert_eq!(fs::read(name).unwrap(), b"theirs");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn as_many_links_are_followed_as_the_system_follows() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for count in [1, 40, 41] {
            let target = format!("{count}");
            symlink(&target, at(&format!("{count}.0"))).unwrap();
            for link in 1..count {
                let next = format!("{count}.{}", link - 1);
                symlink(next, at(&format!("{count}.{link}"))).unwrap();
            }
            let first = at(&format!("{count}.{}", count - 1));
            let made = AtomicFile::create(&first).and_then(AtomicFile::publish);
            let by_the_system = File::create(&first).is_ok();
            assert_eq!(made.is_ok(), by_the_system, "{count}");
            assert_eq!(at(&target).exists(), by_the_system, "{count}");
            // The same where there is something behind them already.
            fs::write(at(&target), "").unwrap();
            let made = AtomicFile::create(&first);
            assert_eq!(made.is_ok(), by_the_system, "{count}");
        }
        symlink("round", at("round")).unwrap();
        let error = AtomicFile::create(at("round")).unwrap_err();
        assert_eq!((error.code(), error.path()), ("io", Some(&*at("round"))));
    }

    #[test]
    fn a_place_that_no_file_can_be_in_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for name in ["file/x", "folder/x"] {
            let path = folder.path().join(name);
            let error = AtomicFile::create(&path).unwrap_err();
            assert_eq!((error.code(), error.path()), ("io", Some(&*path)));
        }
        // One that is gone by the time that the file is published.
        for unnamed in WAYS {
            for is_new in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let mut file = AtomicFile::begin(&folder.path().join("x"), unnamed).unwrap();
                file.is_new = is_new;
                fs::remove_dir_all(folder.path()).unwrap();
                assert_eq!(file.publish().unwrap_err().code(), "io");
            }
        }
    }
}
