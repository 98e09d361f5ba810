//! The sink that a file is written to.

use std::io::{self, BufWriter, Write};
use zt::foreign::AtomicFile;

/// A sink that counts its bytes. Small writes are gathered.
pub struct Sink<'s> {
    out: Out<'s>,
    byte_len: u64,
}

enum Out<'s> {
    File(&'s mut AtomicFile),
    Stream(Box<dyn Write + Send + 's>),
}

impl<'s> Sink<'s> {
    /// A sink that writes to `out`.
    pub fn new(out: impl Write + Send + 's) -> Self {
        Sink::buffered(BufWriter::with_capacity(1 << 16, out))
    }

    /// A sink that writes to `out`, which gathers small writes itself.
    pub fn buffered(out: impl Write + Send + 's) -> Self {
        Sink { out: Out::Stream(Box::new(out)), byte_len: 0 }
    }

    /// A sink that writes to a file, which the caller publishes.
    pub const fn file(file: &'s mut AtomicFile) -> Self {
        Sink { out: Out::File(file), byte_len: 0 }
    }

    /// The file, if this is one: bytes of other files can be copied to it by the system.
    pub const fn file_mut(&mut self) -> Option<&mut AtomicFile> {
        match &mut self.out {
            Out::File(file) => Some(file),
            Out::Stream(_) => None,
        }
    }

    /// Bytes written so far, including those that are still buffered.
    pub fn byte_len(&self) -> u64 {
        match &self.out {
            Out::File(file) => file.byte_len(),
            Out::Stream(_) => self.byte_len,
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = match &mut self.out {
            Out::File(file) => file.write(bytes)?,
            Out::Stream(stream) => stream.write(bytes)?,
        };
        self.byte_len = self.byte_len.strict_add(len as u64);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::File(file) => file.flush(),
            Out::Stream(stream) => stream.flush(),
        }
    }
}
