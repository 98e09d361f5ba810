//! One blob, decoded piece by piece in bounded memory.

use std::borrow::Cow;

use crate::blob::{Blob, Encoding};
#[cfg(feature = "zstd")]
use crate::codec;
use crate::digest::Digest;
use crate::error::{Error, FramingViolation, LimitExceeded, Misuse, Result, ZstdFault};
use crate::hasher::Hasher;
use crate::limits::Limits;
use crate::memory::{in_memory, resize};
use crate::source::Source;
use crate::span::Span;

/// Stored bytes are read in pieces of this size if the source does not lend them.
///
/// Pays: nothing: `zt convert` of 75 MB in zstd takes as long with 64 KiB and with 1 MiB.
const PIECE: usize = 256 << 10;

/// Compressed blobs up to this size are read at once if all of the blob is decoded to one place.
///
/// Pays: a plan that reads matrices of 2.5 MB in zstd takes 0.74 of the CPU time of a stream. Tensors of 24 KB take as
/// long.
#[cfg(feature = "zstd")]
const ONE_SHOT: u64 = 8 << 20;

/// No zstd stream decodes to more than this many times its stored bytes: a block of 4 bytes (three bytes of
/// header, one repeated byte) decodes to at most 128 KiB.
const MAX_RATIO: u64 = 32_768;

/// Reads the decoded bytes of a blob in order.
///
/// Memory: at most 256 KiB of stored bytes, and zstd's window, which is hardly larger than the content. The
/// end is reported only after the decoded length and the digest were checked.
#[derive(Debug)]
pub struct BlobReader<'a> {
    source: &'a dyn Source,
    /// Stored bytes that were not read yet.
    rest: Span,
    piece: Cow<'a, [u8]>,
    /// Bytes of `piece` already decoded.
    taken: usize,
    decoder: Decoder,
    expected: Option<u64>,
    produced: u64,
    limit: u64,
    check: Option<(Hasher, &'a Digest)>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Done,
    /// An error was returned, so the end must not be reported.
    Failed,
}

#[derive(Debug)]
enum Decoder {
    Raw,
    #[cfg(feature = "zstd")]
    Zstd(codec::FrameDecoder),
}

impl std::fmt::Debug for dyn Source + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("byte_len", &self.byte_len()).finish()
    }
}

/// As [`BlobReader::read`]: the end comes once the content is whole and its digest is right.
impl std::io::Read for BlobReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        Ok(BlobReader::read(self, out)?)
    }
}

impl<'a> BlobReader<'a> {
    /// A reader at the start of `blob`. It checks the digest, unless its algorithm is unknown.
    ///
    /// # Errors
    ///
    /// As [`check_declared`]; [`Error::Unsupported`] if this build lacks the codec or the digest: a known
    /// digest is never skipped.
    pub fn new(source: &'a dyn Source, blob: &'a Blob, limits: &Limits) -> Result<Self> {
        let hasher = blob.algorithm().map(Hasher::new).transpose()?;
        Ok(BlobReader {
            check: hasher.zip(blob.digest.as_ref()),
            ..Self::unverified(source, blob, limits)?
        })
    }

    /// As [`BlobReader::new`], without checking the digest.
    ///
    /// # Errors
    ///
    /// As [`BlobReader::new`].
    pub fn unverified(source: &'a dyn Source, blob: &'a Blob, limits: &Limits) -> Result<Self> {
        check_declared(blob, limits)?;
        let decoder = match blob.encoding {
            Encoding::Raw => Decoder::Raw,
            #[cfg(feature = "zstd")]
            Encoding::Zstd => {
                // Saturates on purpose: the limit is less.
                let most = blob.span.byte_len().saturating_mul(MAX_RATIO);
                let most = blob.decoded_len.unwrap_or(most.min(limits.decoded_len));
                Decoder::Zstd(codec::FrameDecoder::new(most)?)
            }
            #[cfg(not(feature = "zstd"))]
            Encoding::Zstd => return Err(Error::Unsupported(crate::error::Unsupported::Zstd)),
        };
        if source.is_remote() {
            source.will_read_all(&[blob.span]);
        }
        Ok(BlobReader {
            source,
            rest: blob.span,
            piece: Cow::Borrowed(&[]),
            taken: 0,
            decoder,
            expected: blob.decoded_len,
            produced: 0,
            limit: limits.decoded_len,
            check: None,
            state: State::Reading,
        })
    }

    /// The number of bytes decoded so far.
    pub const fn produced(&self) -> u64 {
        self.produced
    }

