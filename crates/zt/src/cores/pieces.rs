//! Large components, read and decoded on all cores, piece by piece, straight into their place.
//!
//! A piece is a frame of a zstd blob or a stretch of a raw blob. One core fetches, hashes and decodes
//! it, and needs no other piece. For small components, and without the feature `rayon`, the reader
//! of `zt-container` does the same on one core.

use zt_container::{Blob, Limits, Source, read_into};

use crate::cores::announce::announce_all;
#[cfg(feature = "rayon")]
use crate::cores::parallel::threads;
use crate::cores::sums::hash;
use crate::error::Result;

/// Reads and decodes all of `blob` into `out`, which has exactly its decoded length. If `verify` is
/// true, the digest is compared.
pub(crate) fn read(
    source: &dyn Source,
    blob: &Blob,
    verify: bool,
    limits: &Limits,
    out: &mut [u8],
) -> Result<()> {
    announce_all(&[blob.span], |span| (source, *span));
    #[cfg(feature = "rayon")]
    if out.len() >= parallel::WORTH_IT
        && threads() > 1
        && let Some(pieces) = parallel::plan(source, blob, limits, out)?
    {
        return parallel::read(source, blob, verify, &pieces, out);
    }
    Ok(read_into(source, blob, verify, limits, out)?)
}

/// Compares the digest of a blob whose bytes are in memory.
pub(crate) fn check_digest(blob: &Blob, stored: &[u8]) -> Result<()> {
    #[cfg(feature = "rayon")]
    if stored.len() >= parallel::WORTH_IT && threads() > 1 {
        return parallel::check_digest(blob, stored);
    }
    Ok(zt_container::check_digest(blob, stored)?)
}

/// Compares the digest of a blob. Its bytes are read and not kept.
pub(crate) fn verify(source: &dyn Source, blob: &Blob) -> Result<()> {
    #[cfg(feature = "rayon")]
    if blob.span.byte_len() >= parallel::WORTH_IT as u64 && threads() > 1 && !source.is_sequential()
    {
        return parallel::verify(source, blob);
    }
    hash(source, blob)
}

#[cfg(feature = "rayon")]
mod parallel {
    use zt_container::codec::{decode_into, frames};
    use zt_container::memory::in_memory;
    use zt_container::{
        Blob, Digest, DigestAlgorithm, Encoding, Error, Limits, Misuse, Source, Span, bytes_of,
        check_declared,
    };

    use crate::cores::announce::announce;
    use crate::cores::parallel::{join, map_owned};
    use crate::cores::scratch::{Pool, Scratch};
    use crate::cores::sums::{compare, explained, hash};
    use crate::error::Result;
    use zt_container::memory::fetch;

    /// For fewer bytes, waking other cores costs more than they save.
    pub(super) const WORTH_IT: usize = 4 << 20;

    /// Raw bytes that one core takes at a time. They stay in its cache from the read to the hash.
    const STRETCH: usize = 1 << 20;

    /// Stored bytes, and the number of bytes that they decode to.
    #[derive(Debug, Clone, Copy)]
    pub(super) struct Piece {
        stored: Span,
        content_len: u64,
    }

    /// The pieces of `blob`; `None` if it is read as a whole.
    pub(super) fn plan(
        source: &dyn Source,
        blob: &Blob,
        limits: &Limits,
        out: &[u8],
    ) -> Result<Option<Vec<Piece>>> {
        let is_whole = blob.decoded_len == Some(out.len() as u64);
        if !is_whole || source.is_sequential() {
            return Ok(None);
        }
        check_declared(blob, limits)?;
        match blob.encoding {
            Encoding::Raw => Ok(Some(stretches(blob.span))),
            Encoding::Zstd => {
                let frames = frames(source, blob)?.filter(|frames| frames.len() > 1);
                let pieces = frames.map(|frames| {
                    let piece = |frame: &zt_container::codec::Frame| Piece {
                        stored: frame.stored,
                        content_len: frame.content.byte_len(),
                    };
                    frames.iter().map(piece).collect()
                });
                Ok(pieces)
            }
            _ => Ok(None),
        }
    }

