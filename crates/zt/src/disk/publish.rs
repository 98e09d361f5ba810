//! A file that appears under its name completely, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::access::keep_access;
use crate::disk::lock::{exclusive, is_at, is_path_locked, lock};
use crate::disk::reserve::ReservingFile;
use crate::disk::target::{folder_of, is_null, resolved};
use crate::disk::temporary::{create_unnamed, give_name};
use crate::disk::{synced, uninterrupted};
use crate::error::{Error, Fault, Result};
use zt_container::{Span, is_device};

/// Small writes are gathered. Larger ones, such as most frames, go straight through.
///
/// Pays: nothing: `zt convert` of 100,000 tensors and `zt extract` on tmpfs take as long with 8 KiB and with 4 MiB.
pub(crate) const BUFFER: usize = 256 << 10;

/// Writes to a file without a name, or to a temporary file beside the target.
/// [`AtomicFile::publish`] makes it durable and renames it over the target. Without that call, drop
/// removes it and the old file stays.
///
/// If the process is killed, nothing is left on systems with unnamed files (Linux, most file systems),
/// except between two steps when a file is replaced: naming and renaming. The temporary file
/// `.NAME.zt-N.tmp` that stays there is removed when this type begins a file of that name again.
///
/// If the target is a device or a pipe, the bytes are written to it directly, because renaming over
/// `/dev/null` would replace the device.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while publishing.
    file: Option<BufWriter<ReservingFile>>,
    place: Place,
    target: PathBuf,
    /// The path of the caller, for errors.
    path: PathBuf,
    /// Whether publishing fails if the name exists by then.
    is_new: bool,
    /// Whether publishing fails if an editor has the replaced file by then.
    asks_editors: bool,
}

/// Creates a file without a name, on the file system of a folder.
type Unnamed = fn(&Path, u32) -> Option<File>;

/// The place of the bytes until they are published.
#[derive(Debug)]
enum Place {
    /// In the target: it is a device or a pipe, or the file is published.
    Target,
    /// Beside the target, under this name.
    Beside(PathBuf),
    /// On the file system of the target, without a name.
    Nowhere,
}

