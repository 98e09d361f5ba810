//! A matrix by diagonals, SciPy's `dia`.
//!
//! The array of values has a row for each diagonal. The value of a diagonal in a column of the matrix lies
//! in the same column of the array. So the first or the last values of a row may lie outside the matrix,
//! and belong to nothing.

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, in_memory, zeroed};
use zt::{Blob, Result, Source};

use super::{Axis, Coords, Indices, SparseFault, expect};
use crate::strided::Check;

/// The most diagonals. Their places are kept in memory.
const DIAGONALS_MAX: u64 = 1 << 20;

/// The diagonals of a matrix.
#[derive(Debug, Clone)]
pub struct Diagonals {
    /// Those with values in the matrix.
    runs: Arc<[Run]>,
    /// The number of values.
    count: u64,
    /// The values of that array.
    stored: u64,
}

/// The values of a diagonal in the matrix.
#[derive(Debug)]
struct Run {
    /// The number of its first value.
    first: u64,
    /// The place of this value in the array of values.
    place: u64,
    /// Its coordinates.
    row: u64,
    column: u64,
}

impl Diagonals {
    /// The diagonals of a matrix of `shape` that begin `offsets` columns to the right of its first row.
    /// `array` is the shape of the array of values: a row per diagonal. Reads the offsets.
    ///
    /// # Errors
    ///
    /// [`SparseFault`], as an error; those of the source.
    pub fn new(shape: [u64; 2], array: [u64; 2], offsets: &Indices) -> Result<Self> {
        let ([rows, columns], [found, pitch]) = (shape, array);
        expect("diagonals", offsets.count(), found)?;
        if found > DIAGONALS_MAX {
            let limit = DIAGONALS_MAX;
            return Err(SparseFault::Diagonals { found, limit }.into());
        }
        let stored = found.checked_mul(pitch).ok_or(SparseFault::Overflow)?;
        let mut read = zeroed(found)?;
        offsets.fill(0, &mut read)?;
        let read: Vec<i64> = read.into_iter().map(u64::cast_signed).collect();
        if let Some(offset) = repeated(&read) {
            return Err(SparseFault::Diagonal { offset }.into());
        }
        let (mut runs, mut count) = (Vec::new(), 0u64);
        for (diagonal, offset) in (0u64..).zip(read) {
            // In the first row, or in the first column.
            let (column, row) = (offset.max(0).unsigned_abs(), offset.min(0).unsigned_abs());
            let (below, beside) = (rows.checked_sub(row), columns.min(pitch).checked_sub(column));
            let Some(len) = below.zip(beside).map(|(below, beside)| below.min(beside)) else {
                continue;
            };
            if len > 0 {
                runs.push(Run {
                    first: count,
                    place: diagonal.strict_mul(pitch).strict_add(column),
                    row,
                    column,
                });
            }
            // At most `stored`.
            count = count.strict_add(len);
        }
        Ok(Diagonals { runs: runs.into(), count, stored })
    }

    /// The coordinates of the values in the matrix, diagonal by diagonal.
    ///
    /// # Errors
    ///
    /// [`SparseFault::Overflow`].
    pub fn coords(&self) -> Result<Coords, SparseFault> {
        let along = |of: fn(&Run) -> u64| -> Box<dyn Axis> {
            let diagonals = self.clone();
            Box::new(Along { diagonals, of })
        };
        let axes = vec![along(|run| run.row), along(|run| run.column)];
        Coords::new(axes, self.count)
    }

    /// The values in the matrix, in the order of their coordinates. `blob` has the array of values, row by
    /// row, and lies in `base`. A digest of it is checked before the last value is read.
    ///
    /// # Errors
    ///
    /// [`SparseFault`]: the blob has other bytes than elements of `width` bytes need.
    pub fn values(
        &self,
        base: Arc<dyn Source>,
        blob: Blob,
        width: u64,
    ) -> Result<impl Source + use<>, SparseFault> {
        let expected = self.stored.checked_mul(width);
        let expected = expected.ok_or(SparseFault::Overflow)?;
        expect("bytes of values", expected, blob.span.byte_len())?;
        Ok(Values {
            base,
            start: blob.span.offset(),
            check: Check::new(blob),
            width,
            diagonals: self.clone(),
            // Less than `expected`.
            byte_len: self.count.strict_mul(width),
        })
    }

    /// The diagonal of the value `number`, which exists: its values, and how many of them come before this
    /// one and after it, including it.
    fn locate(&self, number: u64) -> io::Result<(&Run, u64, u64)> {
        let after = self.runs.partition_point(|run| run.first <= number);
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at));
        let run = run.ok_or(io::ErrorKind::UnexpectedEof)?;
        let end = self.runs.get(after).map_or(self.count, |run| run.first);
        Ok((run, number.strict_sub(run.first), end.strict_sub(number)))
    }
}

/// The first offset that two diagonals have.
fn repeated(offsets: &[i64]) -> Option<i64> {
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    pairs.find_map(|(one, next)| (one == next).then_some(*one))
}

/// The rows of the values, or the columns.
struct Along {
    diagonals: Diagonals,
    /// The coordinate of a diagonal's first value.
    of: fn(&Run) -> u64,
}

impl Axis for Along {
    fn fill(&self, mut first: u64, out: &mut [u64]) -> io::Result<()> {
        let mut out = out;
        while !out.is_empty() {
            let (run, before, left) = self.diagonals.locate(first)?;
            let len = in_memory(left.min(out.len() as u64));
            let (here, rest) = out.split_at_mut(len);
            let from = (self.of)(run).strict_add(before);
            for (coordinate, at) in here.iter_mut().zip(from..) {
                *coordinate = at;
            }
            (out, first) = (rest, first.strict_add(len as u64));
        }
        Ok(())
    }

    fn is_sequential(&self) -> bool {
        false
    }
}

/// The values in the matrix, gathered diagonal by diagonal.
struct Values {
    base: Arc<dyn Source>,
    /// The offset of the array in the base.
    start: u64,
    check: Check,
    /// Bytes of a value.
    width: u64,
    diagonals: Diagonals,
    byte_len: u64,
}

impl Source for Values {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = end_of_read(self.byte_len, offset, buf)?;
        let (mut at, mut out) = (offset, buf);
        while !out.is_empty() {
            // There are values, so their width is not 0.
            let (number, skip) = (at.strict_div(self.width), at.strict_rem(self.width));
            let (run, before, left) = self.diagonals.locate(number)?;
            let bytes = left.strict_mul(self.width).strict_sub(skip);
            let len = in_memory(bytes.min(out.len() as u64));
            let (here, rest) = out.split_at_mut(len);
            let place = run.place.strict_add(before).strict_mul(self.width);
            let from = self.start.strict_add(place).strict_add(skip);
            self.base.read_at(from, here)?;
            (out, at) = (rest, at.strict_add(len as u64));
        }
        if end == self.byte_len {
            self.check.run(&*self.base)?;
        }
        Ok(())
    }
}
