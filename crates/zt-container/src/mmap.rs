//! Maps of files: the only module of the workspace's Rust crates that holds `unsafe` code.

use std::io;
use std::path::Path;

use crate::error::Result;
use crate::source::{Source, copy_of, open_regular, slice_of};
use crate::span::Span;

/// A file mapped read-only into memory. It lends its bytes without copying; the system reads a page from
/// the disk when it is first touched.
///
/// No call uses a map by default: its bytes are undefined once another process changes the file. See
/// [`Map::open`].
#[derive(Debug)]
pub struct Map(Option<memmap2::Mmap>);

impl Map {
    /// Maps the regular file at `path`. Cost: no I/O beyond opening it.
    ///
    /// # Safety
    ///
    /// While the map or anything borrowed from it lives, no process may change or truncate the file.
    /// Otherwise bytes may change after they were checked, and touching a page beyond the new end kills the
    /// process (`SIGBUS`). To replace the file by renaming another over it, as our writers do, is harmless:
    /// the map keeps the old file.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Io`] if the file cannot be opened or mapped, or is a folder;
    /// [`crate::Error::Unsupported`] if it is a pipe or a device.
    #[expect(unsafe_code, reason = "the caller vouches for the file, see # Safety")]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = open_regular(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Map(None)); // No system maps zero bytes.
        }
        // SAFETY: a shared read-only map of a regular file aliases no memory of Rust's. Its bytes
        // are plain `u8`, and every value is valid. They must not change while borrowed, which only
        // the other users of the file can break: this function is unsafe and passes that duty on.
        // A concurrent change of the file makes reads see either version, or SIGBUS past its end.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Map(Some(map)))
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Source for Map {
    fn byte_len(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn slice(&self, span: Span) -> Option<&[u8]> {
        slice_of(self.bytes(), span)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        copy_of(self.bytes(), offset, buf)
    }
}
