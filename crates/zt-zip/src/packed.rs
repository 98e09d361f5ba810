//! A member that is compressed with bzip2 or LZMA, as a source. Programs that use Python's `zipfile`
//! write such members; NumPy reads them.
//!
//! Neither decoder can be copied, so no states are kept as for deflate. A read that continues the last
//! one goes on from there, and any other read decodes from the beginning.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

use bzip2::{Decompress, Status};
use zt_container::memory::{end_of_read, in_memory};
use zt_container::{LimitExceeded, Source, Span};

use crate::crc;
use crate::error::{Error, ZipViolation};
use crate::inflate::announced;

pub(super) const BZIP2: u16 = 12;
pub(super) const LZMA: u16 = 14;

/// Bytes that are read, or decoded only to be skipped, at a time.
const PIECE: usize = 64 << 10;

/// The decoder is dropped after a read that ends before this offset: many members are only opened for
/// their header, and a decoder of bzip2 takes 4 MiB.
const NEAR: u64 = 64 << 10;

/// The largest dictionary of LZMA, as `xz -9` has it. Python's `zipfile` writes 8 MiB.
const MAX_DICTIONARY: u32 = 64 << 20;

/// A compressed member. A read that reaches its end compares its length and its CRC-32.
pub(super) struct Packed {
    archive: Arc<dyn Source>,
    method: u16,
    stored: Span,
    byte_len: u64,
    crc: u32,
    cursor: Mutex<Option<Cursor>>,
}

/// The decoder at one offset of the content.
struct Cursor {
    stream: Box<dyn Read + Send>,
    /// Why the archive could not be read, which decoders report in words of their own.
    failure: Arc<Mutex<Option<io::Error>>>,
    /// Bytes of content decoded so far.
    output: u64,
    /// The CRC-32 of these bytes.
    crc: crc32fast::Hasher,
}

