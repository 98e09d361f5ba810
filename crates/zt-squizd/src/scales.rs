//! The scale tables, and the tensor of each entry.

use zt::{Error, Result, Source, Span};
use zt_foreign::fields::Record;

use crate::block::start_of;
use crate::column::EntryRun;
use crate::index::Index;
use crate::violation::{Section, Violation};

/// The bytes of a table's magic and its number of entries.
pub(super) const HEAD_LEN: usize = 8;
pub(super) const MAGIC: [u8; 4] = *b"SCZT";

/// Bytes of an entry: an id, a scale, a zero.
pub(super) const ENTRY_LEN: usize = 16;

/// The bit of an id that marks the entry of a sub-block.
pub(super) const SUB_BLOCK: u64 = 1 << 63;

/// The entries of one quantized tensor.
#[derive(Debug, Clone)]
pub(super) struct Scales {
    /// Opaque: the hash is not specified.
    pub(super) tensor_id: u64,
    pub(super) scale: f32,
    pub(super) zero: f32,
    /// The entry of the whole tensor.
    pub(super) entry: u64,
    /// The entries of its sub-blocks, in order; may be empty.
    pub(super) sub_blocks: Vec<EntryRun>,
}

impl Scales {
    pub(super) fn sub_block_count(&self) -> u64 {
        self.sub_blocks.iter().map(|run| run.count).sum()
    }
}

pub(super) struct Tables {
    /// In the order of the file, without overlaps.
    pub(super) spans: Vec<Span>,
    /// One for each quantized tensor, in the order of the tables.
    pub(super) tensors: Vec<Scales>,
}

impl Tables {
    /// Finds the tables: at the `scale_offset` of each layer, at the end of the weights, and
    /// directly after another table. A table must not be truncated or overlap another part, and a
    /// sub-block entry must belong to one tensor.
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
        Ok(Tables { spans, tensors: entries.join()? })
    }

    pub(super) fn begins_at(&self, offset: u64) -> bool {
        let begin = |span: &Span| span.offset();
        self.spans.binary_search_by_key(&offset, begin).is_ok()
    }
}

/// The tables, which overlap neither each other nor the weights.
fn find(source: &dyn Source, index: &Index) -> Result<Vec<Span>> {
    let within = |offset| Span::new(offset, 1).is_some_and(|byte| index.overlaps(byte));
    let offsets = index.entries.iter().map(|entry| entry.scale_offset);
    let mut starts: Vec<u64> =
        offsets.chain([index.weights_end()]).filter(|offset| !within(*offset)).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut spans: Vec<Span> = Vec::new();
    for start in starts {
        // A table that was found after another, or an offset within a table.
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
#[expect(clippy::arithmetic_side_effects, reason = "a u32 times 16")]
fn table_at(source: &dyn Source, offset: u64) -> Result<Option<Span>> {
    let Some(rest) = Span::between(offset, source.byte_len()) else {
        return Ok(None);
    };
    let head: [u8; HEAD_LEN] = start_of(source, rest)?;
    if !head.starts_with(&MAGIC) {
        return Ok(None);
    }
    let (entries, available) = (Record(&head).u32(4), rest.byte_len());
    let cut = || Violation::TableCut { entries, available }.at(offset);
    let table_len = HEAD_LEN as u64 + ENTRY_LEN as u64 * u64::from(entries);
    let span = Span::new(offset, table_len).filter(|span| span.end() <= rest.end());
    span.map(Some).ok_or_else(cut)
}

/// The entries of all tables, before they are assigned to tensors.
#[derive(Default)]
struct Entries {
    tensors: Vec<Scales>,
    /// Ids without the bit of sub-blocks, and consecutive entries.
    sub_blocks: Vec<(u64, EntryRun)>,
    not_finite: Option<Error>,
}

impl Entries {
    /// Reads one table. Memory grows with the number of different ids only.
    #[expect(clippy::arithmetic_side_effects, reason = "within the table")]
    fn read(&mut self, source: &dyn Source, table: Span) -> Result<()> {
        const PIECE: usize = 4096 * ENTRY_LEN;
        let piece_len = |left: u64| usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        // Not always a whole piece: a file may have very many empty tables.
        let mut piece = vec![0; piece_len(table.byte_len())];
        let mut at = table.offset() + HEAD_LEN as u64;
        while at < table.end() {
            let (piece, _) = piece.split_at_mut(piece_len(table.end() - at));
            source.read_at(at, piece)?;
            let (entries, _) = piece.as_chunks::<ENTRY_LEN>();
            for entry in entries {
                self.add(Record(entry), at);
                at += ENTRY_LEN as u64;
            }
        }
        Ok(())
    }

    #[expect(clippy::arithmetic_side_effects, reason = "a count of entries")]
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
                run.count += 1;
            }
            _ => {
                let run = EntryRun { entry: at, count: 1 };
                self.sub_blocks.push((tensor_id, run));
            }
        }
    }

    /// Assigns the sub-blocks to their tensors.
    fn join(mut self) -> Result<Vec<Scales>> {
        let ids = self.tensors.iter().map(|tensor| tensor.tensor_id);
        let mut places: Vec<(u64, usize)> = ids.zip(0..).collect();
        places.sort_unstable();
        for (tensor_id, run) in self.sub_blocks {
            let first = places.partition_point(|(id, _)| *id < tensor_id);
            let mut found = places.iter().skip(first).take_while(|(id, _)| *id == tensor_id);
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
    use super::*;

    /// A million entries take as much memory as one.
    #[test]
    fn consecutive_entries_of_a_tensor_are_kept_as_one() {
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
