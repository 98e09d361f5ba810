//! Sparse layouts of other programs, as coordinates for `sparse_coo`.
//!
//! ```text
//! csr, csc  pointers: where each row (column) begins, and the end; indices: a column (row) per value
//! bsr, bsc  the same of blocks, and every block has all of its values, row by row
//! dia       offsets: one per diagonal, whose values lie at their columns
//! coo       an array of indices per dimension
//! hybrid    coo whose values are arrays: the last dimensions are dense
//! ```
//!
//! Coordinates are made when they are read, from the indices in the file. Values keep their order, so
//! they stay where they are in the file. Only those of diagonals are gathered.
//!
//! Invariants: pointers are checked before the first coordinate is made of them. Memory does not grow
//! with the number of values. A coordinate outside the shape is left to the rules of `sparse_coo`.

mod blocks;
mod diagonals;
mod fault;
mod indices;
mod pointers;

use std::io;

use zt::container::memory::{in_memory, read_whole, resize};
use zt::{Error, Source};

pub use diagonals::Diagonals;
pub use fault::SparseFault;
pub use indices::Indices;

use blocks::Blocks;
use pointers::Pointers;

/// Bytes of a coordinate.
const WIDTH: u64 = 8;

/// Coordinates that are made at a time.
const PIECE: u64 = 8 << 10;

/// The coordinates of values along one dimension.
pub trait Axis: Send + Sync {
    /// Fills `out` with the coordinates of the values from number `first` on, which all exist.
    ///
    /// # Errors
    ///
    /// Those of the source; an error of `zt` if the file's own indices are invalid.
    fn fill(&self, first: u64, out: &mut [u64]) -> io::Result<()>;

    /// Whether it is made of a [sequential](Source::is_sequential) source.
    fn is_sequential(&self) -> bool;
}

/// The dimension whose indices are compressed to pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressed {
    /// The first dimension: CSR, BSR.
    Rows,
    /// The second dimension: CSC, BSC.
    Columns,
}

/// The component `coords` of `sparse_coo`: u64, first all of the first dimension, then all of the second.
pub struct Coords {
    axes: Vec<Box<dyn Axis>>,
    /// The number of values.
    count: u64,
    byte_len: u64,
}

impl Coords {
    /// The coordinates of `count` values, of an axis per dimension, outermost first.
    ///
    /// # Errors
    ///
    /// [`SparseFault::Overflow`].
    pub fn new(axes: Vec<Box<dyn Axis>>, count: u64) -> Result<Self, SparseFault> {
        let byte_len = count.checked_mul(WIDTH);
        let byte_len = byte_len.and_then(|len| len.checked_mul(axes.len() as u64));
        Ok(Coords { axes, count, byte_len: byte_len.ok_or(SparseFault::Overflow)? })
    }

    /// The coordinates of values with an array of indices per dimension: COO as SciPy saves it. With one
    /// dimension, these are the indices as u64.
    ///
    /// # Errors
    ///
    /// [`SparseFault`]: the arrays differ in length.
    pub fn listed(indices: impl IntoIterator<Item = Indices>) -> Result<Self, SparseFault> {
        let (mut axes, mut count) = (Vec::<Box<dyn Axis>>::new(), None);
        for indices in indices {
            let (expected, found) = (*count.get_or_insert(indices.count()), indices.count());
            expect("indices", expected, found)?;
            axes.push(Box::new(indices));
        }
        Coords::new(axes, count.unwrap_or(0))
    }

    /// The coordinates of single values, where each stored value is an array of the dimensions `dense`:
    /// hybrid COO, whose last dimensions are dense. `indices` are those of the first dimensions, an array
    /// for each.
    ///
    /// # Errors
    ///
    /// [`SparseFault`]: the arrays of indices differ in length.
    pub fn hybrid(
        indices: impl IntoIterator<Item = Indices>,
        dense: &[u64],
    ) -> Result<Self, SparseFault> {
        let listed = Coords::listed(indices)?;
        let area = dense.iter().try_fold(1, |area: u64, it| area.checked_mul(*it));
        let area = area.ok_or(SparseFault::Overflow)?;
        let count = listed.count.checked_mul(area);
        let first = listed.axes.into_iter();
        let mut axes: Vec<_> = first.map(|axis| Blocks::along(axis, area, 1, 1)).collect();
        let mut run = area;
        for extent in dense {
            // Without elements there are no values, and no coordinate is made.
            run = run.checked_div(*extent).unwrap_or(0);
            axes.push(Blocks::along(Box::new(Origin), area, *extent, run));
        }
        Coords::new(axes, count.ok_or(SparseFault::Overflow)?)
    }

