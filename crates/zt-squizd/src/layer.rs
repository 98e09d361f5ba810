//! The weights of one layer: consecutive tensors, and an optional sparsity mask.

use zt::{Error, Source, Span};

use crate::block::{Block, BlockRun};
use crate::header::Flags;
use crate::index::Entry;
use crate::violation::Violation;

/// A layer, as far as it can be read.
pub(super) struct Layer {
    pub(super) entry: Entry,
    pub(super) blocks: Vec<Block>,
    pub(super) mask: Option<Mask>,
    /// The error that ended the blocks: the fault of the block after the last.
    pub(super) fault: Option<Error>,
}

pub(super) struct Mask {
    pub(super) span: Span,
    /// Whether only the end of the blocks shows where it begins.
    pub(super) is_guess: bool,
}

impl Layer {
    pub(super) fn read(source: &dyn Source, entry: Entry, flags: Flags, limit: usize) -> Self {
        let weights = entry.weights;
        let is_sparse = flags.has(Flags::SPARSE);
        // `scale_offset` has two meanings. Within the layer's own weights it leads to a mask.
        let mask = Span::between(entry.scale_offset, weights.end());
        let mask = mask.filter(|mask| is_sparse && !mask.is_empty());
        let before = mask.and_then(|mask| Span::between(weights.offset(), mask.offset()));
        let range = before.unwrap_or(weights);
        let mut run = BlockRun::read(source, range, flags, limit);
        let mut mask = mask.filter(|_| before.is_some()).map(|span| Mask { span, is_guess: false });
        if run.fault.is_none() {
            let rest = run.rest(range);
            if is_sparse && mask.is_none() && !run.blocks.is_empty() {
                mask = rest.map(|span| Mask { span, is_guess: true });
            } else {
                run.fault = run.no_block(source, range);
            }
            if run.blocks.is_empty() && run.fault.is_none() {
                run.fault = Some(Violation::NoWeights.at(weights.offset()));
            }
        }
        Layer { entry, blocks: run.blocks, mask, fault: run.fault }
    }
}
