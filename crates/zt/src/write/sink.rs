//! The destination of a writer.

use std::fs;
use std::io::{self, BufWriter, Write};

use zt_container::Span;

use crate::disk::publish::{AtomicFile, BUFFER};

pub(crate) enum Sink<'w> {
    File(AtomicFile),
    /// A file that the caller publishes.
    Lent(&'w mut AtomicFile),
    Stream(Box<dyn Write + Send + 'w>),
    /// The end of a file that is edited.
    Tail(Box<dyn Tail>),
}

/// The growing end of a file that is edited. If it is dropped before the commit, it undoes its
/// writes.
pub(crate) trait Tail: Write + Send {
    /// Makes room for `byte_len` bytes after the written ones.
    fn make_room(&mut self, byte_len: u64) -> io::Result<()>;

    /// Makes the written bytes part of the file, and durable.
    fn commit(&mut self) -> io::Result<()>;
}

impl<'w> Sink<'w> {
    pub(crate) fn stream(sink: impl Write + Send + 'w) -> Self {
        // Small writes are gathered, so that many small tensors do not take as many system calls.
        Sink::Stream(Box::new(BufWriter::with_capacity(BUFFER, sink)))
    }

    /// Lets the system append bytes of a file. Returns their number, which is less than all if the system
    /// cannot copy them.
    pub(crate) fn copy_from(&mut self, file: &fs::File, span: Span) -> io::Result<u64> {
        match self {
            Sink::File(to) => to.copy_from(file, span),
            Sink::Lent(to) => to.copy_from(file, span),
            Sink::Stream(_) | Sink::Tail(_) => Ok(0),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Sink::File(file) => file,
            Sink::Lent(file) => file,
            Sink::Stream(stream) => stream,
            Sink::Tail(tail) => tail,
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}