    /// Fills `out` and returns the number of bytes, which is less than its length only at the end.
    ///
    /// # Errors
    ///
    /// [`FramingViolation::Zstd`] if the stored bytes do not decode to exactly the declared length,
    /// [`Error::DigestMismatch`], [`LimitExceeded::Decoded`] if no length is declared and the decoded bytes
    /// exceed the limit, [`Error::Io`]. After an error, [`Misuse::Order`].
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.state == State::Failed {
            return Err(Error::Misuse(Misuse::Order));
        }
        self.fill(out).inspect_err(|_| self.state = State::Failed)
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while self.state == State::Reading {
            let rest = out.get_mut(filled..).unwrap_or_default();
            // Without a declared length, the end is where the frames end.
            let left =
                self.expected.map_or(u64::MAX, |expected| expected.strict_sub(self.produced));
            let at_end = left == 0;
            if rest.is_empty() && !at_end {
                break;
            }
            // At the declared end, one more byte is decoded, to check that there is none.
            let mut beyond = [0];
            let len = in_memory(left.min(rest.len() as u64));
            let out = if at_end { &mut beyond } else { rest.split_at_mut(len).0 };
            let given = self.step(out).map_err(|error| self.explained(error))?;
            if at_end && given > 0 {
                let expected = self.produced;
                return Err(self.explained(ZstdFault::Long { expected }.into()));
            }
            filled = filled.strict_add(given);
            self.produced = self.produced.strict_add(given as u64);
            if self.expected.is_none() && self.produced > self.limit {
                let (limit, found) = (self.limit, self.produced);
                return Err(Error::Limit(LimitExceeded::Decoded { limit, found }));
            }
        }
        Ok(filled)
    }

    /// One step of the decoder: takes some input and gives some output, or finds the end.
    fn step(&mut self, out: &mut [u8]) -> Result<usize> {
        if let Some(given) = self.read_raw(out)? {
            return Ok(given);
        }
        self.fetch()?;
        let input = self.piece.get(self.taken..).unwrap_or_default();
        let (taken, given) = match &mut self.decoder {
            Decoder::Raw => {
                let len = input.len().min(out.len());
                out.split_at_mut(len).0.copy_from_slice(input.split_at(len).0);
                (len, len)
            }
            #[cfg(feature = "zstd")]
            Decoder::Zstd(decoder) => decoder.run(input, out)?,
        };
        self.taken = self.taken.strict_add(taken);
        if given == 0 && input.is_empty() {
            self.finish()?;
        }
        Ok(given)
    }

    /// Reads raw bytes to where they belong, if that takes no more reads than in pieces.
    fn read_raw(&mut self, out: &mut [u8]) -> Result<Option<usize>> {
        let len = self.rest.byte_len().min(PIECE.max(out.len()) as u64);
        let is_raw = matches!(self.decoder, Decoder::Raw) && self.taken == self.piece.len();
        let Some(out) = out.get_mut(..in_memory(len)).filter(|_| is_raw && len > 0) else {
            return Ok(None);
        };
        let next = Span::exact(self.rest.offset(), len);
        if self.source.slice(next).is_some() {
            return Ok(None);
        }
        self.source.read_at(next.offset(), out)?;
        self.rest = Span::exact_between(next.end(), self.rest.end());
        if let Some((hasher, _)) = &mut self.check {
            hasher.update(out);
        }
        Ok(Some(out.len()))
    }

    /// Reads the next piece if the last one is used up.
    fn fetch(&mut self) -> Result<()> {
        if self.taken < self.piece.len() || self.rest.is_empty() {
            return Ok(());
        }
        let len = self.rest.byte_len().min(PIECE as u64);
        let next = Span::exact(self.rest.offset(), len);
        self.rest = Span::exact_between(next.end(), self.rest.end());
        self.piece = match (self.source.slice(next), std::mem::take(&mut self.piece)) {
            (Some(bytes), _) => Cow::Borrowed(bytes),
            (None, piece) => {
                let mut buffer = piece.into_owned();
                resize(&mut buffer, len)?;
                self.source.read_at(next.offset(), &mut buffer)?;
                Cow::Owned(buffer)
            }
        };
        self.taken = 0;
        if let Some((hasher, _)) = &mut self.check {
            hasher.update(&self.piece);
        }
        Ok(())
    }

    /// A wrong digest is the cause of the decoder's error, so it is reported instead. To find it, the rest
    /// of the stored bytes is hashed.
    fn explained(&mut self, error: Error) -> Error {
        if !matches!(error, Error::Malformed(FramingViolation::Zstd(_))) {
            return error;
        }
        while self.check.is_some() && !self.rest.is_empty() {
            self.taken = self.piece.len();
            if let Err(error) = self.fetch() {
                return error;
            }
        }
        self.compare_digest().err().unwrap_or(error)
    }

    fn compare_digest(&mut self) -> Result<()> {
        match self.check.take() {
            Some((hasher, digest)) => digest.expect(hasher.finish()),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.state = State::Done;
        self.compare_digest()?;
        #[cfg(feature = "zstd")]
        if let Decoder::Zstd(decoder) = &self.decoder
            && !decoder.at_boundary()
        {
            return Err(ZstdFault::Cut.into());
        }
        let found = self.produced;
        match self.expected {
            Some(expected) if expected != found => Err(ZstdFault::Short { expected, found }.into()),
            _ => Ok(()),
        }
    }
}

