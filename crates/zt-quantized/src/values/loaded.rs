//! The values of a range, from the codes and scales of that range in memory.

use std::ops::Range;

use zt::Result;
use zt::container::memory::{self, in_memory};

use crate::values::codes::{Codes, Tile};
use crate::values::weight::Formula;

/// Numbers of some blocks.
pub(super) struct Grid {
    pub(super) numbers: Vec<f32>,
    pub(super) row: u64,
    pub(super) column: u64,
    /// Blocks of a row.
    pub(super) width: u64,
}

impl Grid {
    pub(super) fn load(
        codes: &Codes,
        matrix: u64,
        rows: Range<u64>,
        columns: Range<u64>,
    ) -> Result<Self> {
        let tile = codes.load(matrix, rows.clone(), columns.clone())?;
        let (row, column) = (rows.start, columns.start);
        let width = columns.end.strict_sub(column);
        let numbers = match tile.into_numbers(codes, in_memory(width)) {
            Ok(numbers) => numbers,
            Err(tile) => {
                let mut numbers: Vec<f32> =
                    memory::zeroed(width.strict_mul(rows.end.strict_sub(row)))?;
                for (row, line) in rows.zip(numbers.chunks_mut(in_memory(width).max(1))) {
                    tile.fill_row(codes, row, column, line);
                }
                numbers
            }
        };
        Ok(Grid { numbers, row, column, width })
    }

    /// The numbers of a column of blocks, from a row on.
    fn column(&self, column: u64, row: u64) -> impl Iterator<Item = f32> {
        let start = row.strict_sub(self.row).strict_mul(self.width);
        let start = start.strict_add(column.strict_sub(self.column));
        let numbers = self.numbers.get(in_memory(start)..).unwrap_or_default();
        numbers.iter().step_by(in_memory(self.width).max(1)).copied()
    }

    /// The numbers of a row of blocks, from a column on.
    fn row(&self, row: u64, column: u64) -> Option<&[f32]> {
        let start = in_memory(row.strict_sub(self.row).strict_mul(self.width));
        let line = self.numbers.get(start..start.strict_add(in_memory(self.width)))?;
        line.get(in_memory(column.strict_sub(self.column))..)
    }

    #[inline]
    fn at(&self, row: u64, column: u64) -> f32 {
        let line = row.strict_sub(self.row).strict_mul(self.width);
        let at = line.strict_add(column.strict_sub(self.column));
        self.numbers.get(in_memory(at)).copied().unwrap_or(f32::NAN)
    }
}

/// What the values of a range are made of, in memory.
pub(crate) struct Loaded {
    /// The positions of the values.
    pub(crate) range: Range<u64>,
    /// The position of the matrix.
    pub(super) first: u64,
    pub(super) codes: Tile,
    pub(super) scale: Option<Grid>,
    pub(super) zero: Option<Grid>,
    pub(super) bias: Option<Grid>,
    pub(super) global: Option<(f32, bool)>,
}

impl Loaded {
    /// Computes the values from the position `first` on, which were loaded.
    pub(crate) fn compute(&self, formula: &Formula, first: u64, out: &mut [f32]) {
        let line = formula.line();
        let position = first.strict_sub(self.first);
        let (at, along) = (position.strict_div(line), position.strict_rem(line));
        // The end of the first line, whole lines, and the beginning of the last one.
        let before = match along {
            0 => 0,
            _ => in_memory(line.strict_sub(along)).min(out.len()),
        };
        let (begun, rest) = out.split_at_mut(before);
        self.compute_lines(formula, at, along, begun.len(), begun);
        let len = in_memory(line);
        let at = if before > 0 { at.strict_add(1) } else { at };
        let lines = rest.len().strict_div(len);
        let (whole, last) = rest.split_at_mut(lines.strict_mul(len));
        self.compute_lines(formula, at, 0, len, whole);
        self.compute_lines(formula, at.strict_add(lines as u64), 0, last.len(), last);
    }

    /// Computes lines of `len` values, each from `along` on.
    fn compute_lines(&self, formula: &Formula, line: u64, along: u64, len: usize, out: &mut [f32]) {
        let codes = &formula.codes;
        if out.is_empty() || len == 0 {
            return;
        }
        if formula.is_transposed() {
            self.codes.fill_columns(codes, line, along, len, out);
        } else if along == 0 && len as u64 == formula.line() && self.codes.is_contiguous(codes) {
            self.codes.fill_row(codes, line, 0, out);
        } else {
            for (line, values) in (line..).zip(out.chunks_mut(len)) {
                self.codes.fill_row(codes, line, along, values);
            }
        }
        if let Some(scale) = self.scale_of_each_row(formula) {
            // Lines of one block have the same scales, which lie far from each other.
            let [_, c] = formula.block;
            let (mut scales, mut known) = (Vec::with_capacity(len), None);
            for (line, values) in (line..).zip(out.chunks_mut(len)) {
                let across = line.strict_div(c);
                if known.replace(across) != Some(across) {
                    scales.clear();
                    scales.extend(scale.column(across, along).take(len));
                }
                values.iter_mut().zip(&scales).for_each(|(value, scale)| *value *= scale);
            }
            return;
        }
        for (line, values) in (line..).zip(out.chunks_mut(len)) {
            self.scale_line(formula, line, along, values);
        }
    }