impl AtomicFile {
    /// Begins a file that will be `path`. A symbolic link is followed: its target is replaced, and
    /// the link stays.
    ///
    /// # Errors
    ///
    /// Code `locked`, here or when it is published, if a program is editing the file there.
    /// [`crate::ErrorKind::Io`] if `path` is a folder, or the temporary file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::begin(path, create_unnamed).map_err(|error| error.with_path(path))
    }

    /// As [`AtomicFile::create`], for a file that the caller has locked.
    pub(crate) fn replace_locked(path: &Path) -> Result<Self> {
        let mut file = Self::begin_at(resolved(path)?, path, create_unnamed)?;
        file.asks_editors = false;
        Ok(file)
    }

    /// Begins a file of a set, which will be `path`. No link is followed: one that is there is replaced.
    /// The file is published only together with others: see [`AtomicFile::sync`]. It gets the owner and
    /// the permissions of `like`.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]. Code `overwrite` when it is published, if the name exists by then and
    /// `overwrite` is false.
    pub fn create_member(
        path: impl AsRef<Path>,
        like: Option<&fs::Metadata>,
        overwrite: bool,
    ) -> Result<Self> {
        let path = path.as_ref();
        let begin = || {
            let target = std::path::absolute(path)?;
            let (file, place) = create_hidden(&target, like, create_unnamed)?;
            let mut file = Self::of(file, place, target, path);
            file.is_new = !overwrite;
            Ok(file)
        };
        begin().map_err(|error: Error| error.with_path(path))
    }

    /// As [`AtomicFile::create`], but the file must not exist. A file that appears in the meantime
    /// is not replaced either.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]; code `overwrite`, here or when it is published.
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if !is_device(path) && fs::symlink_metadata(path).is_ok() {
            return Err(crate::error::Error::from(Fault::Exists).with_path(path));
        }
        let mut file = Self::begin(path, create_unnamed).map_err(|error| error.with_path(path))?;
        file.is_new = true;
        Ok(file)
    }

    fn begin(path: &Path, unnamed: Unnamed) -> Result<Self> {
        if is_null(path) {
            let file = File::options().write(true).open(path)?;
            return Ok(Self::of(file, Place::Target, path.to_owned(), path));
        }
        if is_device(path) {
            return Err(Fault::IsADevice.into());
        }
        let target = resolved(path)?;
        if is_path_locked(&target) {
            return Err(Fault::Locked.into());
        }
        Self::begin_at(target, path, unnamed)
    }

    fn begin_at(target: PathBuf, path: &Path, unnamed: Unnamed) -> Result<Self> {
        let replaced = match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(Fault::IsAFolder.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = fs::OpenOptions::new().write(true).open(&target)?;
                return Ok(Self::of(file, Place::Target, target, path));
            }
            Ok(metadata) => Some(metadata),
            Err(_) => None,
        };
        let (file, place) = create_hidden(&target, replaced.as_ref(), unnamed)?;
        Ok(Self::of(file, place, target, path))
    }

    fn of(file: File, place: Place, target: PathBuf, path: &Path) -> Self {
        let is_hidden = !matches!(place, Place::Target);
        let file = ReservingFile::new(file, is_hidden);
        AtomicFile {
            file: Some(BufWriter::with_capacity(BUFFER, file)),
            place,
            target,
            path: path.to_owned(),
            is_new: false,
            asks_editors: is_hidden,
        }
    }

    /// Makes the written bytes durable while the file has no name yet, and frees the buffer. After this,
    /// [`AtomicFile::publish_unsynced`] only gives the name, so that many files appear together.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::publish`].
    pub fn sync(&mut self) -> Result<()> {
        let sync = |buffered: &mut BufWriter<ReservingFile>| {
            buffered.flush()?;
            buffered.get_mut().release()?;
            synced(buffered.get_ref().file())
        };
        let synced = self.file.as_mut().map_or(Ok(()), sync);
        synced.map_err(|error| Error::from(error).with_path(&self.path))?;
        let file = self.file.take().map(|buffered| buffered.into_parts().0);
        self.file = file.map(|file| BufWriter::with_capacity(0, file));
        Ok(())
    }

    /// Makes the bytes durable and gives them their name: flush, sync, rename, sync of the folder.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]. A failed sync is final and never retried: the system may have
    /// dropped the data. Until the rename the old file stays, and an error removes the temporary
    /// file.
    pub fn publish(self) -> Result<()> {
        self.publish_as(true)
    }

    /// As [`AtomicFile::publish`], but without waiting for the disk. Other processes see the whole
    /// file or none; after a crash of the system, any part of it may be missing. Use it for many
    /// files that can be written again.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Io`]. Until the rename the old file stays, and an error removes the
    /// temporary file.
    pub fn publish_unsynced(self) -> Result<()> {
        self.publish_as(false)
    }

    fn publish_as(mut self, is_durable: bool) -> Result<()> {
        let target = std::mem::take(&mut self.target);
        let done = self.commit(&target, is_durable);
        done.map_err(|error| error.with_path(&self.path))
    }

    fn commit(&mut self, target: &Path, is_durable: bool) -> Result<()> {
        let sync_name = || {
            if is_durable { Ok(sync_folder(folder_of(target))?) } else { Ok(()) }
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
            synced(file)?;
        }
        if matches!(self.place, Place::Nowhere) {
            // Giving a name never replaces a file.
            if give_name(file, target).is_ok() {
                self.place = Place::Target;
                return sync_name();
            }
            // The lock shows others that the temporary file is in use. Not every file system has locks.
            let _ = lock(file);
            let ((), temporary) = beside(target, |temporary| give_name(file, temporary))?;
            self.place = Place::Beside(temporary);
        }
        if cfg!(not(unix)) {
            drop(buffered); // Some systems refuse to rename an open file.
        }
        let Place::Beside(temporary) = &self.place else {
            return Ok(());
        };
        if self.is_new {
            // A rename replaces a file, a hard link does not. File systems without hard links (FAT)
            // only have the check before the rename.
            match uninterrupted(|| fs::hard_link(temporary, target)) {
                Ok(()) => uninterrupted(|| fs::remove_file(temporary))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Fault::Exists.into());
                }
                Err(_) => uninterrupted(|| fs::rename(temporary, target))?,
            }
        } else if self.asks_editors && is_path_locked(target) {
            return Err(Fault::Locked.into());
        } else {
            uninterrupted(|| fs::rename(temporary, target)).map_err(in_use)?;
        }
        self.place = Place::Target;
        sync_name()
    }

    /// The number of bytes written so far.
    pub fn byte_len(&self) -> u64 {
        self.file
            .as_ref()
            .map_or(0, |file| file.get_ref().byte_len().strict_add(file.buffer().len() as u64))
    }

    /// As [`ReservingFile::copy_from`].
    pub(crate) fn copy_from(&mut self, from: &File, span: Span) -> io::Result<u64> {
        let Some(file) = &mut self.file else {
            return Ok(0);
        };
        file.flush()?;
        Ok(file.get_mut().copy_from(from, span))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
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
            let _ = file.into_parts(); // The buffer is not flushed: its bytes are not wanted.
        }
        if let Place::Beside(temporary) = &self.place {
            let _ = fs::remove_file(temporary); // An error cannot be returned from here.
        }
    }
}

