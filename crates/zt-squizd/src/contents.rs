//! The parts of a file, read one after the other.

use zt::{Error, Result, Source, Span};

use crate::block::Block;
use crate::header::{Flags, Header};
use crate::index::Index;
use crate::layer::Layer;
use crate::pairs::{Count, Pairs};
use crate::scales::Tables;
use crate::section::{Draft, appendix};
use crate::violation::{Section, Violation};

/// The most tensors of a file. A block may take 12 bytes, and its object a hundred times as much. Models
/// have some thousand.
const TENSORS_MAX: usize = 1 << 20;

/// The parts of a file. Only a fault of the header or the index refuses the whole file.
pub(super) struct Contents {
    pub(super) header: Header,
    /// Ascending.
    pub(super) layers: Vec<Layer>,
    pub(super) draft: Option<Draft>,
    pub(super) pairs: Pairs,
    /// The archive of the CoreML model.
    pub(super) appendix: Result<Option<Span>>,
    /// Faults that only strict readers refuse.
    pub(super) tolerated: Vec<Error>,
}

impl Contents {
    /// Cost: reads the header, the index, the scale tables and the first bytes of every tensor, but no
    /// values.
    #[expect(clippy::arithmetic_side_effects, reason = "a layer has at most `limit` blocks")]
    pub(super) fn read(source: &dyn Source) -> Result<Self> {
        let mut tolerated = Vec::new();
        let header = Header::read(source, &mut tolerated)?;
        let index = Index::read(source, header.layer_count, &mut tolerated)?;
        let flags = header.flags;
        let mut limit = TENSORS_MAX;
        let mut layers = Vec::with_capacity(index.entries.len());
        for entry in &index.entries {
            let layer = Layer::read(source, *entry, flags, limit);
            limit -= layer.blocks.len();
            layers.push(layer);
        }
        let draft = header.draft.map(|meta| Draft::read(source, meta, &index, flags, limit));
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
            Some(end) => appendix(source, end, flags, &mut tolerated),
            None if flags.has(Flags::ANE_COREML) => {
                let section = Section::Appendix;
                Err(Violation::Unplaced { section }.into())
            }
            None => Ok(None),
        };
        Ok(Contents { header, layers, draft, pairs, appendix, tolerated })
    }
}

fn quantized(blocks: &[Block]) -> u64 {
    blocks.iter().filter(|block| block.is_quantized()).count() as u64
}

/// The quantized tensors before the first broken one. The entries of later tensors are unknown.
#[expect(clippy::arithmetic_side_effects, reason = "at most TENSORS_MAX")]
fn main_count(layers: &[Layer]) -> Count {
    let mut count = Count::default();
    for layer in layers {
        count.tensors += quantized(&layer.blocks);
        if layer.fault.is_some() {
            count.is_broken = true;
            break;
        }
    }
    count
}

/// Reports offsets that lead nowhere. The tables were found without them, or are not needed.
#[expect(clippy::arithmetic_side_effects, reason = "within the index")]
fn stray_offsets(layers: &[Layer], tables: &Tables, tolerated: &mut Vec<Error>) {
    for layer in layers {
        let offset = layer.entry.scale_offset;
        let masks = layer.mask.iter().filter(|mask| !mask.is_guess);
        let is_mask = masks.into_iter().any(|mask| mask.span.offset() == offset);
        if offset != 0 && !is_mask && !tables.begins_at(offset) {
            tolerated.push(Violation::ScaleOffset { offset }.at(layer.entry.at + 20));
        }
    }
}

/// Where the appendix begins: after all other parts. `None` if the end of a part is unknown.
fn end(index: &Index, tables: &Result<Tables>, draft: Option<&Draft>) -> Option<u64> {
    let tables = tables.as_ref().ok()?;
    let tables = tables.spans.iter().map(|table| table.end());
    let draft = match draft {
        Some(draft) => Some(draft.span?.end()),
        None => None,
    };
    tables.chain(draft).chain([index.weights_end()]).max()
}
