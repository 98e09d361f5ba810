//! The lock of the one program that may change a file.
//!
//! On Linux it is a write lock of the open file description, `fcntl(F_OFD_SETLK)`. Only a program that
//! may write to the file can hold one, so `flock(LOCK_SH)` of a reader keeps no editor away. Kernels
//! before 3.15, some file systems and other systems have `flock` alone, which is used there. Any lock
//! ends with its process.
//!
//! On Windows the lock is the share mode of [`exclusive`]: no other handle can write to the file. A lock of
//! `LockFileEx` would keep readers out.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use zt_container::open_regular;

#[cfg(not(windows))]
use crate::disk::uninterrupted;
use crate::error::{Error, Fault, Result};

/// Options to read and write a file that is then locked. On Windows they lock it.
pub(crate) fn exclusive() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true);
    #[cfg(windows)]
    {
        /// `FILE_SHARE_READ` and `FILE_SHARE_DELETE`: others may read, rename and replace the file.
        const NO_WRITERS: u32 = 1 | 4;
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, NO_WRITERS);
    }
    options
}

/// Locks a file that [`exclusive`] opened, until its last handle is closed.
/// Fails with code `locked` if another program has it, and with `no-locks` if the file system has
/// no locks.
#[cfg(windows)]
pub(crate) fn lock(_: &File) -> Result<()> {
    Ok(())
}

/// Locks a file that [`exclusive`] opened, until its last handle is closed.
/// Fails with code `locked` if another program has it, and with `no-locks` if the file system has
/// no locks.
#[cfg(not(windows))]
pub(crate) fn lock(file: &File) -> Result<()> {
    #[cfg(target_os = "linux")]
    match description::lock(file) {
        Ok(true) => return Ok(()),
        Ok(false) if description::is_kept_by_readers(file) => {
            return Err(Fault::LockedByReader.into());
        }
        Ok(false) => return Err(Fault::Locked.into()),
        Err(error) if !is_missing(&error) => return Err(error.into()),
        Err(_) => {}
    }
    match try_flock(|| file.try_lock()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::Locked.into()),
        Err(error) if is_missing(&error) => Err(Fault::NoLocks.into()),
        Err(error) => Err(error.into()),
    }
}

/// Whether another handle has the file locked for an edit. `false` if the system has no such query.
#[cfg(not(windows))]
fn is_locked(file: &File) -> bool {
    #[cfg(target_os = "linux")]
    if let Ok(is_locked) = description::is_locked(file) {
        return is_locked;
    }
    // Only an attempt shows it, which locks the file for a moment.
    match try_flock(|| file.try_lock_shared()) {
        Ok(true) => {
            let _ = file.unlock(); // The end of the handle would do it as well.
            false
        }
        Ok(false) => true,
        Err(_) => false,
    }
}

/// Opens a file for changes and locks it, until the handle is closed. The file has its name when this
/// returns: a file that replaces it meanwhile is opened and locked instead.
///
/// # Errors
///
/// Code `locked` if another program is editing the file; code `no-locks` if the file system has no
/// locks; [`crate::ErrorKind::Io`].
pub fn open_locked(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    let open = || loop {
        // Refuses pipes and devices before it opens the file for writing.
        drop(open_regular(path)?);
        let file = match exclusive().open(path) {
            Err(error) if is_taken(&error) => return Err(Fault::Locked.into()),
            opened => opened?,
        };
        lock(&file)?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    };
    open().map_err(|error: Error| error.with_path(path))
}

/// Refuses to replace a file that a program is editing. A file can be replaced if it cannot be opened,
/// or if the system cannot query its lock.
///
/// # Errors
///
/// Code `locked`.
pub fn expect_unlocked(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if is_path_locked(path) {
        return Err(Error::from(Fault::Locked).with_path(path));
    }
    Ok(())
}

/// Whether another handle has the file at `path` locked for an edit. `false` if it cannot be opened, or
/// if the system cannot query its lock.
#[cfg(not(windows))]
pub(crate) fn is_path_locked(path: &Path) -> bool {
    open_regular(path).is_ok_and(|file| is_locked(&file))
}

/// Whether another handle has the file at `path` locked for an edit. `false` if it cannot be opened.
#[cfg(windows)]
pub(crate) fn is_path_locked(path: &Path) -> bool {
    let is_taken = || File::options().write(true).open(path).is_err_and(|error| is_taken(&error));
    open_regular(path).is_ok() && is_taken()
}

/// Whether a file was not opened because another handle excludes it.
fn is_taken(error: &io::Error) -> bool {
    /// `ERROR_SHARING_VIOLATION`.
    const TAKEN: i32 = 32;
    cfg!(windows) && error.raw_os_error() == Some(TAKEN)
}

/// Whether `path` leads to the open file.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok(open.dev() == named.dev() && open.ino() == named.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `path` leads to the open file.
#[cfg(not(unix))]
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use same_file::Handle;
    match Handle::from_path(path) {
        Ok(named) => Ok(named == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the lock was taken.
#[cfg(not(windows))]
fn try_flock(
    mut call: impl FnMut() -> std::result::Result<(), std::fs::TryLockError>,
) -> io::Result<bool> {
    use std::fs::TryLockError;
    uninterrupted(|| match call() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    })
}

/// Whether the error means that there is no such lock here: not in this kernel (`EINVAL`), or not on
/// this file system (Lustre, some of FUSE and NFS).
#[cfg(not(windows))]
fn is_missing(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::Errno;
        let missing = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOLCK];
        let code = error.raw_os_error();
        if missing.iter().any(|it| code == Some(it.raw_os_error())) {
            return true;
        }
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Locks of open file descriptions.
#[cfg(target_os = "linux")]
mod description {
    use std::fs::File;
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::uninterrupted;

    /// A lock of the whole file.
    fn of(lock: i32) -> libc::flock {
        libc::flock {
            l_type: i16::try_from(lock).unwrap_or_default(),
            l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        }
    }

    /// Whether the lock was taken.
    pub(super) fn lock(file: &File) -> io::Result<bool> {
        let wanted = of(libc::F_WRLCK);
        uninterrupted(|| match fcntl(file, FcntlArg::F_OFD_SETLK(&wanted)) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(error) => Err(error.into()),
        })
    }

    /// The lock of another handle that `wanted` conflicts with.
    fn in_the_way(file: &File, wanted: i32) -> io::Result<Option<i32>> {
        let mut found = of(wanted);
        uninterrupted(|| Ok(fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?))?;
        let found = i32::from(found.l_type);
        Ok((found != libc::F_UNLCK).then_some(found))
    }

    pub(super) fn is_locked(file: &File) -> io::Result<bool> {
        Ok(in_the_way(file, libc::F_RDLCK)?.is_some())
    }

    /// Whether only read locks keep the file from being locked. They need no right to write.
    pub(super) fn is_kept_by_readers(file: &File) -> bool {
        matches!(in_the_way(file, libc::F_WRLCK), Ok(Some(libc::F_RDLCK)))
    }
}
