//! The addresses of a dataset's chunks. Spec: III.A, VII and the appendix of chunk indices.

use std::ops::RangeInclusive;

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{product, sum};
use crate::bytes::store::Store;
use crate::structures::btree1::Tree;
use crate::structures::btree2;
use crate::structures::extensible_array;
use crate::structures::fixed_array;
use crate::structures::grid::Grid;
use crate::structures::layout::{Chunking, Index};

/// A chunk without an entry in an index is charged the bytes of an address, if it has as many.
const IMPLICIT: u64 = 8;

/// A chunk that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its number in the row-major order of the dataset's chunks.
    pub(crate) number: u64,
    pub(crate) address: u64,
    /// Stored bytes.
    pub(crate) byte_len: u64,
    /// The filters that were skipped, the first in the lowest bit.
    pub(crate) mask: u32,
}

/// The chunks that were written, sorted by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Chunks(Vec<Chunk>);

impl Chunks {
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The written chunks with these numbers.
    pub(crate) fn in_range(&self, numbers: RangeInclusive<u64>) -> &[Chunk] {
        let start = self.0.partition_point(|chunk| chunk.number < *numbers.start());
        let (_, behind) = self.0.split_at(start);
        behind.split_at(behind.partition_point(|chunk| chunk.number <= *numbers.end())).0
    }

    /// Reads the index of a dataset. Every chunk has its own length if `is_filtered`.
    pub(crate) fn read(
        store: &Store,
        chunking: &Chunking,
        grid: &Grid,
        is_filtered: bool,
    ) -> Result<Self> {
        let Some(address) = chunking.address else {
            return Ok(Chunks::default());
        };
        let mut found = Found { chunks: Vec::new(), grid, left: store.byte_len() };
        let element =
            Element { is_filtered, length_len: chunking.length_len, chunk_len: grid.chunk_len };
        match chunking.index {
            Index::Tree1 => tree1(store, address, &mut found)?,
            Index::Single(filtered) => {
                let (byte_len, mask) = filtered.unwrap_or((grid.chunk_len, 0));
                found.add(Some(0), address, byte_len, mask)?;
            }
            Index::Implicit => {
                let count = grid.count_max().ok_or(Hdf5Fault::Overflow)?;
                let len = grid.chunk_len;
                store.span(address, product([count, len])?, "all chunks")?;
                // They are kept in memory, although no index is read.
                store.charge(product([count, len.min(IMPLICIT)])?)?;
                for index in 0..count {
                    let at = sum([address, product([index, len])?])?;
                    found.add(grid.number_of_fixed(index), at, len, 0)?;
                }
            }
            Index::FixedArray => fixed_array::visit(store, address, |index, cursor| {
                element.add(cursor, grid.number_of_fixed(index), &mut found)
            })?,
            Index::ExtensibleArray => extensible_array::visit(store, address, |index, cursor| {
                element.add(cursor, grid.number_of_extensible(index), &mut found)
            })?,
            Index::Tree2 => tree2(store, address, element, &mut found)?,
        }
        found.finish()
    }
}

/// The chunks that have been found.
struct Found<'g> {
    chunks: Vec<Chunk>,
    grid: &'g Grid,
    /// Bytes of the file that no chunk has taken. Chunks that share bytes are refused: no writer makes
    /// them, and they could decode to any number of bytes.
    left: u64,
}

impl Found<'_> {
    /// Adds a chunk. One without a number is outside the shape, because the dataset shrank later.
    fn add(&mut self, number: Option<u64>, address: u64, byte_len: u64, mask: u32) -> Result<()> {
        let Some(number) = number else {
            return Ok(());
        };
        let left = self.left.checked_sub(byte_len.max(1));
        let overlap = || Hdf5Fault::field("the length of all chunks", byte_len);
        self.left = left.ok_or_else(overlap)?;
        self.chunks.push(Chunk { number, address, byte_len, mask });
        Ok(())
    }

    fn finish(mut self) -> Result<Chunks> {
        self.chunks.sort_unstable_by_key(|chunk| chunk.number);
        let mut pairs = self.chunks.windows(2);
        let twice = pairs.find_map(|pair| match pair {
            [first, second] if first.number == second.number => Some(first.number),
            _ => None,
        });
        if let Some(value) = twice {
            return Err(Hdf5Fault::field("the number of two chunks", value));
        }
        Ok(Chunks(self.chunks))
    }
}

/// The entry of a chunk in an array or a tree of version 2.
#[derive(Clone, Copy)]
struct Element {
    is_filtered: bool,
    length_len: u64,
    chunk_len: u64,
}

impl Element {
    fn read(self, cursor: &mut Cursor<'_>) -> Result<(Option<u64>, u64, u32)> {
        let address = cursor.address()?;
        Ok(if self.is_filtered {
            (address, cursor.uint(self.length_len)?, cursor.u32()?)
        } else {
            (address, self.chunk_len, 0)
        })
    }

    fn add(
        self,
        cursor: &mut Cursor<'_>,
        number: Option<u64>,
        found: &mut Found<'_>,
    ) -> Result<()> {
        match self.read(cursor)? {
            (Some(address), byte_len, mask) => found.add(number, address, byte_len, mask),
            (None, ..) => Ok(()),
        }
    }
}

/// A tree of version 1. A key has the length, the mask and the first element of a chunk.
fn tree1(store: &Store, root: u64, found: &mut Found<'_>) -> Result<()> {
    let rank = found.grid.rank();
    let tree = Tree {
        what: "a tree of chunks",
        node_type: 1,
        // A length, a mask, and a coordinate per dimension and for the offset in an element.
        key_len: sum([product([rank as u64, 8])?, 8 + 8])?,
    };
    tree.visit(store, root, |mut key, address| {
        let byte_len = u64::from(key.u32()?);
        let mask = key.u32()?;
        let first: Result<Vec<u64>> = (0..rank).map(|_| key.uint(8)).collect();
        let number = found.grid.number_of_first(&first?);
        let number = number.map_err(|value| key.field("the place of a chunk", value))?;
        found.add(number, address, byte_len, mask)
    })
}

/// A tree of version 2. A record ends with the coordinates of a chunk.
fn tree2(store: &Store, root: u64, element: Element, found: &mut Found<'_>) -> Result<()> {
    const PLAIN: u8 = 10;
    const FILTERED: u8 = 11;
    let node_type = if element.is_filtered { FILTERED } else { PLAIN };
    let rank = found.grid.rank();
    btree2::visit(store, root, node_type, "a tree of chunks", |mut record| {
        let (address, byte_len, mask) = element.read(&mut record)?;
        let place: Result<Vec<u64>> = (0..rank).map(|_| record.uint(8)).collect();
        let number = found.grid.number(&place?);
        match address {
            Some(address) => found.add(number, address, byte_len, mask),
            None => Ok(()),
        }
    })
}
