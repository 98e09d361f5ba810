//! The weights of one layer: tensors back to back, and perhaps a sparsity mask.

use zt::{Error, Source, Span};

use crate::block::{Block, Run};
use crate::header::Flags;
use crate::index::Entry;

/// A layer, followed as far as it can be.
pub(super) struct Layer {
    pub(super) entry: Entry,
    pub(super) blocks: Vec<Block>,
    pub(super) mask: Option<Mask>,
    /// Why the blocks do not go on; whose fault it is, is the block after the last.
    pub(super) fault: Option<Error>,
}

/// The bytes of a mask.
pub(super) struct Mask {
    pub(super) span: Span,
    /// Whether nothing but the end of the blocks says where it begins.
    pub(super) is_guess: bool,
}

impl Layer {
    /// Follows the blocks of a layer, at most `limit`.
    pub(super) fn read(source: &dyn Source, entry: Entry, flags: Flags, limit: usize) -> Self {
        let weights = entry.weights;
        let is_sparse = flags.has(Flags::SPARSE);
        // The field has two meanings; within the layer's own weights it is a mask's.
        let pointed = Span::between(entry.scale_offset, weights.end())
            .filter(|mask| is_sparse && weights.offset() <= mask.offset() && !mask.is_empty());
        let end = pointed.map_or(weights.end(), Span::offset);
        let range = Span::between(weights.offset(), end).unwrap_or_default();
        let mut run = Run::read(source, range, flags, limit);
        let mut mask = pointed.map(|span| Mask {
            span,
            is_guess: false,
        });
        if run.fault.is_none() {
            let rest = run.rest(range);
            if is_sparse && mask.is_none() && !run.blocks.is_empty() {
                mask = rest.map(|span| Mask {
                    span,
                    is_guess: true,
                });
            } else {
                run.fault = run.no_block(source, range);
            }
            if run.blocks.is_empty() && run.fault.is_none() {
                run.fault = Some(super::violation::Violation::NoWeights.at(weights.offset()));
            }
        }
        Layer {
            entry,
            blocks: run.blocks,
            mask,
            fault: run.fault,
        }
    }
}
