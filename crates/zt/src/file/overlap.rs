//! A limit for repeated reads of the same bytes, where blobs overlap.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use zt_container::{Blob, Encoding, Limits};

use crate::error::{Error, Fault, Result};
use crate::file::File;

/// Bytes that every file may have read beside its multiple: small files are not worth a refusal.
const SLACK: u64 = 16 << 20;

/// The most that a stored byte can become: zstd encodes 128 KiB in four bytes.
const MAX_RATIO: u64 = 32_768;

/// Bytes that may still be read of one source.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
    limit: u64,
    /// The ranges of compressed blobs that were counted, without overlaps: source and offset, and
    /// the end.
    compressed: BTreeMap<(usize, u64), u64>,
}

impl Allowance {
    pub(crate) fn of(byte_len: u64, limits: &Limits) -> Self {
        let limit = limits.overlap;
        Allowance {
            left: byte_len.saturating_mul(limit).saturating_add(SLACK),
            limit,
            compressed: BTreeMap::new(),
        }
    }

    /// Takes `byte_len` of the bytes that are left.
    /// If fewer are left, it takes nothing, and fails with code `overlap`.
    pub(crate) fn spend(&mut self, byte_len: u64) -> Result<()> {
        let left = self.left.checked_sub(byte_len);
        self.left = left.ok_or_else(|| self.exceeded())?;
        Ok(())
    }

    /// Takes the cost of reading a blob: its stored bytes. If an earlier blob has some of its frames, these
    /// are decoded again, and the cost is its decoded bytes. Without this rule, blobs that differ in a
    /// skippable frame at their end could each repeat one frame of many megabytes.
    pub(crate) fn spend_on(&mut self, source: usize, blob: &Blob) -> Result<()> {
        let (mut from, mut to) = (blob.span.offset(), blob.span.end());
        if blob.encoding == Encoding::Raw || from == to {
            return self.spend(blob.span.byte_len());
        }
        let shared = |this: &Self, from: u64, to: u64| {
            let mut before = this.compressed.range((source, 0)..(source, to));
            let (at, end) = before.next_back()?;
            (*end > from).then_some((*at, *end))
        };
        let decoded = shared(self, from, to).map(|_| decoded_most(blob));
        self.spend(blob.span.byte_len().max(decoded.unwrap_or(0)))?;
        while let Some((at, end)) = shared(self, from, to) {
            self.compressed.remove(&at);
            (from, to) = (from.min(at.1), to.max(end));
        }
        self.compressed.insert((source, from), to);
        Ok(())
    }

    /// Forgets ranges that no blob overlaps from here on.
    pub(crate) fn forget(&mut self) {
        self.compressed.clear();
    }

    #[cfg(test)]
    pub(crate) const fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn exceeded(&self) -> Error {
        Fault::OverlapLimit(self.limit).into()
    }
}

/// The most bytes that a blob decodes to. Readers stop at the length that it declares.
pub(crate) fn decoded_most(blob: &Blob) -> u64 {
    let possible = match blob.encoding {
        Encoding::Raw => blob.span.byte_len(),
        _ => blob.span.byte_len().saturating_mul(MAX_RATIO),
    };
    blob.decoded_len.unwrap_or(possible)
}

impl File {
    /// Whether all components can be read, or written to another file, within
    /// [`Limits::overlap`]. A range that several components share counts once; ranges that overlap
    /// count each, and if they are compressed, with their decoded bytes. Ask before work that takes as
    /// long, or as much room, as the components together. Decodes every object; reads no data.
    ///
    /// # Errors
    ///
    /// Code `overlap`, with the first component that is too much.
    pub fn check_overlap(&self) -> Result<()> {
        let entries = self.entries();
        let tensors: Vec<_> = entries.iter().flat_map(|entry| entry.tensor()).collect();
        let parts = tensors.iter();
        let parts = parts.flat_map(|tensor| tensor.located().map(move |part| (tensor, part)));
        let mut blobs: Vec<(usize, &Blob, &str, &str)> = parts
            .map(|(tensor, part)| {
                let blob = &part.component.blob;
                (tensor.source_index(part), blob, tensor.name(), &**part.role)
            })
            .collect();
        let place = |(source, blob, ..): &(usize, &Blob, &str, &str)| {
            (*source, blob.span.offset(), blob.span.byte_len())
        };
        // Of equal ranges, the one that decodes to the most counts.
        blobs.sort_by_key(|blob| (place(blob), Reverse(decoded_most(blob.1))));
        blobs.dedup_by_key(|blob| place(blob));
        for of_one in blobs.chunk_by(|(source, ..), (next, ..)| source == next) {
            let source = of_one.first().map_or(0, |(source, ..)| *source);
            let byte_len = self.inner.sources.get(source);
            let byte_len = byte_len.map_or(0, |source| source.byte_len());
            let mut allowance = Allowance::of(byte_len, &self.inner.limits);
            for (_, blob, name, role) in of_one {
                let spent = allowance.spend_on(source, blob);
                spent.map_err(|error| error.with_object(name).with_component(role))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zt_container::Span;

    #[test]
    #[allow(clippy::arithmetic_side_effects)]
    fn all_that_is_allowed_is_given_and_not_one_byte_more() {
        let limits = Limits::default();
        let mut allowance = Allowance::of(1000, &limits);
        allowance.spend(limits.overlap * 1000).unwrap();
        assert_eq!(allowance.spend(SLACK + 1).unwrap_err().code(), "overlap");
        allowance.spend(SLACK).unwrap();
        allowance.spend(0).unwrap();
        allowance.spend(1).unwrap_err();
        let mut allowance = Allowance::of(u64::MAX, &limits);
        allowance.spend(u64::MAX).unwrap();
        allowance.spend(1).unwrap_err();
    }
    #[test]
    #[allow(clippy::arithmetic_side_effects)]
    fn compressed_blobs_cost_their_decoded_bytes_where_an_earlier_one_has_their_frames() {
        const DECODED: u64 = 1 << 20;
        let blob = |offset: u64, byte_len: u64| Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(DECODED),
            ..Blob::raw(Span::exact(offset, byte_len))
        };
        let mut allowance = Allowance::of(0, &Limits::default());
        let mut cost = |source: usize, blob: &Blob| {
            let before = allowance.left();
            allowance.spend_on(source, blob).unwrap();
            before - allowance.left()
        };
        for (source, offset, byte_len) in [(0, 64, 10), (0, 192, 64), (0, 74, 54), (1, 64, 100)] {
            assert_eq!(cost(source, &blob(offset, byte_len)), byte_len);
        }
        for (offset, byte_len) in [(64, 10), (64, 11), (0, 65), (255, 1), (0, 300), (299, 9)] {
            assert_eq!(cost(0, &blob(offset, byte_len)), DECODED, "{offset}");
        }
        // A blob beside another shares nothing, and raw bytes cost nothing more.
        assert_eq!(cost(0, &blob(308, 10)), 10);
        assert_eq!(cost(1, &blob(0, 64)), 64);
        assert_eq!(cost(0, &Blob::raw(Span::exact(64, 100))), 100);
        let unknown = Blob { decoded_len: None, ..blob(64, 100) };
        assert_eq!(cost(0, &unknown), 100 * MAX_RATIO);
    }
}
