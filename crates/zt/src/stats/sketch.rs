//! What a picture of an object is made of: a histogram, and a matrix in blocks.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts of values that exist, and places in tables that have them"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "bits of a float, means that are shown as colours"
)]

use std::sync::{Mutex, PoisonError};

use zt_formats::{Coo, Csr, Elements, Reals, Registry, View};

use super::quantized::Quantized;
use super::values::{Bound, Real, fold};
use crate::error::Result;
use crate::file::tensor::Tensor;

/// The most bins of a histogram.
const BINS: i64 = 64;
/// Bytes of values for which a table of all their upper halves is worth its length.
///
/// Pays: `zt report` of 100,000 tensors of 160 bytes takes 0.22 of the CPU time that it takes with a table for
/// each. Of matrices of 2.5 MB it takes 0.29 of that without tables.
const WORTH_TABLE: usize = 128 << 10;

/// A histogram of the values of an object, and its matrix in blocks.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sketch {
    /// Of the finite values; `None` if there is none.
    pub histogram: Option<Histogram>,
    /// `None` for an object of fewer than two dimensions, and for a sparse one of more.
    pub blocks: Option<Blocks>,
    /// What a quantized object stores.
    pub quantized: Option<Quantized>,
}

/// Counts of finite values in at most 64 bins of one width, which is a power of two.
///
/// Values are counted by sign, exponent and the first 7 bits of their fraction, so that the range need not be
/// known before. The bins are made of these counts and are exact. An edge belongs to the bin that is farther from
/// 0, and 0 to the bin above it.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The lower edge of the first bin, in widths: it is `start * width`.
    pub start: i64,
    /// The width of a bin.
    pub width: f64,
    /// The values in each bin. The first and the last have at least one.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// The edges of the bins, one more than there are bins.
    pub fn edges(&self) -> Vec<f64> {
        let edges = self.start..;
        edges.map(|at| at as f64 * self.width).take(self.counts.len() + 1).collect()
    }
}

/// A matrix in blocks of nearly one size. Its rows are the first dimension, its columns all others.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    /// Blocks from top to bottom.
    pub rows: usize,
    /// Blocks from left to right.
    pub columns: usize,
    /// What a block has.
    pub kind: BlockKind,
    /// The blocks row by row; not finite if a value of the block is not.
    pub values: Vec<f32>,
}

/// What a block of a matrix has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// The value of its only element.
    Element,
    /// The mean of the absolute values of its elements.
    MeanAbs,
    /// Of a sparse matrix, the share of its elements that are stored.
    Density,
}

/// Makes the sketch of one object, on several threads.
pub(super) struct Sketcher {
    grid: Option<Grid>,
    /// Counts that no thread adds to. Their sums do not depend on who made them.
    counts: Mutex<Vec<Counts>>,
}

/// The sums of the blocks that some values of a matrix lie in.
#[derive(Debug, Default)]
pub(super) struct SketchPart {
    /// The first row of blocks.
    first: usize,
    sums: Vec<f64>,
}

impl Sketcher {
    /// Of a matrix with this many rows and columns, if it is one, in blocks of this many along each side at most.
    pub(super) fn of(matrix: Option<(u64, u64)>, side: u16) -> Self {
        Sketcher {
            grid: matrix.map(|(rows, columns)| Grid::new(rows, columns, side)),
            counts: Mutex::default(),
        }
    }

    /// Adds the values from the place `start` on. The sums are added later, in the order of the values: sums of
    /// floats depend on it.
    pub(super) fn add(
        &self,
        elements: &Elements<'_>,
        registry: &Registry,
        start: u64,
    ) -> Result<SketchPart> {
        let mut counts = self.locked().pop().unwrap_or_default();
        let (mut sums, mut at) = (SketchPart::default(), start);
        let has_table = elements.bytes.len() >= WORTH_TABLE;
        let taken = elements.for_each_real(registry, |values| match values {
            Reals::F32(values) => {
                if has_table {
                    counts.add_singles(values);
                } else {
                    values.iter().for_each(|it| counts.add((*it).into(), 1));
                }
                self.add_to_blocks(values, &mut at, &mut sums);
            }
            Reals::F64(values) => {
                values.iter().for_each(|value| counts.add(*value, 1));
                self.add_to_blocks(values, &mut at, &mut sums);
            }
        });
        if taken.is_err() {
            elements.scalars(registry)?.for_each(|value| {
                let value = Bound::of(value).as_f64();
                counts.add(value, 1);
                self.add_to_blocks(&[value], &mut at, &mut sums);
            });
        }
        self.locked().push(counts);
        Ok(sums)
    }

    fn add_to_blocks<T: Real>(&self, values: &[T], at: &mut u64, sums: &mut SketchPart) {
        if let Some(grid) = &self.grid {
            grid.add(values, *at, sums);
        }
        *at = at.strict_add(values.len() as u64);
    }

