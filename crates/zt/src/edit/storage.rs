//! The calls that an edit needs from the place that holds the file.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use zt_container::{FileSource, Source};

use crate::error::{Fault, Result};

/// A file that can be changed at any offset, and made durable.
///
/// When a call returns, every reader of the file sees its effect. The effect survives a loss of power
/// when a later [`Storage::sync`] has returned. An implementation must not cache or reorder calls: the
/// promises of an edit depend on their order.
pub trait Storage: Send + Sync {
    /// The length of the file, in bytes.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `buf` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] where the file ends first; what the system says.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`. What lies between the end of the file and `offset`
    /// becomes zero.
    ///
    /// # Errors
    ///
    /// What the system says; a part may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros, in one step.
    ///
    /// # Errors
    ///
    /// What the system says; nothing has changed then.
    fn set_len(&self, byte_len: u64) -> io::Result<()>;

    /// Reserves space behind the end of the file without making the file longer. An implementation may
    /// do nothing: then the write that does not fit reports the full disk.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::StorageFull`], or what else says that there is no space.
    fn reserve(&self, offset: u64, byte_len: u64) -> io::Result<()> {
        let _ = (offset, byte_len);
        Ok(())
    }

    /// Makes all writes durable. After an error their state is unknown, so the call is not repeated.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}

/// A regular file, locked for as long as this lives.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Opens the file that has the name once it is locked: a compaction may have put another in its
    /// place while this one waited for nothing.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        /// Readers that cannot open a file look whether it is locked, and have it for a moment.
        const MOMENTS: usize = 10;
        let mut refused = 0;
        loop {
            // Refuses what has no length before it is opened for writing.
            drop(FileSource::open(path)?);
            let file = File::options().read(true).write(true).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if refused < MOMENTS => {
                    refused += 1;
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(Fault::Locked.into()),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            if is_at(&file, path)? {
                return Ok(LockedFile(file));
            }
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (open, named) = (file.metadata()?, std::fs::metadata(path)?);
    Ok(open.dev() == named.dev() && open.ino() == named.ino())
}

/// Elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

impl Storage for LockedFile {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, buf, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        use std::io::{Read, Seek};
        let mut file = &self.0;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }

    #[cfg(not(unix))]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, Write};
        let mut file = &self.0;
        file.seek(io::SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn set_len(&self, byte_len: u64) -> io::Result<()> {
        self.0.set_len(byte_len)
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, byte_len: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.0, FallocateFlags::KEEP_SIZE, offset, byte_len) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
            // Some file systems cannot: then the write tells.
            _ => Ok(()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// The file as it is when the edit begins, for the reader of its objects.
pub(crate) struct Before<S> {
    pub(crate) storage: S,
    pub(crate) byte_len: u64,
}

impl<S: std::ops::Deref<Target = dyn Storage> + Send + Sync> Source for Before<S> {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.byte_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.storage.read_at(offset, buf)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// As after a compaction.
    #[test]
    fn a_replaced_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("x"), folder.path().join("y"));
        let open = File::create(&path).unwrap();
        assert!(is_at(&open, &path).unwrap());
        std::fs::write(&other, b"").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!is_at(&open, &path).unwrap());
    }

    /// Longer than any file: what a full disk says comes the same way.
    #[test]
    #[cfg(target_os = "linux")]
    fn missing_space_is_an_error() {
        let file = LockedFile(tempfile::tempfile().unwrap());
        let most = i64::MAX.unsigned_abs();
        let error = file.reserve(most, most).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(file.byte_len().unwrap(), 0);
    }
}