/// Adds the likely cause to the error of Windows for a file that a program has open and does not share.
fn in_use(error: io::Error) -> io::Error {
    if cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied {
        let message = format!("{error}: a program may have the file open");
        return io::Error::new(error.kind(), message);
    }
    error
}

/// A new file on the file system of `target`, so that it can be renamed. It never gives read access
/// to a user who lacks it for the old file. It gets the old file's owner and group if this process
/// may set them.
fn create_hidden(
    target: &Path,
    replaced: Option<&fs::Metadata>,
    unnamed: Unnamed,
) -> io::Result<(File, Place)> {
    remove_stale(target);
    // The final owner is not set yet. A process that opened the file now could go on to read it.
    #[cfg(unix)]
    let mode = replaced.map_or(0o666, |_| 0o600);
    #[cfg(not(unix))]
    let mode = 0;
    let (file, place) = match unnamed(folder_of(target), mode) {
        Some(file) => (file, Place::Nowhere),
        None => {
            let mut options = exclusive();
            options.create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
            let (file, temporary) = beside(target, |temporary| options.open(temporary))?;
            let _ = lock(&file); // See `commit`.
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

/// Creates something in the folder of `target`, under a name that is not in use.
fn beside<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    for serial in 0u64.. {
        let temporary = temporary(target, serial)?;
        match uninterrupted(|| make(&temporary)) {
            Ok(made) => return Ok((made, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The names of temporary files beside the target. They begin with the lowest serial. So the files of a
/// killed process are found by name, without a look at the whole folder.
fn temporary(target: &Path, serial: u64) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // Most systems limit names to 255 bytes, and the target's name may have that length.
    let stem: String = name.to_string_lossy().chars().take(48).collect();
    Ok(target.with_file_name(format!(".{stem}.zt-{serial}.tmp")))
}

/// Removes the temporary files beside the target that killed processes have left. A process that is
/// alive has its file locked. Where nothing can be locked, nothing is removed.
fn remove_stale(target: &Path) {
    let names = (0u64..).map_while(|serial| temporary(target, serial).ok());
    for name in names {
        match fs::symlink_metadata(&name) {
            Ok(there) if !there.is_file() => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        // For reading too, so that no pipe that takes the place waits for a reader.
        let Ok(file) = exclusive().open(&name) else {
            continue;
        };
        // The file may have got another name, or none, before it was locked.
        if lock(&file).is_ok() && matches!(is_at(&file, &name), Ok(true)) {
            let _ = fs::remove_file(&name); // Others lose nothing if this fails.
        }
    }
}

/// Makes the names in a folder durable. An empty path is the current folder. Systems other than Unix do
/// this themselves.
///
/// # Errors
///
/// The system's.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let is_current = folder.as_os_str().is_empty();
    let folder = if is_current { Path::new(".") } else { folder };
    if cfg!(unix) {
        uninterrupted(|| synced(&File::open(folder)?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a name, if the system supports it, and beside the target.
    const WAYS: [Unnamed; 2] = [create_unnamed, |_, _| None];

    /// Runs a test in both ways, with the path of a file in a new folder.
    fn each_way(test: impl Fn(&Path, &dyn Fn() -> AtomicFile)) {
        for unnamed in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x");
            test(&path, &|| AtomicFile::begin(&path, unnamed).unwrap());
        }
    }

    /// The content of the only file in the folder.
    fn only(path: &Path) -> Vec<u8> {
        assert_eq!(fs::read_dir(folder_of(path)).unwrap().count(), 1);
        fs::read(path).unwrap()
    }

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        each_way(|path, begin| {
            for text in ["new", "replaced", "new"] {
                let before = fs::read(path).ok();
                let mut dropped = begin();
                dropped.write_all(b"unwanted").unwrap();
                dropped.flush().unwrap();
                assert_eq!(fs::read(path).ok(), before);
                drop(dropped);
                let mut file = begin();
                file.write_all(text.as_bytes()).unwrap();
                assert_eq!(fs::read(path).ok(), before);
                match text {
                    "new" => file.publish_unsynced().unwrap(),
                    _ => file.publish().unwrap(),
                }
                assert_eq!(only(path), text.as_bytes());
            }
        });
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_replaced() {
        each_way(|path, begin| {
            let begin = || {
                let mut file = begin();
                file.is_new = true;
                file.write_all(b"second").unwrap();
                file
            };
            let second = begin();
            fs::write(path, "first").unwrap();
            assert_eq!(second.publish().unwrap_err().code(), "overwrite");
            assert_eq!(only(path), b"first");
            fs::remove_file(path).unwrap();
            begin().publish().unwrap();
            assert_eq!(only(path), b"second");
        });
    }

    /// Only an administrator may give files away, so a failure to do so is accepted.
    #[cfg(unix)]
    #[test]
    fn permissions_and_owner_stay() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        each_way(|path, begin| {
            fs::write(path, "").unwrap();
            for mode in [0o600, 0o666, 0o751] {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                begin().publish().unwrap();
                assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, mode);
            }
            let _ = chown(path, Some(12_345), Some(23_456));
            let owner = |metadata: fs::Metadata| (metadata.uid(), metadata.gid());
            let before = owner(fs::metadata(path).unwrap());
            begin().publish().unwrap();
            assert_eq!(owner(fs::metadata(path).unwrap()), before);
        });
    }

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_those_in_use_stay() {
        each_way(|path, begin| {
            let at = |serial| temporary(path, serial).unwrap();
            for serial in 0..4 {
                fs::write(at(serial), "theirs").unwrap();
            }
            let _in_use = [0, 2].map(|serial| {
                let file = exclusive().open(at(serial)).unwrap();
                lock(&file).unwrap();
                file
            });
            fs::write(path, "old").unwrap();
            let mut file = begin();
            file.write_all(b"ours").unwrap();
            file.publish().unwrap();
            assert_eq!(fs::read(path).unwrap(), b"ours");
            let left = [0, 1, 2, 3].map(|serial| at(serial).exists());
            assert_eq!(left, [true, false, true, false]);
        });
    }

    #[cfg(windows)]
    #[test]
    fn a_file_that_another_program_has_open_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.zt");
        fs::write(&path, "old").unwrap();
        let mut options = File::options();
        // Reading and writing are shared, renaming is not: as in C.
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 1 | 2);
        let open = options.read(true).open(&path).unwrap();
        let new = AtomicFile::create(&path).unwrap();
        let error = new.publish().unwrap_err().to_string();
        assert!(error.ends_with("a program may have the file open"), "{error}");
        drop(open);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_path_that_cannot_hold_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for name in ["file/x", "folder/x"] {
            let path = folder.path().join(name);
            let error = AtomicFile::create(&path).unwrap_err();
            assert_eq!((error.code(), error.path()), ("io", Some(&*path)));
        }
        // The folder is removed before the file is published. Windows keeps one that has an open file.
        if cfg!(windows) {
            return;
        }
        for is_new in [false, true] {
            each_way(|path, begin| {
                let mut file = begin();
                file.is_new = is_new;
                fs::remove_dir_all(folder_of(path)).unwrap();
                assert_eq!(file.publish().unwrap_err().code(), "io");
            });
        }
    }
}
