//! The coordinates of values in blocks.

use std::io;

use zt::Error;
use zt::container::memory::{in_memory, zeroed};

use super::Axis;

/// The coordinates of values in blocks, from the coordinates of the blocks. A block has its values row by
/// row.
pub(super) struct Blocks {
    of_blocks: Box<dyn Axis>,
    /// Values of a block.
    area: u64,
    /// Coordinates of a block along this dimension.
    extent: u64,
    /// Values of a block with one coordinate that follow each other.
    run: u64,
}

impl Blocks {
    /// The rows of values in blocks of `[rows, columns]`.
    pub(super) fn rows(of_blocks: Box<dyn Axis>, [rows, columns]: [u64; 2]) -> Box<dyn Axis> {
        Self::along(of_blocks, rows.strict_mul(columns), rows, columns)
    }

    /// The columns.
    pub(super) fn columns(of_blocks: Box<dyn Axis>, [rows, columns]: [u64; 2]) -> Box<dyn Axis> {
        Self::along(of_blocks, rows.strict_mul(columns), columns, 1)
    }

    /// One dimension of blocks of `area` values. Blocks of one value are their coordinates already.
    pub(super) fn along(
        of_blocks: Box<dyn Axis>,
        area: u64,
        extent: u64,
        run: u64,
    ) -> Box<dyn Axis> {
        if area == 1 {
            return of_blocks;
        }
        Box::new(Blocks { of_blocks, area, extent, run })
    }
}

impl Axis for Blocks {
    fn fill(&self, first: u64, out: &mut [u64]) -> io::Result<()> {
        let (block, skip) = (first.strict_div(self.area), first.strict_rem(self.area));
        let blocks = skip.strict_add(out.len() as u64).div_ceil(self.area);
        let mut of_blocks = zeroed(blocks).map_err(Error::from)?;
        self.of_blocks.fill(block, &mut of_blocks)?;
        for (number, coordinate) in (skip..).zip(out) {
            let (block, within) = (number.strict_div(self.area), number.strict_rem(self.area));
            let block = of_blocks.get(in_memory(block)).copied().unwrap_or(u64::MAX);
            let within = within.strict_div(self.run).strict_rem(self.extent);
            // Saturates beyond every dimension, where the rules of `sparse_coo` find it.
            *coordinate = block.saturating_mul(self.extent).saturating_add(within);
        }
        Ok(())
    }

    fn is_sequential(&self) -> bool {
        self.of_blocks.is_sequential()
    }
}