    /// The sketch, with this many zeros more. Bins of integers are no narrower than 1.
    pub(super) fn finish(self, zeros: u64, is_integer: bool, parts: &[SketchPart]) -> Sketch {
        let all = self.counts.into_inner();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let mut counts = all.pop().unwrap_or_default();
        counts.take_table();
        for mut more in all {
            more.take_table();
            counts.append(&more);
        }
        if zeros > 0 {
            counts.add(0.0, zeros);
        }
        Sketch {
            histogram: counts.histogram(is_integer),
            blocks: self.grid.map(|grid| grid.blocks(parts)),
            quantized: None,
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Counts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts by the upper 19 bits of an f64: the sign, the exponent and 7 bits of the fraction. A weight has one of a
/// few exponents, so that few octaves are made.
#[derive(Debug)]
struct Counts {
    /// By sign and exponent, the place of an octave plus 1; 0 if there is none.
    places: Vec<u16>,
    /// Signs and exponents, with their counts.
    octaves: Vec<(u16, [u64; FRACTIONS])>,
    /// Counts of f32 by their upper 16 bits; empty until there are many.
    table: Vec<u64>,
    /// The exponent of 2 that no bin is narrower than.
    narrowest: i32,
}

const FRACTIONS: usize = 1 << 7;
/// Sign and exponent.
const OCTAVES: usize = 1 << 12;

impl Default for Counts {
    fn default() -> Self {
        Counts {
            places: vec![0; OCTAVES],
            octaves: Vec::new(),
            table: Vec::new(),
            narrowest: -1022,
        }
    }
}

impl Counts {
    #[inline]
    fn add(&mut self, value: f64, count: u64) {
        let bits = value.to_bits();
        // Twelve bits, and seven.
        let (octave, fraction) = ((bits >> 52) as u16, (bits >> 45) as usize % FRACTIONS);
        if value.is_finite() {
            self.octave(octave)[fraction] += count;
        }
    }

    /// Adds each value. The upper 16 bits of an f32 have as many bits of its fraction.
    fn add_singles(&mut self, values: &[f32]) {
        self.table.resize(1 << 16, 0);
        let Ok(table) = <&mut [u64; 1 << 16]>::try_from(&mut *self.table) else {
            return;
        };
        for value in values {
            table[(value.to_bits() >> 16) as usize] += 1;
        }
    }

    /// Moves the counts of the table to the octaves.
    fn take_table(&mut self) {
        for (bits, count) in (0u32..).zip(std::mem::take(&mut self.table)) {
            let value = f32::from_bits(bits << 16);
            if count > 0 {
                self.add(value.into(), count);
            }
            // Subnormal values are counted together by fewer of their bits, and the least of them as 0.
            if count > 0 && !value.is_normal() {
                self.narrowest = -133;
            }
        }
    }

    #[inline]
    fn octave(&mut self, octave: u16) -> &mut [u64; FRACTIONS] {
        let place = &mut self.places[usize::from(octave)];
        if *place == 0 {
            self.octaves.push((octave, [0; FRACTIONS]));
            *place = self.octaves.len() as u16; // At most 4096.
        }
        &mut self.octaves[usize::from(*place) - 1].1
    }

    fn append(&mut self, more: &Counts) {
        self.narrowest = self.narrowest.max(more.narrowest);
        for (octave, theirs) in &more.octaves {
            for (count, more) in self.octave(*octave).iter_mut().zip(theirs) {
                *count += more;
            }
        }
    }

    /// Values that are counted together, by the one that is nearest to 0.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let buckets = self.octaves.iter().flat_map(|(octave, counts)| {
            let value = |fraction: u64| f64::from_bits(u64::from(*octave) << 52 | fraction << 45);
            let counts = (0..).zip(counts).filter(|(_, count)| **count > 0);
            counts.map(move |(fraction, count)| (value(fraction), *count))
        });
        buckets.collect()
    }

    fn histogram(&self, is_integer: bool) -> Option<Histogram> {
        let buckets = self.buckets();
        let most = buckets.iter().map(|(value, _)| value.abs()).reduce(f64::max)?;
        // As narrow as the widest bucket. All edges of buckets are edges of such bins, or lie within one.
        let narrowest = (most.to_bits() >> 52) as i32 - 1023 - 7;
        let narrowest = narrowest.max(if is_integer { 0 } else { self.narrowest });
        let (width, start, len) = (narrowest..).find_map(|exponent| {
            let width = 2f64.powi(exponent);
            let bins = || buckets.iter().map(|(value, _)| bin(*value, width));
            let (first, last) = (bins().min()?, bins().max()?);
            (last - first < BINS).then_some((width, first, last - first + 1))
        })?;
        let mut counts = vec![0; usize::try_from(len).ok()?];
        for (value, count) in buckets {
            let at = usize::try_from(bin(value, width) - start).unwrap_or(0);
            counts[at] += count;
        }
        Some(Histogram { start, width, counts })
    }
}

/// The bin of a value, counted from 0. The quotient is at most 256 for the narrowest bins.
fn bin(value: f64, width: f64) -> i64 {
    let magnitude = (value.abs() / width) as i64;
    if value < 0.0 { -1 - magnitude } else { magnitude }
}

