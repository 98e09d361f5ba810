//! The sink that a file is written to.

use std::io::{self, BufWriter, Write};

use zt::container::Exact;

/// A sink that counts its bytes. Small writes are gathered.
pub struct Sink<'s> {
    out: Box<dyn Write + Send + 's>,
    byte_len: u64,
}

impl<'s> Sink<'s> {
    /// A sink that writes to `out`.
    #[must_use]
    pub fn new(out: impl Write + Send + 's) -> Self {
        Sink::buffered(BufWriter::with_capacity(1 << 16, out))
    }

    /// A sink that writes to `out`, which gathers small writes itself.
    #[must_use]
    pub fn buffered(out: impl Write + Send + 's) -> Self {
        Sink {
            out: Box::new(out),
            byte_len: 0,
        }
    }

    /// Bytes written so far, including those that are still buffered.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.byte_len
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        self.byte_len = self.byte_len.plus(len as u64);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