    /// The scales, if there is nothing else, and one for each row of what is turned.
    fn scale_of_each_row(&self, formula: &Formula) -> Option<&Grid> {
        let is_alone = self.zero.is_none() && self.bias.is_none() && self.global.is_none();
        let is_each = formula.is_transposed() && formula.block[0] == 1;
        self.scale.as_ref().filter(|_| is_alone && is_each && formula.known_groups().is_none())
    }

    /// Applies scales to the values of one line.
    fn scale_line(&self, formula: &Formula, line: u64, along: u64, out: &mut [f32]) {
        let [r, c] = formula.block;
        let (across, step) =
            if formula.is_transposed() { (line.strict_div(c), r) } else { (line.strict_div(r), c) };
        let number = |grid: &Option<Grid>, group: u64| {
            let (row, column) = formula.rows_and_columns(across, group);
            grid.as_ref().map(|grid| grid.at(row, column))
        };
        let apply = |group: u64, values: &mut [f32]| {
            let factors = [&self.scale, &self.zero, &self.bias].map(|grid| number(grid, group));
            apply(factors, self.global, values);
        };
        if let Some(runs) = formula.known_groups() {
            let (mut along, mut out) = (along, out);
            let first = runs.partition_point(|run| run.end <= along);
            for run in runs.get(first..).unwrap_or_default() {
                if out.is_empty() {
                    break;
                }
                let len = in_memory(run.end.strict_sub(along)).min(out.len());
                let (values, rest) = out.split_at_mut(len);
                apply(run.group, values);
                (along, out) = (run.end, rest);
            }
            return;
        }
        let (mut along, mut out) = (along, out);
        let scales = || {
            let group = along.checked_div(step).filter(|_| along.is_multiple_of(step))?;
            self.scale.as_ref().filter(|_| !formula.is_transposed())?.row(across, group)
        };
        // Short groups of scales that follow each other.
        if let (None, None, Some(scales)) = (&self.zero, &self.bias, scales()) {
            let global = self.global;
            match step {
                16 => out = scale_groups::<16>(scales, global, out),
                32 => out = scale_groups::<32>(scales, global, out),
                _ => {}
            }
            if out.is_empty() {
                return;
            }
        }
        while !out.is_empty() {
            let group = along.strict_div(step);
            let left = step.strict_sub(along.strict_rem(step));
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
            let (values, rest) = out.split_at_mut(len);
            apply(group, values);
            along = along.strict_add(len as u64);
            out = rest;
        }
    }
}

/// Scales whole groups of `N` values, if the products are exact but for one rounding. Returns what is left.
fn scale_groups<'v, const N: usize>(
    scales: &[f32],
    global: Option<(f32, bool)>,
    out: &'v mut [f32],
) -> &'v mut [f32] {
    let groups = out.len().strict_div(N);
    if !out.len().is_multiple_of(N)
        || groups > scales.len()
        || !scales.iter().all(|it| is_short(*it))
    {
        return out;
    }
    let (whole, _) = out.as_chunks_mut::<N>();
    match global {
        None => each_group(whole, scales, |value, scale| value * scale),
        Some((global, false)) => each_group(whole, scales, |value, scale| value * scale * global),
        Some((global, true)) => each_group(whole, scales, |value, scale| value * scale / global),
    }
    &mut []
}

#[inline]
fn each_group<const N: usize>(
    groups: &mut [[f32; N]],
    scales: &[f32],
    product: impl Fn(f32, f32) -> f32,
) {
    for (values, scale) in groups.iter_mut().zip(scales) {
        for value in values {
            *value = product(*value, *scale);
        }
    }
}

/// The values of one block. Products that f32 cannot hold exactly are made in f64, and rounded once.
#[inline]
fn apply([scale, zero, bias]: [Option<f32>; 3], global: Option<(f32, bool)>, values: &mut [f32]) {
    match (scale, zero, bias, global) {
        (Some(scale), None, None, None) => values.iter_mut().for_each(|value| *value *= scale),
        (Some(scale), Some(zero), None, None) if zero.fract() == 0.0 => {
            values.iter_mut().for_each(|value| *value = (*value - zero) * scale);
        }
        // A code of FP4 times a scale of FP8 is exact.
        (Some(scale), None, None, Some((global, false))) if is_short(scale) => {
            values.iter_mut().for_each(|value| *value = (*value * scale) * global);
        }
        (Some(scale), None, None, Some((global, true))) if is_short(scale) => {
            values.iter_mut().for_each(|value| *value = (*value * scale) / global);
        }
        _ => {
            let (scale, zero) = (f64::from(scale.unwrap_or(1.0)), f64::from(zero.unwrap_or(0.0)));
            let bias = f64::from(bias.unwrap_or(0.0));
            let (times, over) = match global {
                Some((global, true)) => (1.0, f64::from(global)),
                Some((global, false)) => (f64::from(global), 1.0),
                None => (1.0, 1.0),
            };
            for value in values {
                let product = (f64::from(*value) - zero) * scale * times / over;
                #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest f32")]
                let rounded = (product + bias) as f32;
                *value = rounded;
            }
        }
    }
}

/// Whether its product with a code of up to 8 bits is exact.
fn is_short(scale: f32) -> bool {
    scale.to_bits() & 0xffff == 0
}
