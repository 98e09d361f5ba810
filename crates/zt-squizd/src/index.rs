//! The layer index: the weights of each layer.

use zt::container::bytes_of;
use zt::{Error, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::header::HEADER_LEN;
use crate::violation::{Section, Violation};

/// Bytes of an entry.
pub(super) const ENTRY_LEN: usize = 32;

/// An entry of the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) layer_idx: u32,
    /// Within the file, after the index; never empty. No two overlap.
    pub(super) weights: Span,
    /// Within the file, or at its end.
    pub(super) scale_offset: u64,
    /// The offset of the entry.
    pub(super) at: u64,
}

/// The index and where it ends.
#[derive(Debug)]
pub(super) struct Index {
    /// By layer, ascending.
    pub(super) entries: Vec<Entry>,
    /// The weights of the layers, sorted by offset. No two overlap.
    weights: Vec<Span>,
    pub(super) end: u64,
}

impl Index {
    /// Reads the index of `layer_count` layers. Faults that only strict readers refuse go to
    /// `tolerated`.
    pub(super) fn read(
        source: &dyn Source,
        layer_count: u16,
        tolerated: &mut Vec<Error>,
    ) -> Result<Self> {
        let byte_len = source.byte_len();
        let start = HEADER_LEN as u64;
        let table_len = u64::from(layer_count).checked_mul(ENTRY_LEN as u64);
        let table = table_len.and_then(|len| Span::new(start, len));
        let table = table.filter(|table| table.end() <= byte_len);
        let section = Section::Index;
        let truncated = Violation::Truncated { section, byte_len };
        let table = table.ok_or_else(|| truncated.at(start))?;
        // At most 2 MiB.
        let bytes = bytes_of(source, table)?;
        let (records, _) = bytes.as_chunks::<ENTRY_LEN>();
        let places = (start..).step_by(ENTRY_LEN);
        let mut entries: Vec<Entry> = Vec::with_capacity(records.len());
        for (record, at) in records.iter().zip(places) {
            let entry = Entry::parse(Record(record), at, table.end(), byte_len, tolerated)?;
            if let Some(last) = entries.last()
                && entry.layer_idx <= last.layer_idx
            {
                let (previous, found) = (last.layer_idx, entry.layer_idx);
                return Err(Violation::LayerOrder { previous, found }.at(at));
            }
            entries.push(entry);
        }
        let mut positions = entries.iter().zip(0u32..);
        if let Some((entry, position)) =
            positions.find(|(entry, position)| entry.layer_idx != *position)
        {
            let found = entry.layer_idx;
            tolerated.push(Violation::LayerGap { position, found }.at(entry.at));
        }
        Ok(Index { weights: apart(&entries)?, entries, end: table.end() })
    }

    /// Where the last of the weights end.
    pub(super) fn weights_end(&self) -> u64 {
        self.weights.last().map_or(self.end, |last| last.end())
    }

    /// Whether a span overlaps the header, the index or the weights of a layer. Fast, because it is
    /// called for every layer and every table.
    pub(super) fn overlaps(&self, span: Span) -> bool {
        // Without overlaps, the weights end in the order in which they begin.
        let before = self.weights.partition_point(|weights| weights.end() <= span.offset());
        let next = self.weights.get(before);
        (span.offset() < self.end && !span.is_empty())
            || next.is_some_and(|weights| weights.overlaps(span))
    }
}

impl Entry {
    #[expect(clippy::arithmetic_side_effects, reason = "`at` is within the index")]
    fn parse(
        record: Record<'_>,
        at: u64,
        table_end: u64,
        byte_len: u64,
        tolerated: &mut Vec<Error>,
    ) -> Result<Self> {
        let (offset, length) = (record.u64(4), record.u64(12));
        let weights = Section::Weights.within(offset, length, byte_len);
        let weights = weights.map_err(|violation| violation.at(at))?;
        if offset < table_end {
            return Err(Violation::InHeader { offset, table_end }.at(at));
        }
        if weights.is_empty() {
            return Err(Violation::NoWeights.at(at));
        }
        let scale_offset = record.u64(20);
        let scales = Section::Scales.within(scale_offset, 0, byte_len);
        scales.map_err(|violation| violation.at(at))?;
        if record.u32(28) != 0 {
            tolerated.push(Violation::Reserved.at(at + 28));
        }
        Ok(Entry { layer_idx: record.u32(0), weights, scale_offset, at })
    }
}

/// The weights in the order of the file, which may differ from the order of the layers. No two
/// may overlap.
fn apart(entries: &[Entry]) -> Result<Vec<Span>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.weights.offset());
    let pairs = sorted.iter().zip(sorted.iter().skip(1));
    for (first, second) in pairs {
        if first.weights.overlaps(second.weights) {
            let (first, second) = (first.layer_idx, second.layer_idx);
            return Err(Violation::LayersOverlap { first, second }.into());
        }
    }
    Ok(sorted.into_iter().map(|entry| entry.weights).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn overlaps_what_any_layer_overlaps() {
        // Not in the order of the file, and with gaps.
        let start = (HEADER_LEN + 4 * ENTRY_LEN) as u64;
        let layers = [(30, 4), (1, 2), (10, 10), (20, 1)].map(|(at, len)| (start + at, len));
        let mut file = vec![0; HEADER_LEN];
        for (layer, (offset, len)) in (0u32..).zip(layers) {
            file.extend(layer.to_le_bytes());
            file.extend([offset, len, 0].map(u64::to_le_bytes).concat());
            file.extend([0; 4]);
        }
        file.resize(file.len() + 40, 0);
        let index = Index::read(&zt::Memory::new(file), 4, &mut Vec::new()).unwrap();
        assert_eq!(index.weights_end(), start + 34);
        let header = (0, start);
        for offset in start - 4..start + 40 {
            for len in 0..40 {
                let span = Span::new(offset, len).unwrap();
                let mut taken = layers.iter().chain([&header]);
                let expected = taken.any(|(at, len)| Span::new(*at, *len).unwrap().overlaps(span));
                assert_eq!(index.overlaps(span), expected, "{offset} + {len}");
            }
        }
    }
}
