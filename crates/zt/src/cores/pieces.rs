//! A blob in pieces, each of which one core fetches, sums and decodes without the others: a stretch of raw
//! bytes, or a frame of zstd.

use zt_container::codec::{Frame, frames};
use zt_container::memory::{fetch, in_memory};
use zt_container::{
    Blob, Encoding, Error, Limits, Misuse, Source, Span, Stretches, check_declared, check_digest,
    read_into,
};

use crate::cores::announce::{announce, announce_all};
use crate::cores::ledger::Ledger;
use crate::cores::parallel::{join, map_owned, threads};
use crate::cores::scratch::{Pool, Scratch, decompressor};
use crate::error::Result;

/// For fewer bytes, waking other cores costs more than they save.
///
/// Pays: `zt patch` of 75 MB takes 0.95 of the CPU time and 0.84 of the time of one core alone. With no least
/// length it takes as long.
const WORTH_IT: u64 = 4 << 20;

/// Raw bytes that one core takes at a time. They stay in its cache from the read to the checksum.
///
/// Pays: to verify 75 MB takes 1.04 of the CPU time that it takes with 128 KiB, and 0.89 of that with 8 MiB.
pub(crate) const STRETCH: u64 = 1 << 20;

/// How a blob is cut.
pub(crate) struct Pieces<'s> {
    pub(crate) source: &'s dyn Source,
    cut: Cut,
}

enum Cut {
    /// Raw bytes, and where they begin.
    Stretches(Stretches, u64),
    Frames(Vec<Frame>),
}

impl<'s> Pieces<'s> {
    /// `None` where frames cannot be told apart.
    pub(crate) fn of(source: &'s dyn Source, blob: &Blob) -> zt_container::Result<Option<Self>> {
        Ok(match blob.encoding {
            Encoding::Raw => Some(Self::stretches(source, blob.span, STRETCH)),
            _ => frames(source, blob)?.map(|frames| Pieces { source, cut: Cut::Frames(frames) }),
        })
    }

    /// The bytes of `span` as they are stored.
    pub(crate) const fn stretches(source: &'s dyn Source, span: Span, byte_len: u64) -> Self {
        Pieces { source, cut: Cut::Stretches(Stretches::new(span, byte_len), span.offset()) }
    }

    /// The frames; `None` for raw bytes.
    pub(crate) fn frames(&self) -> Option<&[Frame]> {
        match &self.cut {
            Cut::Stretches(..) => None,
            Cut::Frames(frames) => Some(frames),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.cut {
            Cut::Stretches(stretches, _) => in_memory(stretches.count()),
            Cut::Frames(frames) => frames.len(),
        }
    }

    /// The stored bytes of a piece, and the bytes that they decode to.
    pub(crate) fn get(&self, at: usize) -> Option<Frame> {
        match &self.cut {
            Cut::Frames(frames) => frames.get(at).copied(),
            Cut::Stretches(stretches, start) => {
                let stored = stretches.get(at as u64)?;
                let within = stored.offset().checked_sub(*start)?;
                Some(Frame { stored, content: Span::new(within, stored.byte_len())? })
            }
        }
    }

    /// All pieces, each with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Frame)> {
        (0..self.len()).filter_map(|at| Some((at, self.get(at)?)))
    }

    /// Announces the pieces behind this one. The caller reads the piece next.
    pub(crate) fn announce(&self, at: usize) {
        announce(self.source, at, |at| Some(self.get(at)?.stored));
    }

    /// Fetches and decodes some pieces into `out`, which has exactly their content. The stored bytes are summed.
    pub(crate) fn read(
        &self,
        stored: Span,
        out: &mut [u8],
        scratch: &mut Scratch,
        ledger: &Ledger<'_>,
    ) -> zt_container::Result<()> {
        if self.frames().is_none() {
            self.source.read_at(stored.offset(), out)?;
            return ledger.add(stored, out);
        }
        let bytes = lent_or_fetched(self.source, stored, &mut scratch.stored)?;
        ledger.add(stored, bytes)?;
        decompressor(&mut scratch.decompressor)?.decode_into(bytes, out)
    }

    /// The content of some pieces: lent by the source if it is raw, otherwise in `room`, which is as long. The
    /// stored bytes are summed.
    pub(crate) fn content<'b>(
        &'b self,
        stored: Span,
        room: &'b mut [u8],
        scratch: &mut Scratch,
        ledger: &Ledger<'_>,
    ) -> zt_container::Result<&'b [u8]> {
        if self.frames().is_none()
            && let Some(lent) = self.source.slice(stored)
        {
            ledger.add(stored, lent)?;
            return Ok(lent);
        }
        self.read(stored, room, scratch, ledger)?;
        Ok(room)
    }
}

/// The bytes of `span`, lent by the source or read into `memory`.
pub(crate) fn lent_or_fetched<'b>(
    source: &'b dyn Source,
    span: Span,
    memory: &'b mut Vec<u8>,
) -> zt_container::Result<&'b [u8]> {
    match source.slice(span) {
        Some(lent) => Ok(lent),
        None => fetch(memory, source, span),
    }
}

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
    let is_cut = out.len() as u64 >= WORTH_IT && threads() > 1 && !source.is_sequential();
    if is_cut && blob.decoded_len == Some(out.len() as u64) {
        check_declared(blob, limits)?;
        if let Some(pieces) = Pieces::of(source, blob)?.filter(|pieces| pieces.len() > 1) {
            return read_pieces(&pieces, Ledger::of(blob, verify), out);
        }
    }
    Ok(read_into(source, blob, verify, limits, out)?)
}

/// Decodes every piece into its part of `out`, on all cores.
fn read_pieces(pieces: &Pieces<'_>, ledger: Ledger<'_>, out: &mut [u8]) -> Result<()> {
    let source = pieces.source;
    let mut rest = out;
    let mut work = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.iter() {
        let part = rest.split_off_mut(..in_memory(piece.content.byte_len()));
        work.push((at, piece, part.unwrap_or_default()));
    }
    // The pieces cover the component exactly.
    if !rest.is_empty() {
        return Err(Error::Misuse(Misuse::UnknownLength).into());
    }
    let pool = Pool::default();
    // Of a chain of blocks, one core hashes while the others decode.
    let (chained, decoded) = join(
        || ledger.chain(source),
        || {
            map_owned(work, |(at, piece, part)| {
                pieces.announce(at);
                Ok(pool.with(|scratch| pieces.read(piece.stored, part, scratch, &ledger))?)
            })
        },
    );
    chained?;
    decoded.map_err(|error| ledger.explained(source, error))?;
    ledger.compare(source)
}

/// Compares the digest of a blob. Its bytes are lent, or read and not kept.
pub(crate) fn verify(source: &dyn Source, blob: &Blob) -> Result<()> {
    let ledger = Ledger::of(blob, true);
    let is_cut = blob.span.byte_len() >= WORTH_IT && threads() > 1 && !source.is_sequential();
    if !is_cut || ledger.is_chain() {
        return match source.slice(blob.span) {
            Some(lent) => Ok(check_digest(blob, lent)?),
            None => ledger.hash(source),
        };
    }
    let pieces = Pieces::stretches(source, blob.span, STRETCH);
    let pool = Pool::default();
    map_owned(pieces.iter().collect(), |(at, piece)| {
        pieces.announce(at);
        Ok(pool.with(|scratch| {
            let bytes = lent_or_fetched(source, piece.stored, &mut scratch.stored)?;
            ledger.add(piece.stored, bytes)
        })?)
    })?;
    ledger.compare(source)
}