    fn stretches(span: Span) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut offset = span.offset();
        while offset < span.end() {
            let end = span.end().min(offset.strict_add(STRETCH as u64));
            let Some(stored) = Span::between(offset, end) else {
                break;
            };
            pieces.push(Piece { stored, content_len: stored.byte_len() });
            offset = end;
        }
        pieces
    }

    pub(super) fn read(
        source: &dyn Source,
        blob: &Blob,
        verify: bool,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<()> {
        let digest = blob.digest.as_ref().filter(|_| verify);
        match digest.and_then(|digest| Some((digest, digest.algorithm()?))) {
            None => decode(source, blob, pieces, out, None).map(drop),
            // The digest is a chain of blocks: one core hashes while the others decode.
            Some((_, algorithm)) if !algorithm.combines() => {
                let hash = || hash(source, blob);
                let decode = || decode(source, blob, pieces, out, None);
                let (hashed, decoded) = join(hash, decode);
                hashed?;
                decoded.map(drop)
            }
            Some((expected, sum)) => match decode(source, blob, pieces, out, Some(sum)) {
                Ok(found) => compare(expected, found),
                Err(error) => Err(explained(source, blob, error)),
            },
        }
    }

    /// Fetches and decodes every piece into its part of `out`. Returns the checksum of all stored
    /// bytes if one is wanted.
    fn decode(
        source: &dyn Source,
        blob: &Blob,
        pieces: &[Piece],
        out: &mut [u8],
        wanted: Option<DigestAlgorithm>,
    ) -> Result<Option<Digest>> {
        let mut rest = out;
        let mut work = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let len = in_memory(piece.content_len);
            // The plan covers the component exactly.
            let Some((part, behind)) = std::mem::take(&mut rest).split_at_mut_checked(len) else {
                return Err(Error::Misuse(Misuse::UnknownLength).into());
            };
            work.push((work.len(), piece.stored, part));
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(Error::Misuse(Misuse::UnknownLength).into());
        }
        let pool = Pool::default();
        let mut sums = map_owned(work, |(at, stored, part)| {
            announce(source, at, |at| Some(pieces.get(at)?.stored));
            let one = |scratch: &mut Scratch| {
                decode_one(source, blob.encoding, stored, part, &mut scratch.stored, wanted)
            };
            Ok((pool.with(one)?, stored.byte_len()))
        })?;

        let end = pieces.last().map_or(blob.span.offset(), |piece| piece.stored.end());
        let table = Span::between(end, blob.span.end());
        let table = table.ok_or(Error::Misuse(Misuse::UnknownLength))?;
        if let Some(algorithm) = wanted.filter(|_| !table.is_empty()) {
            let sum = algorithm.digest(&bytes_of(source, table)?)?;
            sums.push((Some(sum), table.byte_len()));
        }
        Ok(combined(sums))
    }

    /// Decodes one piece into `part`, and returns the checksum of its stored bytes if one is
    /// wanted.
    fn decode_one(
        source: &dyn Source,
        encoding: Encoding,
        stored: Span,
        part: &mut [u8],
        scratch: &mut Vec<u8>,
        wanted: Option<DigestAlgorithm>,
    ) -> Result<Option<Digest>> {
        let sum = |bytes: &[u8]| wanted.map(|algorithm| algorithm.digest(bytes)).transpose();
        if encoding == Encoding::Raw {
            source.read_at(stored.offset(), part)?;
            return Ok(sum(part)?);
        }
        let bytes = match source.slice(stored) {
            Some(bytes) => bytes,
            None => fetch(scratch, source, stored)?,
        };
        let sum = sum(bytes)?;
        decode_into(bytes, part)?;
        Ok(sum)
    }

    pub(super) fn check_digest(blob: &Blob, stored: &[u8]) -> Result<()> {
        let digest = blob.digest.as_ref();
        let sum = digest.and_then(|digest| Some((digest, digest.algorithm()?)));
        let Some((expected, algorithm)) = sum.filter(|(_, algorithm)| algorithm.combines()) else {
            return Ok(zt_container::check_digest(blob, stored)?);
        };
        let sums = map_owned(stored.chunks(STRETCH).collect(), |bytes| {
            Ok((Some(algorithm.digest(bytes)?), bytes.len() as u64))
        })?;
        compare(expected, combined(sums))
    }

    pub(super) fn verify(source: &dyn Source, blob: &Blob) -> Result<()> {
        let digest = blob.digest.as_ref();
        let sum = digest.and_then(|digest| Some((digest, digest.algorithm()?)));
        let Some((expected, algorithm)) = sum.filter(|(_, algorithm)| algorithm.combines()) else {
            return hash(source, blob);
        };
        let pieces = stretches(blob.span);
        let pool = Pool::default();
        let sums = map_owned(pieces.iter().enumerate().collect(), |(at, piece)| {
            announce(source, at, |at| Some(pieces.get(at)?.stored));
            let sum = match source.slice(piece.stored) {
                Some(bytes) => algorithm.digest(bytes),
                None => pool.with(|scratch| {
                    algorithm.digest(fetch(&mut scratch.stored, source, piece.stored)?)
                }),
            };
            Ok((Some(sum?), piece.content_len))
        })?;
        compare(expected, combined(sums))
    }

    /// The digest of consecutive stretches, each with its length.
    fn combined(sums: Vec<(Option<Digest>, u64)>) -> Option<Digest> {
        let mut sums = sums.into_iter();
        let (first, _) = sums.next()?;
        sums.fold(first, |total, (sum, len)| total?.followed_by(&sum?, len))
    }
}
