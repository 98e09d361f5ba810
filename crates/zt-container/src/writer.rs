//! Writing a container front to back: header, padded blobs, manifest, footer.

use std::io::Write;

use crate::digest::{Digest, DigestAlgorithm};
use crate::error::{Error, Misuse, Result};
use crate::hasher::Hasher;
use crate::magic::{ALIGNMENT, MAGIC};
use crate::memory::in_memory;
use crate::span::Span;

/// Writes the framing of layout 1.1/1.2 to any sink, front to back: it never seeks.
///
/// Invariant: it stores bytes unchanged; a caller compresses them first. After an error of the sink every
/// further call fails, because the number of bytes that arrived is unknown.
///
/// ```
/// use zt_container::{ALIGNMENT, Container, ContainerWriter, Limits, Memory, Source};
/// let mut writer = ContainerWriter::new(Vec::new())?;
/// writer.begin_blob(ALIGNMENT, None)?;
/// writer.write(b"stored bytes")?;
/// let (span, _) = writer.end_blob()?;
/// assert_eq!(span.offset(), 64);
/// let file = writer.finish(b"\xA0")?;
/// assert_eq!(Memory::new(file).slice(span), Some(&b"stored bytes"[..]));
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct ContainerWriter<W> {
    sink: W,
    offset: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    BetweenBlobs,
    InBlob { start: u64, hasher: Option<Hasher> },
    Failed,
}

impl<W: Write> ContainerWriter<W> {
    /// Begins a container: writes the header magic.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the sink fails.
    pub fn new(sink: W) -> Result<Self> {
        let mut writer = Self::resume(sink, 0);
        writer.emit(&MAGIC)?;
        Ok(writer)
    }

    /// Continues a container behind its first `offset` bytes, which the sink has already: for editing a
    /// file in place.
    pub const fn resume(sink: W, offset: u64) -> Self {
        ContainerWriter { sink, offset, state: State::BetweenBlobs }
    }

    /// The sink. Bytes that a caller writes to it directly are not a part of the container.
    pub const fn sink_mut(&mut self) -> &mut W {
        &mut self.sink
    }

    /// The offset in the file of the next byte.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Pads with zeros to a multiple of `alignment` and begins a blob there. With `digest`, its bytes are
    /// hashed as they are written.
    ///
    /// # Errors
    ///
    /// [`Misuse::Alignment`] if `alignment` is not a power of two of at least 64, [`Misuse::Order`] within a
    /// blob, [`Error::Unsupported`] if the digest is not built in, [`Error::Io`].
    pub fn begin_blob(&mut self, alignment: u64, digest: Option<DigestAlgorithm>) -> Result<()> {
        if !alignment.is_power_of_two() || alignment < ALIGNMENT {
            return Err(Error::Misuse(Misuse::Alignment(alignment)));
        }
        self.expect_between_blobs()?;
        let hasher = digest.map(Hasher::new).transpose()?;
        let start = self.offset.checked_next_multiple_of(alignment);
        let start = start.ok_or(TOO_LONG)?;
        let mut padding = start.strict_sub(self.offset);
        while padding > 0 {
            let len = padding.min(ZEROS.len() as u64);
            self.emit(ZEROS.split_at(in_memory(len)).0)?;
            padding = padding.strict_sub(len);
        }
        self.state = State::InBlob { start, hasher };
        Ok(())
    }

    /// Writes the next bytes of the open blob.
    ///
    /// # Errors
    ///
    /// [`Misuse::Order`] if no blob is open, [`Error::Io`].
    pub fn write(&mut self, stored: &[u8]) -> Result<()> {
        let State::InBlob { hasher, .. } = &mut self.state else {
            return Err(Error::Misuse(Misuse::Order));
        };
        if let Some(hasher) = hasher {
            hasher.update(stored);
        }
        self.emit(stored)
    }

    /// Writes the next bytes of an open blob without a digest: `put` writes them to the sink itself, and
    /// returns their number.
    ///
    /// # Errors
    ///
    /// [`Misuse::Order`] if no such blob is open, the error of `put`.
    pub fn write_with(&mut self, put: impl FnOnce(&mut W) -> std::io::Result<u64>) -> Result<u64> {
        let State::InBlob { hasher: None, .. } = &self.state else {
            return Err(Error::Misuse(Misuse::Order));
        };
        let len = put(&mut self.sink).inspect_err(|_| self.state = State::Failed)?;
        self.offset = self.offset.checked_add(len).ok_or(TOO_LONG)?;
        Ok(len)
    }

    /// Ends the open blob. Returns its span and, if one was requested, its digest.
    ///
    /// # Errors
    ///
    /// [`Misuse::Order`] if no blob is open.
    pub fn end_blob(&mut self) -> Result<(Span, Option<Digest>)> {
        match std::mem::replace(&mut self.state, State::BetweenBlobs) {
            State::InBlob { start, hasher } => {
                let span = Span::exact_between(start, self.offset);
                Ok((span, hasher.map(Hasher::finish)))
            }
            state => {
                self.state = state;
                Err(Error::Misuse(Misuse::Order))
            }
        }
    }

    /// Writes the manifest (CBOR, not checked), its size and the footer magic, and flushes.
    ///
    /// # Errors
    ///
    /// [`Misuse::Order`] within a blob, [`Misuse::NoManifest`] if it is empty, [`Error::Io`].
    pub fn finish(self, manifest: &[u8]) -> Result<W> {
        self.finish_from([manifest])
    }

    /// As [`ContainerWriter::finish`], for a manifest in pieces.
    ///
    /// # Errors
    ///
    /// As [`ContainerWriter::finish`].
    pub fn finish_from<'m>(mut self, manifest: impl IntoIterator<Item = &'m [u8]>) -> Result<W> {
        self.expect_between_blobs()?;
        let start = self.offset;
        for piece in manifest {
            self.emit(piece)?;
        }
        let byte_len = self.offset.strict_sub(start);
        if byte_len == 0 {
            return Err(Error::Misuse(Misuse::NoManifest));
        }
        self.emit(&byte_len.to_le_bytes())?;
        self.emit(&MAGIC)?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn expect_between_blobs(&self) -> Result<()> {
        match self.state {
            State::BetweenBlobs => Ok(()),
            _ => Err(Error::Misuse(Misuse::Order)),
        }
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<()> {
        let offset = self.offset.checked_add(bytes.len() as u64);
        let offset = offset.ok_or(TOO_LONG)?;
        let written = self.sink.write_all(bytes);
        written.inspect_err(|_| self.state = State::Failed)?;
        self.offset = offset;
        Ok(())
    }
}

const TOO_LONG: Error = Error::Misuse(Misuse::TooLong);

/// Padding is less than a page if large blobs are aligned to pages.
static ZEROS: [u8; 4096] = [0; 4096];