/// Decodes all of `blob` into `out`, which has exactly its decoded length, and checks the digest if
/// `verify` is set.
///
/// Raw bytes are read into `out` directly, and zstd is decoded into it directly.
///
/// # Errors
///
/// As [`BlobReader::read`]; [`Misuse::Destination`] if `out` has another length, and
/// [`Misuse::UnknownLength`] if the blob has no length.
pub fn read_into(
    source: &dyn Source,
    blob: &Blob,
    verify: bool,
    limits: &Limits,
    out: &mut [u8],
) -> Result<()> {
    let unknown = Error::Misuse(Misuse::UnknownLength);
    let (expected, found) = (blob.decoded_len.ok_or(unknown)?, out.len() as u64);
    if expected != found {
        return Err(Error::Misuse(Misuse::Destination { expected, found }));
    }
    if blob.encoding == Encoding::Raw {
        check_declared(blob, limits)?;
        let Some(algorithm) = blob.algorithm().filter(|_| verify) else {
            return Ok(source.read_at(blob.span.offset(), out)?);
        };
        // A piece is hashed while it is in the core's cache. Over a network, one request reads all.
        let piece_len = if source.is_remote() { out.len() } else { PIECE };
        let mut hasher = Hasher::new(algorithm)?;
        let mut offset = blob.span.offset();
        for piece in out.chunks_mut(piece_len.max(1)) {
            source.read_at(offset, piece)?;
            hasher.update(piece);
            offset = offset.strict_add(piece.len() as u64);
        }
        let digest = blob.digest.as_ref();
        return digest.map_or(Ok(()), |digest| digest.expect(hasher.finish()));
    }
    #[cfg(feature = "zstd")]
    if blob.span.byte_len() <= ONE_SHOT || source.slice(blob.span).is_some() {
        check_declared(blob, limits)?;
        let stored = crate::memory::bytes_of(source, blob.span)?;
        if verify {
            check_digest(blob, &stored)?;
        }
        // The destination is the window, so a window of any size needs no memory.
        return codec::decode_into(&stored, out);
    }
    let mut reader = if verify {
        BlobReader::new(source, blob, limits)?
    } else {
        BlobReader::unverified(source, blob, limits)?
    };
    let filled = reader.read(out)?;
    debug_assert_eq!(filled, out.len(), "the reader ends at the declared length");
    Ok(())
}

/// Checks the recorded digest against `stored`, all stored bytes of `blob`. A blob without a digest, or
/// with one of an unknown algorithm, passes.
///
/// # Errors
///
/// [`Error::DigestMismatch`]; [`Error::Unsupported`] if the digest is not built in.
pub fn check_digest(blob: &Blob, stored: &[u8]) -> Result<()> {
    if let Some(digest) = &blob.digest
        && let Some(algorithm) = digest.algorithm()
    {
        digest.expect(algorithm.digest(stored)?)?;
    }
    Ok(())
}

/// Checks the decoded length that a blob declares, before memory is allocated: against the limits, and
/// against the most that its stored bytes can hold. Raw bytes are in the file, so they need no limit.
///
/// # Errors
///
/// [`LimitExceeded::Decoded`], [`FramingViolation::Ratio`], [`FramingViolation::RawLength`].
pub fn check_declared(blob: &Blob, limits: &Limits) -> Result<()> {
    let Some(declared) = blob.decoded_len else {
        return Ok(());
    };
    let stored = blob.span.byte_len();
    match blob.encoding {
        Encoding::Raw if declared == stored => Ok(()),
        Encoding::Raw => Err(FramingViolation::RawLength { stored, declared }.into()),
        Encoding::Zstd if declared > limits.decoded_len => {
            let limit = limits.decoded_len;
            let found = declared;
            Err(Error::Limit(LimitExceeded::Decoded { limit, found }))
        }
        Encoding::Zstd => match stored.checked_mul(MAX_RATIO) {
            Some(most) if declared > most => {
                Err(FramingViolation::Ratio { stored, declared }.into())
            }
            _ => Ok(()),
        },
    }
}
