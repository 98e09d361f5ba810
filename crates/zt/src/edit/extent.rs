//! Stored bytes that move to another file. Ranges that overlap move together.

use std::io::Write;
use std::sync::Arc;

use zt_container::{ALIGNMENT, Blob, BlobReader, ContainerWriter, Digest, Limits, Source, Span};

use crate::cores::progress::{Progress, report};
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;
use crate::write::encode::alignment_of;
use zt_container::memory::zeroed;

/// Bytes are moved in pieces of this size.
pub(crate) const PIECE: usize = 1 << 20;

/// A blob, and the component that names it in messages.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'b> {
    pub(crate) blob: &'b Blob,
    pub(crate) object: &'b str,
    pub(crate) role: &'b str,
}

/// A range of bytes: one blob, or several that overlap. If overlapping blobs moved one by one, they
/// could make the new file many times longer.
pub(crate) struct Extent<'b> {
    pub(crate) span: Span,
    pub(crate) alignment: u64,
    /// Each pair of a range and a digest once.
    blobs: Vec<Stored<'b>>,
}

/// What extents are sorted by, and the ranges within them too.
type Place = fn(Span) -> (u64, u64);

/// Extents of blobs: each remainder of 64 by itself, in the order of the file.
const fn on_grid(span: Span) -> (u64, u64) {
    (span.offset() % ALIGNMENT, span.offset())
}

/// Runs of tables: the order of the file.
const fn in_order(span: Span) -> (u64, u64) {
    (0, span.offset())
}

/// The extents of all blobs, in the order of the file. Old files have blobs at offsets that are not
/// multiples of 64. Blobs share an extent only if their offsets have the same remainder, since the
/// new offsets must be multiples.
///
/// An extent begins on a page only if it did before and a new file would place it there. So no
/// extent moves toward the end of the file.
pub(crate) fn extents(stored: Vec<Stored<'_>>) -> Vec<Extent<'_>> {
    joined(stored, on_grid, |last, span| {
        let is_within = span.offset() < last.end() || span == last;
        is_within && span.offset() % ALIGNMENT == last.offset() % ALIGNMENT
    })
}

/// The runs of tables of chunk digests, in the order of the file. A writer puts tables side by side, at any
/// offset: they keep these places within their run.
pub(crate) fn runs(tables: Vec<Stored<'_>>) -> Vec<Extent<'_>> {
    joined(tables, in_order, |last, span| span.offset() <= last.end())
}

fn joined(
    mut stored: Vec<Stored<'_>>,
    place: Place,
    takes: impl Fn(Span, Span) -> bool,
) -> Vec<Extent<'_>> {
    stored.sort_by_cached_key(|stored| {
        let digest = stored.blob.digest.as_ref().map(Digest::to_string);
        (place(stored.blob.span), stored.blob.span.byte_len(), digest)
    });
    stored.dedup_by(|next, one| {
        next.blob.span == one.blob.span && next.blob.digest == one.blob.digest
    });
    let mut extents: Vec<Extent<'_>> = Vec::new();
    for stored in stored {
        let span = stored.blob.span;
        let last = extents.last_mut().filter(|last| takes(last.span, span));
        if let Some(last) = last {
            let end = last.span.end().max(span.end());
            last.span = Span::between(last.span.offset(), end).unwrap_or(last.span);
            if span.offset() == last.span.offset() {
                last.alignment = last.alignment.max(alignment(stored.blob));
            }
            last.blobs.push(stored);
        } else {
            extents.push(Extent { span, alignment: alignment(stored.blob), blobs: vec![stored] });
        }
    }
    extents
}

fn alignment(blob: &Blob) -> u64 {
    let stored_len = blob.span.byte_len();
    let wished = alignment_of(blob.decoded_len.unwrap_or(stored_len));
    if blob.span.offset().is_multiple_of(wished) { wished } else { ALIGNMENT }
}

/// The old and the new places of extents or runs.
pub(crate) struct Moved {
    place: Place,
    spans: Vec<(Span, Span)>,
}

impl Moved {
    pub(crate) fn extents() -> Self {
        Moved { place: on_grid, spans: Vec::new() }
    }

    pub(crate) fn runs() -> Self {
        Moved { place: in_order, spans: Vec::new() }
    }

    /// Adds the next one, in their order.
    pub(crate) fn push(&mut self, from: Span, to: Span) {
        self.spans.push((from, to));
    }

    /// The new place of a range within one of them.
    /// Fails if no extent or run with this range was added.
    pub(crate) fn place(&self, span: Span) -> Result<Span> {
        let is_before = |(from, _): &(Span, Span)| (self.place)(*from) <= (self.place)(span);
        let at = self.spans.partition_point(is_before).checked_sub(1);
        at.and_then(|at| self.spans.get(at))
            .filter(|(from, _)| from.contains(span))
            .and_then(|(from, to)| {
                let within = span.offset().checked_sub(from.offset())?;
                Span::new(to.offset().checked_add(within)?, span.byte_len())
            })
            .ok_or_else(Error::out_of_order)
    }
}

pub(crate) struct Mover<'m> {
    source: &'m Arc<dyn Source>,
    allowance: Allowance,
    piece: Vec<u8>,
    progress: Option<Progress<'m>>,
}

