//! The rows of values, from the numbers of the values that begin them.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use zt::container::memory::{in_memory, zeroed};
use zt::{Error, Result};

use super::{Axis, Indices, SparseFault, expect};

/// Pointers that are read together. Of each such block, the first is kept.
const BLOCK: u64 = 8 << 10;

/// The row of each value, or the column. Here, a *row* is either.
pub(super) struct Pointers {
    pointers: Indices,
    /// The number of values.
    count: u64,
    /// The first pointer of each block, once all pointers have been checked.
    firsts: OnceLock<Vec<u64>>,
    /// The block that was read last: reading goes on there.
    last: Mutex<Block>,
}

#[derive(Default)]
struct Block {
    number: u64,
    pointers: Vec<u64>,
}

impl Pointers {
    /// The `rows` of `count` values.
    pub(super) fn new(pointers: Indices, rows: u64, count: u64) -> Result<Self, SparseFault> {
        let expected = rows.checked_add(1).ok_or(SparseFault::Overflow)?;
        expect("pointers", expected, pointers.count())?;
        Ok(Pointers { pointers, count, firsts: OnceLock::new(), last: Mutex::default() })
    }

    /// The first pointer of each block. The first call reads all pointers, and checks them: they begin with
    /// 0, never decrease, and end with the number of values.
    fn firsts(&self) -> Result<&[u64]> {
        if let Some(firsts) = self.firsts.get() {
            return Ok(firsts);
        }
        let mut firsts = Vec::new();
        let (mut at, mut before) = (0u64, 0);
        let mut block = Block::default();
        while at < self.pointers.count() {
            self.read(&mut block, at.strict_div(BLOCK))?;
            firsts.extend(block.pointers.first());
            for &found in &block.pointers {
                if at == 0 && found != 0 {
                    return Err(pointer(at, found, 0).into());
                }
                if found < before {
                    return Err(SparseFault::Decreases { at, found, before }.into());
                }
                (at, before) = (at.strict_add(1), found);
            }
        }
        if before != self.count {
            let last = at.strict_sub(1);
            return Err(pointer(last, before, self.count).into());
        }
        Ok(self.firsts.get_or_init(|| firsts))
    }

    fn read(&self, block: &mut Block, number: u64) -> io::Result<()> {
        let first = number.strict_mul(BLOCK);
        let left = self.pointers.count().checked_sub(first);
        let len = left.ok_or(io::ErrorKind::UnexpectedEof)?.min(BLOCK);
        block.pointers.clear();
        let mut pointers = zeroed(len).map_err(Error::from)?;
        self.pointers.fill(first, &mut pointers)?;
        *block = Block { number, pointers };
        Ok(())
    }

    /// The pointer at a position; `block` is the one that was read last.
    fn at(&self, block: &mut Block, position: u64) -> io::Result<u64> {
        let number = position.strict_div(BLOCK);
        if block.number != number || block.pointers.is_empty() {
            self.read(block, number)?;
        }
        let found = block.pointers.get(in_memory(position.strict_rem(BLOCK)));
        found.copied().ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

fn pointer(at: u64, found: u64, expected: u64) -> SparseFault {
    SparseFault::Pointer { at, found, expected }
}

impl Axis for Pointers {
    fn fill(&self, first: u64, out: &mut [u64]) -> io::Result<()> {
        let firsts = self.firsts()?;
        // The last block that begins with a row before the value, or with the value's own.
        let blocks = firsts.partition_point(|start| *start <= first) as u64;
        let mut row = blocks.saturating_sub(1).strict_mul(BLOCK);
        // A panic leaves a whole block, because blocks are only ever replaced.
        let mut block = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, row_of) in (first..).zip(out) {
            while self.at(&mut block, row.strict_add(1))? <= number {
                row = row.strict_add(1);
            }
            *row_of = row;
        }
        Ok(())
    }

    fn is_sequential(&self) -> bool {
        self.pointers.is_sequential()
    }
}