/// The stored bytes as a stream.
struct Stored {
    archive: Arc<dyn Source>,
    at: u64,
    end: u64,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Packed {
    /// `method` is [`BZIP2`] or [`LZMA`].
    pub(super) fn new(
        archive: Arc<dyn Source>,
        method: u16,
        stored: Span,
        byte_len: u64,
        crc: u32,
    ) -> Self {
        Packed { archive, method, stored, byte_len, crc, cursor: Mutex::default() }
    }

    /// The decoder at the beginning.
    fn start(&self) -> io::Result<Cursor> {
        let failure = Arc::default();
        let archive = Arc::clone(&self.archive);
        let (at, end) = (self.stored.offset(), self.stored.end());
        let stored = Stored { archive, at, end, failure: Arc::clone(&failure) };
        let stored = BufReader::with_capacity(PIECE, stored);
        let stream = match self.method {
            BZIP2 => {
                Ok(Box::new(Bzip2 { stored, decoder: Decompress::new(false), is_over: false })
                    as Box<_>)
            }
            _ => self.lzma(stored),
        };
        let mut cursor = Cursor {
            stream: Box::new(io::empty()),
            failure,
            output: 0,
            crc: crc32fast::Hasher::new(),
        };
        cursor.stream = stream.map_err(|error| self.fault(&cursor, error))?;
        Ok(cursor)
    }

    /// The version of the encoder, the length of the properties, and these: a byte and the length of the
    /// dictionary. An end marker follows the data. APPNOTE.TXT §5.8.8.
    fn lzma(&self, mut stored: BufReader<Stored>) -> io::Result<Box<dyn Read + Send>> {
        let mut head = [0; 9];
        stored.read_exact(&mut head)?;
        let [_, _, 5, 0, properties, dictionary @ ..] = head else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let found = u32::from_le_bytes(dictionary);
        if found > MAX_DICTIONARY {
            let limit = MAX_DICTIONARY;
            return Err(Error::from(ZipViolation::Dictionary { found, limit }).into());
        }
        let unknown = u64::MAX;
        let reader =
            lzma_rust2::LzmaReader::new_with_props(stored, unknown, properties, found, None);
        Ok(Box::new(reader?))
    }

    fn fill(&self, cursor: &mut Cursor, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut scratch = Vec::new();
        while cursor.output < offset {
            let skipped = offset.strict_sub(cursor.output);
            scratch.resize(in_memory(skipped.min(PIECE as u64)), 0);
            self.advance(cursor, &mut scratch)?;
        }
        for part in out.chunks_mut(PIECE) {
            self.advance(cursor, part)?;
        }
        Ok(())
    }

    /// Fills `out` with the next bytes.
    fn advance(&self, cursor: &mut Cursor, out: &mut [u8]) -> io::Result<()> {
        let read = cursor.stream.read_exact(out);
        read.map_err(|error| self.fault(cursor, error))?;
        cursor.crc.update(out);
        cursor.output = cursor.output.strict_add(out.len() as u64);
        Ok(())
    }

    /// Checks that the content ends here, and that the CRC-32 is correct.
    fn finish(&self, mut cursor: Cursor) -> io::Result<()> {
        match cursor.stream.read(&mut [0]) {
            Ok(0) => {}
            Ok(_) => return Err(self.damaged(cursor.output)),
            Err(error) => return Err(self.fault(&cursor, error)),
        }
        let found = cursor.crc.finalize();
        crc::expect(self.crc, found)
    }

    /// What went wrong: a fault of ours as it is, a failure of the archive, or damaged data.
    fn fault(&self, cursor: &Cursor, error: io::Error) -> io::Error {
        let failure = cursor.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_ours = error.get_ref().is_some_and(|inner| inner.is::<Error>());
        let is_memory = error.kind() == io::ErrorKind::OutOfMemory;
        match failure {
            Some(failure) => failure,
            None if is_ours => error,
            None if is_memory => {
                let byte_len = self.byte_len;
                let refused = LimitExceeded::Allocation { byte_len };
                Error::from(zt_container::Error::Limit(refused)).into()
            }
            None => self.damaged(cursor.output),
        }
    }

    fn damaged(&self, at: u64) -> io::Error {
        let (method, stored) = (self.method, self.stored);
        Error::from(ZipViolation::Packed { method, at, stored }).into()
    }
}

/// One stream of bzip2. The crate's own reader takes a lack of memory for damage.
struct Bzip2 {
    stored: BufReader<Stored>,
    decoder: Decompress,
    is_over: bool,
}

impl Read for Bzip2 {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !self.is_over && !buf.is_empty() {
            let input = self.stored.fill_buf()?;
            let is_end = input.is_empty();
            let (read, written) = (self.decoder.total_in(), self.decoder.total_out());
            let status = self.decoder.decompress(input, buf);
            let consumed = in_memory(self.decoder.total_in().strict_sub(read));
            let written = in_memory(self.decoder.total_out().strict_sub(written));
            self.stored.consume(consumed);
            match status {
                Ok(Status::StreamEnd) => self.is_over = true,
                Ok(Status::MemNeeded) => return Err(io::ErrorKind::OutOfMemory.into()),
                Ok(_) if is_end && written == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}

impl Read for Stored {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.end.strict_sub(self.at);
        let len = in_memory(left.min(buf.len() as u64));
        let part = buf.get_mut(..len).unwrap_or_default();
        if let Err(error) = self.archive.read_at(self.at, part) {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        self.at = self.at.strict_add(len as u64);
        Ok(len)
    }
}

impl Source for Packed {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn is_remote(&self) -> bool {
        self.archive.is_remote()
    }

    fn will_read_all(&self, spans: &[Span]) {
        if let Some(span) = announced(self.stored, self.byte_len, 0, spans) {
            self.archive.will_read_all(&[span]);
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        let mut kept = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = kept.take().filter(|cursor| cursor.output <= offset);
        let mut cursor = usable.map_or_else(|| self.start(), Ok)?;
        self.fill(&mut cursor, offset, buf)?;
        if cursor.output == self.byte_len {
            return self.finish(cursor);
        }
        if cursor.output > NEAR {
            *kept = Some(cursor);
        }
        Ok(())
    }
}