impl<'m> Mover<'m> {
    pub(crate) fn new(
        source: &'m Arc<dyn Source>,
        limits: &Limits,
        progress: Option<Progress<'m>>,
    ) -> Result<Self> {
        Ok(Mover {
            source,
            allowance: Allowance::of(source.byte_len(), limits),
            piece: zeroed(PIECE as u64)?,
            progress,
        })
    }

    /// Writes the bytes of an extent unchanged, and checks the digests of its blobs: during the copy if
    /// it has one blob, before the copy if it has several.
    /// Fails with code `overlap` if checking all digests would take too long.
    pub(crate) fn copy<W: Write>(
        &mut self,
        extent: &Extent<'_>,
        to: &mut ContainerWriter<W>,
    ) -> Result<()> {
        let whole = match &extent.blobs[..] {
            [only] => stored_bytes(only),
            several => {
                for one in several {
                    self.check(one).map_err(|error| blame(error, one))?;
                }
                Blob::raw(extent.span)
            }
        };
        let progress = self.progress;
        let moved = self.pass(&whole, |piece| {
            to.write(piece)?;
            report(progress, piece.len() as u64)
        });
        moved.map_err(|error| match &extent.blobs[..] {
            [only] => blame(error, only),
            _ => error,
        })
    }

    fn check(&mut self, stored: &Stored<'_>) -> Result<()> {
        if stored.blob.algorithm().is_none() {
            return Ok(());
        }
        self.allowance.spend(stored.blob.span.byte_len())?;
        let progress = self.progress;
        self.pass(&stored_bytes(stored), |_| report(progress, 0))
    }

    /// Writes the bytes of a raw blob and compares its digest.
    fn pass(&mut self, blob: &Blob, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut reader = BlobReader::new(self.source, blob, &Limits::default())?;
        loop {
            let len = reader.read(&mut self.piece)?;
            let bytes = self.piece.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(());
            }
            take(bytes)?;
        }
    }
}

/// The blob as raw stored bytes, with its digest.
fn stored_bytes(stored: &Stored<'_>) -> Blob {
    Blob::raw(stored.blob.span).with_digest(stored.blob.digest.clone())
}

fn blame(error: Error, stored: &Stored<'_>) -> Error {
    error.with_object(stored.object).with_component(stored.role)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn blob(offset: u64, byte_len: u64) -> Blob {
        Blob::raw(Span::new(offset, byte_len).unwrap())
    }

    /// The span, the alignment and the number of blobs of each extent.
    fn found(blobs: &[Blob]) -> Vec<(Span, u64, usize)> {
        let stored = blobs.iter().map(|blob| Stored { blob, object: "", role: "" });
        let extents = extents(stored.collect());
        let all = extents.iter();
        all.map(|one| (one.span, one.alignment, one.blobs.len())).collect()
    }

    fn spans(blobs: &[Blob]) -> Vec<(u64, u64)> {
        let found = found(blobs).into_iter();
        found.map(|(at, ..)| (at.offset(), at.end())).collect()
    }

    #[test]
    fn overlapping_blobs_move_together() {
        let apart = [blob(64, 10), blob(128, 64), blob(192, 10), blob(1024, 1)];
        let expected = [(64, 74), (128, 192), (192, 202), (1024, 1025)];
        assert_eq!(spans(&apart), expected);
        let overlapping = [blob(64, 100), blob(128, 10), blob(128, 128)];
        assert_eq!(spans(&overlapping), [(64, 256)]);
        // These offsets have the same remainder.
        let off = [blob(64, 100), blob(72, 50), blob(128, 128), blob(136, 1)];
        assert_eq!(spans(&off), [(64, 256), (72, 122), (136, 137)]);
    }

    #[test]
    fn each_digest_of_a_range_is_kept_once() {
        let with = |sum: u32| Blob { digest: Some(Digest::Crc32c(sum)), ..blob(64, 10) };
        let blobs = [with(1), blob(64, 10), with(2), with(1), blob(64, 10)];
        let [(_, _, count)] = found(&blobs)[..] else {
            panic!("{blobs:?}");
        };
        assert_eq!(count, 3);
    }

    /// Only a blob at the beginning of the extent can demand a page.
    #[test]
    fn an_extent_is_aligned_as_the_largest_that_begins_with_it() {
        let page = alignment_of(1 << 20);
        assert!(page > ALIGNMENT);
        let large = blob(page, 1 << 20);
        let within = blob(2 * page, 1 << 20);
        let aligned = |blobs: &[Blob]| found(blobs).first().map(|(_, alignment, _)| *alignment);
        assert_eq!(aligned(&[blob(page, 10), large]), Some(page));
        let off = blob(page + ALIGNMENT, 2 * page);
        assert_eq!(aligned(&[off, within]), Some(ALIGNMENT));
    }
}
