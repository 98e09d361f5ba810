//! A reader that seeks, as a source.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::memory::end_of_read;
use crate::source::Source;

/// A reader that seeks, as a [`Source`]: a decrypted file, a member of an archive, a stream of your own.
///
/// Its users take turns: a read locks the reader, seeks, and reads. Threads wait for each other, and
/// no bytes are lent. [`FileSource`](crate::FileSource) reads a file from all threads at once.
///
/// The length is fixed when the source is made. A stream that becomes shorter gives
/// [`io::ErrorKind::UnexpectedEof`], and bytes that are added later are not read. Other changes are
/// found as in a file: by the digests.
///
/// ```
/// use zt_container::{Seekable, Source};
///
/// let reader = std::io::Cursor::new(b"ZTEN1000");
/// let source = Seekable::new(reader)?;
/// let mut version = [0; 4];
/// source.read_at(4, &mut version)?;
/// assert_eq!(&version, b"1000");
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct Seekable<R> {
    reader: Mutex<R>,
    byte_len: u64,
}

impl<R: Read + Seek> Seekable<R> {
    /// Takes the reader, wherever it is; offsets count from its first byte. It is moved to its end once,
    /// for the length.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) where the reader cannot seek.
    pub fn new(mut reader: R) -> Result<Self> {
        let byte_len = reader.seek(SeekFrom::End(0))?;
        let reader = Mutex::new(reader);
        Ok(Seekable { reader, byte_len })
    }
}

impl<R: Read + Seek + Send> Source for Seekable<R> {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        // A reader that panicked may be anywhere, and is moved.
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read_exact(buf)
    }
}