    /// The coordinates of a compressed matrix of `shape`: CSR, CSC, and BSR, BSC with their `block` of rows
    /// and columns, which is `[1, 1]` for the first two. There are as many values as indices, times the
    /// values of a block. They are stored block by block, each row by row.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use zt::{Blob, ByteOrder, DType, Memory, Source, Span};
    /// use zt_foreign::sparse::{Compressed, Coords, Indices};
    ///
    /// let indices = |values: &[i32]| {
    ///     let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    ///     let all = Blob::raw(Span::new(0, bytes.len() as u64).unwrap());
    ///     Indices::new(Arc::new(Memory::new(bytes)), all, DType::I32, ByteOrder::Little)
    /// };
    /// // [[0, 5], [7, 8]] by columns.
    /// let (pointers, rows) = (indices(&[0, 1, 3])?, indices(&[1, 0, 1])?);
    /// let coords = Coords::compressed(Compressed::Columns, [2, 2], [1, 1], pointers, rows)?;
    /// let mut bytes = [0; 48];
    /// coords.read_at(0, &mut bytes)?;
    /// let lowest: Vec<u8> = bytes.iter().step_by(8).copied().collect();
    /// assert_eq!(lowest, [1, 0, 1, 0, 1, 1]);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SparseFault`]: blocks do not fill the shape, or the number of pointers does not fit the rows (or
    /// columns) of blocks and one more.
    pub fn compressed(
        by: Compressed,
        shape: [u64; 2],
        block: [u64; 2],
        pointers: Indices,
        indices: Indices,
    ) -> Result<Self, SparseFault> {
        let [height, width] = block;
        let area = height.checked_mul(width).ok_or(SparseFault::Overflow)?;
        let count = indices.count().checked_mul(area);
        let count = count.ok_or(SparseFault::Overflow)?;
        let [rows, columns] = shape;
        let (rows, columns) = (in_blocks(rows, height)?, in_blocks(columns, width)?);
        let (rows, columns): (Box<dyn Axis>, Box<dyn Axis>) = match by {
            Compressed::Rows => {
                let pointers = Pointers::new(pointers, rows, indices.count())?;
                (Box::new(pointers), Box::new(indices))
            }
            Compressed::Columns => {
                let pointers = Pointers::new(pointers, columns, indices.count())?;
                (Box::new(indices), Box::new(pointers))
            }
        };
        let axes = [Blocks::rows(rows, block), Blocks::columns(columns, block)];
        Coords::new(axes.into(), count)
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// The coordinate of dense dimensions where each stored value begins.
struct Origin;

impl Axis for Origin {
    fn fill(&self, _: u64, out: &mut [u64]) -> io::Result<()> {
        out.fill(0);
        Ok(())
    }

    fn is_sequential(&self) -> bool {
        false
    }
}

/// The number of blocks in a dimension.
fn in_blocks(dimension: u64, block: u64) -> Result<u64, SparseFault> {
    match (dimension.checked_div(block), dimension.checked_rem(block)) {
        (Some(blocks), Some(0)) => Ok(blocks),
        _ => Err(SparseFault::Block { dimension, block }),
    }
}

fn expect(what: &'static str, expected: u64, found: u64) -> Result<(), SparseFault> {
    if expected == found {
        return Ok(());
    }
    Err(SparseFault::Count { what, expected, found })
}

impl Source for Coords {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.axes.iter().any(|axis| axis.is_sequential())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut coordinates = Vec::new();
        read_whole(self.byte_len, in_memory(WIDTH), offset, buf, |mut number, mut out| {
            while !out.is_empty() {
                // There are values, or no byte could be read.
                let (axis, first) = (number.strict_div(self.count), number.strict_rem(self.count));
                let axis = self.axes.get(in_memory(axis));
                let axis = axis.ok_or(io::ErrorKind::UnexpectedEof)?;
                let wanted = out.len() as u64 / WIDTH;
                let len = wanted.min(PIECE).min(self.count.strict_sub(first));
                resize(&mut coordinates, len).map_err(Error::from)?;
                axis.fill(first, &mut coordinates)?;
                let (here, rest) = out.split_at_mut(in_memory(len.strict_mul(WIDTH)));
                let places = here.as_chunks_mut::<8>().0.iter_mut();
                places.zip(&coordinates).for_each(|(place, it)| *place = it.to_le_bytes());
                (out, number) = (rest, number.strict_add(len));
            }
            Ok(())
        })
    }
}