/// A matrix that is cut into blocks.
struct Grid {
    rows: Axis,
    columns: Axis,
}

/// One side of a matrix: where each of its blocks ends.
struct Axis {
    ends: Vec<u64>,
}

impl Axis {
    /// Of at most `side` blocks.
    fn new(len: u64, side: u16) -> Self {
        let blocks = len.min(side.max(1).into());
        let end = |at: u64| (u128::from(at) * u128::from(len)).div_ceil(blocks.into()) as u64;
        Axis { ends: (1..=blocks).map(end).collect() }
    }

    const fn blocks(&self) -> usize {
        self.ends.len()
    }

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn block(&self, at: u64) -> usize {
        self.ends.partition_point(|end| *end <= at)
    }

    /// The lengths of the blocks.
    fn lens(&self) -> impl Iterator<Item = f64> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| (end - start) as f64)
    }
}

impl Grid {
    fn new(rows: u64, columns: u64, side: u16) -> Self {
        Grid { rows: Axis::new(rows, side), columns: Axis::new(columns, side) }
    }

    fn add<T: Real>(&self, values: &[T], start: u64, to: &mut SketchPart) {
        let (columns, is_exact) = (self.columns.len(), self.is_exact());
        let (mut row, mut column, mut rest) = (start / columns, start % columns, values);
        while !rest.is_empty() {
            let sums = to.row(self.rows.block(row), self.columns.blocks());
            let first = self.columns.block(column);
            let blocks = sums.iter_mut().zip(&self.columns.ends).skip(first);
            for (sum, end) in blocks {
                let len = usize::try_from(end - column).unwrap_or(usize::MAX);
                let (run, behind) = rest.split_at(len.min(rest.len()));
                *sum += if is_exact {
                    run.iter().map(|value| (*value).into()).sum()
                } else {
                    let magnitudes = fold(run, 0.0, |sum, value| sum + value.into().abs());
                    magnitudes.into_iter().sum::<f64>()
                };
                (column, rest) = (*end, behind);
                if rest.is_empty() {
                    return;
                }
            }
            (row, column) = (row + 1, 0);
        }
    }

    fn is_exact(&self) -> bool {
        [&self.rows, &self.columns].iter().all(|axis| axis.len() == axis.blocks() as u64)
    }

    fn blocks(&self, parts: &[SketchPart]) -> Blocks {
        let (high, wide) = (self.rows.blocks(), self.columns.blocks());
        let mut sums = vec![0.0; high * wide];
        for part in parts {
            let into = sums.iter_mut().skip(part.first * wide);
            into.zip(&part.sums).for_each(|(sum, more)| *sum += more);
        }
        let lens =
            self.rows.lens().flat_map(|high| self.columns.lens().map(move |wide| high * wide));
        Blocks {
            rows: high,
            columns: wide,
            kind: if self.is_exact() { BlockKind::Element } else { BlockKind::MeanAbs },
            values: sums.iter().zip(lens).map(|(sum, len)| (sum / len) as f32).collect(),
        }
    }
}

/// Where a sparse matrix has values; `None` for any other object.
pub(super) fn pattern(tensor: &Tensor<'_>, side: u16) -> Result<Option<Blocks>> {
    let [rows, columns] = *tensor.shape() else {
        return Ok(None);
    };
    if rows == 0 || columns == 0 {
        return Ok(None);
    }
    let grid = Grid::new(rows, columns, side);
    // From the first block on: the values of COO may come in any order.
    let (high, wide) = (grid.rows.blocks(), grid.columns.blocks());
    let mut sums = vec![0.0; high * wide];
    let mut add = |row: u64, column: u64| {
        sums[grid.rows.block(row) * wide + grid.columns.block(column)] += 1.0;
    };
    match tensor.format() {
        Csr::FORMAT => {
            let matrix: Csr<'_> = tensor.view()?;
            for row in 0..matrix.indptr().len().saturating_sub(1) {
                let places = matrix.row(row).unwrap_or_default();
                let columns = matrix.indices().get(places).unwrap_or_default();
                columns.iter().for_each(|column| add(row as u64, *column));
            }
        }
        Coo::FORMAT => {
            let matrix: Coo<'_> = tensor.view()?;
            let axis = |axis| matrix.coords(axis).unwrap_or_default();
            let places = axis(0).iter().zip(axis(1));
            places.for_each(|(row, column)| add(*row, *column));
        }
        _ => return Ok(None),
    }
    Ok(Some(Blocks { kind: BlockKind::Density, ..grid.blocks(&[SketchPart { first: 0, sums }]) }))
}

impl SketchPart {
    /// The sums of a row of blocks. No earlier one than the first is asked for.
    fn row(&mut self, row: usize, wide: usize) -> &mut [f64] {
        if self.sums.is_empty() {
            self.first = row;
        }
        let start = (row - self.first) * wide;
        if self.sums.len() <= start {
            self.sums.resize(start + wide, 0.0);
        }
        &mut self.sums[start..start + wide]
    }
}
