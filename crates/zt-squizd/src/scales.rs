//! The scale tables, and whose each entry is.

use zt::{Error, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::column::Run;
use crate::index::Index;
use crate::violation::{Section, Violation};

/// What a table begins with, and its number of entries.
pub(super) const HEAD_LEN: usize = 8;
pub(super) const MAGIC: [u8; 4] = *b"SCZT";

/// Bytes of an entry: an id, a scale, a zero.
pub(super) const ENTRY_LEN: usize = 16;

/// The bit of an id that says that the entry is one of a sub-block.
pub(super) const SUB_BLOCK: u64 = 1 << 63;

/// What belongs to one quantized tensor.
#[derive(Debug, Clone)]
pub(super) struct Scales {
    /// Opaque: the hash is not specified.
    pub(super) tensor_id: u64,
    pub(super) scale: f32,
    pub(super) zero: f32,
    /// The entry of the whole tensor.
    pub(super) entry: u64,
    /// The entries of its sub-blocks, in order; empty where there are none.
    pub(super) sub_blocks: Vec<Run>,
}

impl Scales {
    pub(super) fn sub_block_count(&self) -> u64 {
        let counts = self.sub_blocks.iter().map(|run| run.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// All tables of a file.
pub(super) struct Tables {
    /// In the order of the file, apart from each other.
    pub(super) spans: Vec<Span>,
    /// An entry per quantized tensor, in the order of the tables.
    pub(super) tensors: Vec<Scales>,
}

impl Tables {
    /// Finds the tables: where a layer's `scale_offset` leads to one, and where the weights end.
    /// A table that follows another directly belongs to it.
    ///
    /// # Errors
    ///
    /// A table that is cut or overlaps with others, sub-block entries that belong to no tensor or
    /// to several.
    pub(super) fn read(
        source: &dyn Source,
        index: &Index,
        tolerated: &mut Vec<Error>,
    ) -> Result<Self> {
        let spans = find(source, index)?;
        let expected = index.weights_end();
        if let Some(first) = spans.first().filter(|first| first.offset() != expected) {
            tolerated.push(Violation::TablePlace { expected }.at(first.offset()));
        }
        let mut entries = Entries::default();
        for span in &spans {
            entries.read(source, *span)?;
        }
        tolerated.extend(entries.not_finite.take());
        Ok(Tables {
            spans,
            tensors: entries.join()?,
        })
    }

    /// Whether a table begins at `offset`.
    pub(super) fn begins_at(&self, offset: u64) -> bool {
        let begin = |span: &Span| span.offset();
        self.spans.binary_search_by_key(&offset, begin).is_ok()
    }
}

/// The tables, apart from each other and from the weights.
fn find(source: &dyn Source, index: &Index) -> Result<Vec<Span>> {
    let within = |offset| index.overlaps(Span::new(offset, 1).unwrap_or_default());
    let offsets = index.entries.iter().map(|entry| entry.scale_offset);
    let mut starts: Vec<u64> = offsets
        .chain([index.weights_end()])
        .filter(|offset| !within(*offset))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let mut spans: Vec<Span> = Vec::new();
    for start in starts {
        // A table that was met as the follower of another; or four letters within one.
        if spans.last().is_some_and(|last| start < last.end()) {
            continue;
        }
        let mut next = start;
        while let Some(span) = table_at(source, next)? {
            if index.overlaps(span) {
                let section = Section::Scales;
                return Err(Violation::SectionOverlap { section }.at(next));
            }
            spans.push(span);
            next = span.end();
        }
    }
    Ok(spans)
}

/// The table at `offset`, if one begins there.
fn table_at(source: &dyn Source, offset: u64) -> Result<Option<Span>> {
    let available = source.byte_len().saturating_sub(offset);
    let mut head = [0; HEAD_LEN];
    let len = usize::try_from(available.min(HEAD_LEN as u64)).unwrap_or(0);
    let head = head.get_mut(..len).unwrap_or_default();
    source.read_at(offset, head)?;
    if !head.starts_with(&MAGIC) {
        return Ok(None);
    }
    let entries = Record(head).u32(4);
    let cut = || Violation::TableCut { entries, available }.at(offset);
    let table_len = (ENTRY_LEN as u64).saturating_mul(entries.into());
    let span = Span::new(offset, table_len.saturating_add(HEAD_LEN as u64));
    let span = span.filter(|span| len == HEAD_LEN && span.end() <= source.byte_len());
    span.map(Some).ok_or_else(cut)
}

/// Entries on their way to their tensors.
#[derive(Default)]
struct Entries {
    tensors: Vec<Scales>,
    /// Ids without their bit, and entries that follow each other.
    sub_blocks: Vec<(u64, Run)>,
    not_finite: Option<Error>,
}

impl Entries {
    /// Passes over one table. Costs memory only where ids change.
    fn read(&mut self, source: &dyn Source, table: Span) -> Result<()> {
        const PIECE: usize = 4096 * ENTRY_LEN;
        let piece_len = |left: u64| usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        // No more than the table has: it may be one of very many without an entry.
        let mut piece = vec![0; piece_len(table.byte_len())];
        let mut at = table.offset().saturating_add(HEAD_LEN as u64);
        while at < table.end() {
            let left = piece_len(table.end().saturating_sub(at));
            let piece = piece.get_mut(..left).unwrap_or_default();
            source.read_at(at, piece)?;
            let (entries, _) = piece.as_chunks::<ENTRY_LEN>();
            for entry in entries {
                self.add(Record(entry), at);
                at = at.saturating_add(ENTRY_LEN as u64);
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: Record<'_>, at: u64) {
        let (id, scale, zero) = (entry.u64(0), entry.f32(8), entry.f32(12));
        if !(scale.is_finite() && zero.is_finite()) {
            let error = || Violation::NotFinite { scale, zero }.at(at);
            self.not_finite.get_or_insert_with(error);
        }
        if id & SUB_BLOCK == 0 {
            self.tensors.push(Scales {
                tensor_id: id,
                scale,
                zero,
                entry: at,
                sub_blocks: Vec::new(),
            });
            return;
        }
        let tensor_id = id & !SUB_BLOCK;
        match self.sub_blocks.last_mut() {
            Some((last, run)) if *last == tensor_id && run.end() == at => {
                run.count = run.count.saturating_add(1);
            }
            _ => {
                let run = Run {
                    entry: at,
                    count: 1,
                };
                self.sub_blocks.push((tensor_id, run));
            }
        }
    }

    /// The sub-blocks to their tensors.
    fn join(mut self) -> Result<Vec<Scales>> {
        let ids = self.tensors.iter().map(|tensor| tensor.tensor_id);
        let mut places: Vec<(u64, usize)> = ids.zip(0..).collect();
        places.sort_unstable();
        for (tensor_id, run) in self.sub_blocks {
            let first = places.partition_point(|(id, _)| *id < tensor_id);
            let mut found = places
                .iter()
                .skip(first)
                .take_while(|(id, _)| *id == tensor_id);
            let Some((_, place)) = found.next() else {
                return Err(Violation::Orphan { tensor_id }.at(run.entry));
            };
            if found.next().is_some() {
                return Err(Violation::Ambiguous { tensor_id }.at(run.entry));
            }
            if let Some(tensor) = self.tensors.get_mut(*place) {
                tensor.sub_blocks.push(run);
            }
        }
        Ok(self.tensors)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// A million of them take as much memory as one.
    #[test]
    fn entries_of_a_tensor_that_follow_each_other_are_kept_as_one() {
        let entry = |id: u64| [id.to_le_bytes(), [0; 8]].concat();
        let ids = [7, 8].into_iter();
        let ids = ids.chain([7 | SUB_BLOCK; 5000]).chain([8 | SUB_BLOCK; 2]);
        let head = [MAGIC, 5004u32.to_le_bytes()].concat();
        let table: Vec<u8> = head.into_iter().chain(ids.flat_map(entry)).collect();
        let span = Span::new(0, table.len() as u64).unwrap();
        let mut entries = Entries::default();
        entries.read(&zt::Memory::new(table), span).unwrap();
        let tensors = entries.join().unwrap();
        let counts = tensors.iter().map(|tensor| {
            let runs = &tensor.sub_blocks;
            (tensor.tensor_id, runs.len(), tensor.sub_block_count())
        });
        let counts: Vec<_> = counts.collect();
        assert_eq!(counts, [(7, 1, 5000), (8, 1, 2)]);
    }
}
