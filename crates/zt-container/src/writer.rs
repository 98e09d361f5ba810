//! Framing, written front to back: header, padded blobs, manifest, footer.

use std::io::{self, Write};

use crate::error::{Error, Misuse, Result};
use crate::{ALIGNMENT, Digest, DigestAlgorithm, Hasher, MAGIC, Span};

/// Writes the framing of layout 1.1/1.2 to any sink; nothing ever seeks back.
///
/// Invariant: it stores bytes as they are given; compressing them is the caller's. After an error
/// the writer is poisoned and every further call fails, because the sink's position is unknown.
///
/// ```
/// use zt_container::{ALIGNMENT, Container, ContainerWriter, Limits, Memory, Source};
/// let mut writer = ContainerWriter::new(Vec::new())?;
/// let mut blob = writer.begin_blob(ALIGNMENT, None)?;
/// blob.write(b"stored bytes")?;
/// let (span, _) = blob.finish()?;
/// assert_eq!(span.offset(), 64);
/// let file = writer.finish(b"\xA0")?;
/// assert_eq!(Memory::new(file).slice(span), Some(&b"stored bytes"[..]));
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct ContainerWriter<W> {
    sink: W,
    offset: u64,
    poisoned: bool,
}

impl<W: Write> ContainerWriter<W> {
    /// Begins a container: writes the header magic.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the sink fails.
    pub fn new(sink: W) -> Result<Self> {
        let mut writer = ContainerWriter {
            sink,
            offset: 0,
            poisoned: false,
        };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    /// Bytes written so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The sink; writing to it directly breaks the file.
    pub const fn sink(&self) -> &W {
        &self.sink
    }

    /// Pads with zeros to a multiple of `alignment` and begins a blob there, whose bytes are hashed
    /// as they pass where `digest` asks for it.
    ///
    /// # Errors
    ///
    /// [`Misuse::Alignment`] where `alignment` is not a power of two of at least 64,
    /// [`Misuse::Poisoned`], [`Error::Unsupported`] where the digest is not built in,
    /// [`Error::Io`].
    pub fn begin_blob(
        &mut self,
        alignment: u64,
        digest: Option<DigestAlgorithm>,
    ) -> Result<BlobWriter<'_, W>> {
        if !alignment.is_power_of_two() || alignment < ALIGNMENT {
            return Err(Error::Misuse(Misuse::Alignment(alignment)));
        }
        let hasher = digest.map(Hasher::new).transpose()?;
        let start = self
            .offset
            .checked_next_multiple_of(alignment)
            .ok_or(TOO_LONG)?;
        let mut padding = start - self.offset;
        while padding > 0 {
            let len = padding.min(ZEROS.len() as u64);
            self.write(&ZEROS[..usize::try_from(len).unwrap_or(ZEROS.len())])?;
            padding -= len;
        }
        self.poisoned = true; // Until the blob is finished.
        Ok(BlobWriter {
            writer: self,
            start,
            hasher,
        })
    }

    /// Writes the manifest (CBOR, not looked at), its size and the footer magic, and flushes.
    ///
    /// # Errors
    ///
    /// [`Misuse::Poisoned`], [`Error::Io`].
    pub fn finish(mut self, manifest: &[u8]) -> Result<W> {
        self.write(manifest)?;
        self.write(&(manifest.len() as u64).to_le_bytes())?;
        self.write(&MAGIC)?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.poisoned {
            return Err(Error::Misuse(Misuse::Poisoned));
        }
        let offset = self
            .offset
            .checked_add(bytes.len() as u64)
            .ok_or(TOO_LONG)?;
        self.sink
            .write_all(bytes)
            .inspect_err(|_| self.poisoned = true)?;
        self.offset = offset;
        Ok(())
    }
}

const TOO_LONG: Error = Error::Misuse(Misuse::TooLong);

/// Padding reaches up to a page, where large blobs begin on one.
static ZEROS: [u8; 4096] = [0; 4096];

/// Takes the stored bytes of one blob. Dropping it unfinished poisons its writer: the bytes are in
/// the file, and nothing says whose they are.
#[derive(Debug)]
pub struct BlobWriter<'w, W> {
    writer: &'w mut ContainerWriter<W>,
    start: u64,
    hasher: Option<Hasher>,
}

impl<W: Write> BlobWriter<'_, W> {
    /// Stores the next bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the sink fails.
    pub fn write(&mut self, stored: &[u8]) -> Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(stored);
        }
        self.writer.poisoned = false;
        self.writer.write(stored)?;
        self.writer.poisoned = true;
        Ok(())
    }

    /// Ends the blob: where it lies and, where asked for, its digest.
    ///
    /// # Errors
    ///
    /// None today; reserved for sinks that report late.
    pub fn finish(self) -> Result<(Span, Option<Digest>)> {
        let span = Span::between(self.start, self.writer.offset).unwrap_or_default();
        self.writer.poisoned = false;
        Ok((span, self.hasher.map(Hasher::finish)))
    }
}

impl<W: Write> Write for BlobWriter<'_, W> {
    fn write(&mut self, stored: &[u8]) -> io::Result<usize> {
        match BlobWriter::write(self, stored) {
            Ok(()) => Ok(stored.len()),
            Err(Error::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.sink.flush()
    }
}
