//! A whole file, followed from part to part.

use zt::{Error, Result, Source};

use crate::block::Block;
use crate::header::{Flags, Header};
use crate::index::Index;
use crate::layer::Layer;
use crate::pairs::{Count, Pairs};
use crate::scales::Tables;
use crate::section::{Appendix, Draft};
use crate::violation::{Section, Violation};

/// The most tensors of one file. A block takes 12 bytes and what is kept of it a hundred times as
/// much; models have some thousand.
const TENSORS_MAX: usize = 1 << 20;

/// What a file holds. Only a fault of its header or its index refuses it as a whole.
pub(super) struct Contents {
    pub(super) header: Header,
    /// Ascending.
    pub(super) layers: Vec<Layer>,
    pub(super) draft: Option<Draft>,
    pub(super) pairs: Pairs,
    pub(super) appendix: Result<Option<Appendix>>,
    /// What strict readers mind.
    pub(super) tolerated: Vec<Error>,
}

impl Contents {
    /// Cost: header, index and scale tables are read, and the first bytes of every tensor; no
    /// values.
    pub(super) fn read(source: &dyn Source) -> Result<Self> {
        let mut tolerated = Vec::new();
        let header = Header::read(source, &mut tolerated)?;
        let index = Index::read(source, header.layer_count, &mut tolerated)?;
        let flags = header.flags;
        let mut limit = TENSORS_MAX;
        let mut layers = Vec::with_capacity(index.entries.len());
        for entry in &index.entries {
            let layer = Layer::read(source, *entry, flags, limit);
            limit = limit.saturating_sub(layer.blocks.len());
            layers.push(layer);
        }
        let draft = header
            .draft
            .map(|meta| Draft::read(source, meta, &index, flags, limit));
        let mut tables = Tables::read(source, &index, &mut tolerated);
        if let Ok(found) = &tables {
            stray_offsets(&layers, found, &mut tolerated);
            if let Some(span) = draft.as_ref().and_then(|draft| draft.span)
                && found.spans.iter().any(|table| table.overlaps(span))
            {
                let section = Section::Scales;
                tables = Err(Violation::SectionOverlap { section }.at(span.offset()));
            }
        }
        let draft_count = draft.as_ref().map_or(Count::default(), |draft| Count {
            tensors: quantized(&draft.blocks),
            is_broken: draft.fault.is_some(),
        });
        let pairs = Pairs::new(&tables, main_count(&layers), draft_count)?;
        let appendix = match end(&index, &tables, draft.as_ref()) {
            Some(end) => Appendix::read(source, end, flags, &mut tolerated),
            None if flags.has(Flags::ANE_COREML) => {
                let section = Section::Appendix;
                Err(Violation::Unplaced { section }.into())
            }
            None => Ok(None),
        };
        Ok(Contents {
            header,
            layers,
            draft,
            pairs,
            appendix,
            tolerated,
        })
    }
}

fn quantized(blocks: &[Block]) -> u64 {
    blocks.iter().filter(|block| block.is_quantized()).count() as u64
}

/// The quantized tensors up to the first that is broken: of those behind it, nobody can tell which
/// entry is whose.
fn main_count(layers: &[Layer]) -> Count {
    let mut count = Count::default();
    for layer in layers {
        count.tensors = count.tensors.saturating_add(quantized(&layer.blocks));
        if layer.fault.is_some() {
            count.is_broken = true;
            break;
        }
    }
    count
}

/// Offsets that lead to nothing. The tables were found all the same, or are not needed.
fn stray_offsets(layers: &[Layer], tables: &Tables, tolerated: &mut Vec<Error>) {
    for layer in layers {
        let offset = layer.entry.scale_offset;
        let masks = layer.mask.iter().filter(|mask| !mask.is_guess);
        let is_mask = masks.into_iter().any(|mask| mask.span.offset() == offset);
        if offset != 0 && !is_mask && !tables.begins_at(offset) {
            let at = layer.entry.at.saturating_add(20);
            tolerated.push(Violation::ScaleOffset { offset }.at(at));
        }
    }
}

/// Where the appendix begins: after all else. `None` where the end of something is not known.
fn end(index: &Index, tables: &Result<Tables>, draft: Option<&Draft>) -> Option<u64> {
    let tables = tables.as_ref().ok()?;
    let tables = tables.spans.iter().map(|table| table.end());
    let draft = match draft {
        Some(draft) => Some(draft.span?.end()),
        None => None,
    };
    tables.chain(draft).chain([index.weights_end()]).max()
}
