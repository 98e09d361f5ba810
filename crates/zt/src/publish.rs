//! A file that appears under its name whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Fault, Result};

/// Small writes are gathered; larger ones go straight through.
const BUFFER: usize = 1 << 20;

/// Writes to a temporary name beside the target, which [`AtomicFile::publish`] makes durable and
/// renames over it. Dropped before that, it removes what it wrote; the old file is untouched.
///
/// A target that exists and is no regular file (a device, a pipe) is written to directly, because
/// renaming over `/dev/null` would replace the device.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` only while publishing.
    file: Option<BufWriter<File>>,
    /// Where the bytes are until they are published; `None` for a device or a pipe.
    temporary: Option<PathBuf>,
    target: PathBuf,
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

    fn begin(path: &Path) -> Result<Self> {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let permissions = match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => return Err(Fault::IsAFolder.into()),
            Ok(metadata) if !metadata.is_file() => {
                let file = fs::OpenOptions::new().write(true).open(&target)?;
                let file = Some(BufWriter::with_capacity(BUFFER, file));
                return Ok(AtomicFile {
                    file,
                    temporary: None,
                    target,
                });
            }
            Ok(metadata) => Some(metadata.permissions()),
            Err(_) => None,
        };
        let (file, temporary) = create_beside(&target)?;
        let file = Some(BufWriter::with_capacity(BUFFER, file));
        let this = AtomicFile {
            file,
            temporary: Some(temporary),
            target,
        };
        if let (Some(permissions), Some(temporary)) = (permissions, &this.temporary) {
            fs::set_permissions(temporary, permissions)?;
        }
        Ok(this)
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
        buffered.get_ref().sync_all()?;
        drop(buffered); // Some systems refuse to rename an open file.
        fs::rename(temporary, target)?;
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

/// A new file in the folder of `target`, so that the rename stays on one file system.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
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
        match fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
        {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
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
