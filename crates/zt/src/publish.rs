//! A file that appears under its name whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Fault, Result};
use crate::reserve::ReservingFile;

/// Small writes are gathered; larger ones go straight through, such as most frames.
pub(crate) const BUFFER: usize = 256 << 10;

/// Writes to a temporary name beside the target, which [`AtomicFile::publish`] makes durable and
/// renames over it. Dropped before that, it removes what it wrote; the old file is untouched.
///
/// A target that exists and is no regular file (a device, a pipe) is written to directly, because
/// renaming over `/dev/null` would replace the device.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while publishing.
    file: Option<BufWriter<ReservingFile>>,
    /// Where the bytes are until they are published; `None` for a device or a pipe.
    temporary: Option<PathBuf>,
    target: PathBuf,
    /// Whether a file that has the name by now stays.
    is_new: bool,
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
        Self::begin(path).map_err(|error| error.with_path(path))
    }

    /// As [`AtomicFile::create`], for a file that must not be there yet: one that appears in the
    /// meantime is not replaced either.
    ///
    /// # Errors
    ///
    /// As [`AtomicFile::create`]; [`std::io::ErrorKind::AlreadyExists`], here or when it is
    /// published.
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if fs::symlink_metadata(path).is_ok() {
            let error = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(crate::Error::from(error).with_path(path));
        }
        let mut file = Self::begin(path).map_err(|error| error.with_path(path))?;
        file.is_new = true;
        Ok(file)
    }

    fn begin(path: &Path) -> Result<Self> {
        let target = resolved(path)?;
        let replaced = match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(Fault::IsAFolder.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = fs::OpenOptions::new().write(true).open(&target)?;
                return Ok(AtomicFile {
                    file: Some(buffered(file, false)),
                    temporary: None,
                    target,
                    is_new: false,
                });
            }
            Ok(metadata) => Some(metadata),
            Err(_) => None,
        };
        let (file, temporary) = create_beside(&target, replaced.as_ref())?;
        Ok(AtomicFile {
            file: Some(buffered(file, true)),
            temporary: Some(temporary),
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
    pub fn publish(mut self) -> Result<()> {
        let target = std::mem::take(&mut self.target);
        self.commit(&target)
            .map_err(|error| crate::Error::from(error).with_path(&target))
    }

    fn commit(&mut self, target: &Path) -> io::Result<()> {
        let Some(mut buffered) = self.file.take() else {
            return Ok(());
        };
        buffered.flush()?;
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        buffered.get_mut().release()?;
        buffered.get_ref().file().sync_all()?;
        drop(buffered); // Some systems refuse to rename an open file.
        if self.is_new {
            // A rename replaces; a second name does not. Where there are no second names (FAT), the
            // look before the rename has to do.
            match fs::hard_link(temporary, target) {
                Ok(()) => fs::remove_file(temporary)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => fs::rename(temporary, target)?,
            }
        } else {
            fs::rename(temporary, target)?;
        }
        self.temporary = None;
        sync_folder(target)
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
        if let Some(temporary) = &self.temporary {
            if let Some(file) = self.file.take() {
                let _ = file.into_parts(); // Without flushing: the bytes are not wanted.
            }
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
    for _ in 0..MOST {
        match fs::canonicalize(&target) {
            Ok(target) => return Ok(target),
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

/// A new file in the folder of `target`, so that the rename stays on one file system. It is never
/// more readable than the file that it replaces, and belongs to the same user and group where this
/// process may give it to them.
fn create_beside(target: &Path, replaced: Option<&fs::Metadata>) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = target
        .file_name()
        .ok_or(io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    // Names are bounded at 255 bytes nearly everywhere; the target's may be that long already.
    let stem: String = name.chars().take(48).collect();
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if let Some(replaced) = replaced {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(replaced.permissions().mode() & 0o777);
    }
    loop {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary =
            target.with_file_name(format!(".{stem}.{}-{serial}.tmp", std::process::id()));
        match options.open(&temporary) {
            Ok(file) => {
                if let Err(error) = replaced.map_or(Ok(()), |replaced| keep(&file, replaced)) {
                    let _ = fs::remove_file(&temporary);
                    return Err(error);
                }
                return Ok((file, temporary));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives a file the owner and the permissions of the one that it replaces.
fn keep(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (replaced.uid(), replaced.gid()) {
            // Only the administrator may: others keep what they have written.
            let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
        }
    }
    // The mask of the process may have taken bits away that the old file has.
    file.set_permissions(replaced.permissions())
}

/// The new name is durable once the folder is.
#[cfg(unix)]
fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
