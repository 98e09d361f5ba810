//! The values of one weight, from its codes, scales, zero points and offsets.

use std::ops::Range;
use std::sync::OnceLock;

use zt::container::memory::{self, in_memory};
use zt::formats::element_count;
use zt::{DType, OwnedTensor, Result};

use crate::fault::Fault;
use crate::values::codes::{Codes, Tile, all_numbers};

/// Scales that are looked at together.
const SCALES: u64 = 64 << 10;

/// How the values of a weight are made: `(code - zero) * scale`, times or divided by one number, plus an offset.
///
/// The codes are matrices. The values are those of the matrices in row-major order, or of the transposed matrices.
#[derive(Debug)]
pub struct Formula {
    shape: Vec<u64>,
    codes: Codes,
    is_transposed: bool,
    /// Rows and columns that share a scale.
    block: [u64; 2],
    scale: Option<Scale>,
    zero: Option<Codes>,
    /// What is added to a stored zero point.
    zero_shift: f32,
    bias: Option<Codes>,
    global: Option<Global>,
    /// What all products are divided by.
    divisor: Option<f32>,
    groups: Option<Groups>,
}

/// Scales of blocks.
#[derive(Debug)]
enum Scale {
    Plain(Codes),
    /// The scales are codes themselves: `table[code] * absmax[position / block] + offset`.
    Nested {
        codes: Codes,
        absmax: OwnedTensor,
        block: u64,
        offset: f32,
        read: OnceLock<Vec<f32>>,
    },
}

/// One number for all values of a matrix.
#[derive(Debug)]
struct Global {
    tensor: OwnedTensor,
    divides: bool,
    read: OnceLock<Vec<f32>>,
}

/// The group of each column, or of each row if the matrix is transposed.
#[derive(Debug)]
struct Groups {
    tensor: OwnedTensor,
    count: u64,
    read: OnceLock<Vec<u32>>,
}

impl Formula {
    /// The values of `codes`, which are of this shape.
    ///
    /// # Errors
    ///
    /// Code `quantization` if the shape has more values than the codes.
    pub fn new(shape: impl Into<Vec<u64>>, codes: Codes) -> Result<Self> {
        let shape = shape.into();
        let [rows, columns] = codes.shape();
        let there = codes.count().checked_mul(rows).and_then(|all| all.checked_mul(columns));
        let wanted = element_count(&shape);
        if wanted.is_none() || wanted > there {
            let found = codes.tensor().tensor().shape().to_vec();
            return Err(Fault::TooFew { shape, found }.into());
        }
        Ok(Formula {
            shape,
            codes,
            is_transposed: false,
            block: [u64::MAX, u64::MAX],
            scale: None,
            zero: None,
            zero_shift: 0.0,
            bias: None,
            global: None,
            divisor: None,
            groups: None,
        })
    }

    /// The values of the transposed matrices.
    pub fn transposed(mut self) -> Self {
        self.is_transposed = true;
        self
    }

    /// The rows and columns that share a scale, a zero point and an offset.
    pub fn block(mut self, rows: u64, columns: u64) -> Self {
        self.block = [rows.max(1), columns.max(1)];
        self
    }

    /// As [`Formula::block`], for whole groups of columns of one row.
    ///
    /// # Errors
    ///
    /// Code `quantization` if the columns are not whole groups.
    pub fn groups_of(self, columns: u64) -> Result<Self> {
        let [_, all] = self.codes.shape();
        if !all.is_multiple_of(columns.max(1)) {
            let of = self.codes.tensor().tensor();
            let (name, shape) = (of.name().to_owned(), of.shape().to_vec());
            return Err(Fault::Groups { name, shape, group: columns }.into());
        }
        Ok(self.block(1, columns))
    }

    /// Rows and columns of the blocks, for each of so many matrices: the shape that scales have.
    pub fn grid(&self) -> [u64; 3] {
        let [rows, columns] = self.codes.shape();
        let [r, c] = self.block;
        [self.codes.count(), rows.div_ceil(r), columns.div_ceil(c)]
    }

    /// Multiplies by the scale of each block.
    ///
    /// # Errors
    ///
    /// Code `quantization` if there is not one for each block.
    pub fn scale(mut self, scale: Codes) -> Result<Self> {
        self.expect_grid(&scale)?;
        self.scale = Some(Scale::Plain(scale));
        Ok(self)
    }

    /// As [`Formula::scale`], where a scale is `codes * absmax[position / block] + offset`, each step rounded to f32.
    ///
    /// # Errors
    ///
    /// As [`Formula::scale`], and if there are too few of `absmax`.
    pub fn nested_scale(
        mut self,
        codes: Codes,
        absmax: OwnedTensor,
        block: u64,
        offset: f32,
    ) -> Result<Self> {
        self.expect_grid(&codes)?;
        let [count, rows, columns] = self.grid();
        let scales = count.strict_mul(rows).strict_mul(columns);
        let (found, expected) = (absmax.tensor().element_count(), scales.div_ceil(block.max(1)));
        if found != Some(expected) {
            let name = absmax.tensor().name().to_owned();
            let shape = absmax.tensor().shape().to_vec();
            return Err(Fault::Shape { name, shape, count: 1, rows: 1, columns: expected }.into());
        }
        let read = OnceLock::new();
        self.scale = Some(Scale::Nested { codes, absmax, block: block.max(1), offset, read });
        Ok(self)
    }

    /// Subtracts a zero point of each block, to which `shift` is added, from the codes.
    ///
    /// # Errors
    ///
    /// As [`Formula::scale`].
    pub fn zero(mut self, zero: Codes, shift: f32) -> Result<Self> {
        self.expect_grid(&zero)?;
        (self.zero, self.zero_shift) = (Some(zero), shift);
        Ok(self)
    }

    /// Adds an offset of each block to the products.
    ///
    /// # Errors
    ///
    /// As [`Formula::scale`].
    pub fn bias(mut self, bias: Codes) -> Result<Self> {
        self.expect_grid(&bias)?;
        self.bias = Some(bias);
        Ok(self)
    }

    /// Multiplies all products by one number, or divides them by it: the only one of the tensor, or the one of each
    /// matrix.
    ///
    /// # Errors
    ///
    /// Code `quantization` if the tensor has another number of numbers.
    pub fn global(mut self, tensor: OwnedTensor, divides: bool) -> Result<Self> {
        let found = tensor.tensor().element_count();
        if found != Some(1) && found != Some(self.codes.count()) {
            let (name, count) = (tensor.tensor().name().to_owned(), self.codes.count());
            let shape = tensor.tensor().shape().to_vec();
            return Err(Fault::Shape { name, shape, count, rows: 1, columns: 1 }.into());
        }
        self.global = Some(Global { tensor, divides, read: OnceLock::new() });
        Ok(self)
    }

    /// Divides all products by a constant.
    pub fn divided_by(mut self, divisor: f32) -> Self {
        self.divisor = Some(divisor);
        self
    }

    /// Gives each column its group, or each row if the matrix is transposed. Otherwise groups follow each other, in the
    /// length of a block.
    ///
    /// # Errors
    ///
    /// Code `quantization` if the tensor does not have one for each.
    pub fn groups(mut self, tensor: OwnedTensor) -> Result<Self> {
        let ([rows, columns], [_, row_groups, column_groups]) = (self.codes.shape(), self.grid());
        let (expected, count) =
            if self.is_transposed { (rows, row_groups) } else { (columns, column_groups) };
        let is_integers =
            tensor.tensor().dtype().is_some_and(|it| [DType::I32, DType::I64].contains(&it));
        if tensor.tensor().element_count() != Some(expected) || !is_integers {
            let name = tensor.tensor().name().to_owned();
            let shape = tensor.tensor().shape().to_vec();
            return Err(Fault::Shape { name, shape, count: 1, rows: 1, columns: expected }.into());
        }
        self.groups = Some(Groups { tensor, count, read: OnceLock::new() });
        Ok(self)
    }

    fn expect_grid(&self, found: &Codes) -> Result<()> {
        let [count, rows, columns] = self.grid();
        if found.count() != count || found.shape() != [rows, columns] {
            let of = found.tensor().tensor();
            let (name, shape) = (of.name().to_owned(), of.shape().to_vec());
            return Err(Fault::Shape { name, shape, count, rows, columns }.into());
        }
        Ok(())
    }

    /// Whether a few rows of values are made of a part of each stored row.
    pub(crate) const fn is_transposed(&self) -> bool {
        self.is_transposed
    }

    /// The shape of the values.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The tensors whose numbers multiply: scales.
    pub(crate) fn scales(&self) -> impl Iterator<Item = &OwnedTensor> {
        let scale = self.scale.iter().map(|scale| match scale {
            Scale::Plain(codes) => codes.tensor(),
            Scale::Nested { absmax, .. } => absmax,
        });
        scale.chain(self.global.iter().map(|global| &global.tensor))
    }

    /// Scales of the whole weight, as numbers, a part at a time.
    pub(crate) fn for_each_scale(&self, mut take: impl FnMut(&OwnedTensor, &[f32])) -> Result<()> {
        let [count, rows, columns] = self.grid();
        if let Some(scale) = &self.scale {
            let codes = match scale {
                Scale::Plain(codes) | Scale::Nested { codes, .. } => codes,
            };
            let step = SCALES.checked_div(columns).unwrap_or(1).max(1);
            // Shapes without values may be of any length.
            let count = if rows == 0 || columns == 0 { 0 } else { count };
            for matrix in 0..count {
                let mut row = 0;
                while row < rows {
                    let end = row.strict_add(step).min(rows);
                    let numbers = self.scale_of(scale, matrix, row..end, 0..columns)?;
                    take(codes.tensor(), &numbers.numbers);
                    row = end;
                }
            }
        }
        if let Some(global) = &self.global {
            take(&global.tensor, global.numbers()?);
        }
        Ok(())
    }

    /// All tensors that values are made of.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &OwnedTensor> {
        let codes = [Some(&self.codes), self.zero.as_ref(), self.bias.as_ref()];
        let groups = self.groups.iter().map(|groups| &groups.tensor);
        let nested = self.scale.iter().filter_map(|scale| match scale {
            Scale::Nested { codes, .. } => Some(codes.tensor()),
            Scale::Plain(_) => None,
        });
        codes
            .into_iter()
            .flatten()
            .map(Codes::tensor)
            .chain(groups)
            .chain(nested)
            .chain(self.scales())
    }

    /// Parts of the range of about `most` values: whole lines of one matrix, or a part of one line.
    pub(crate) fn parts(&self, range: Range<u64>, most: u64) -> Vec<Range<u64>> {
        let line = self.line();
        let mut parts = Vec::new();
        let mut first = range.start;
        while first < range.end {
            let of_matrix = self.matrix_len().max(1);
            let in_matrix = first.strict_rem(of_matrix);
            let next_matrix = first.strict_sub(in_matrix).strict_add(of_matrix);
            let column = in_matrix.strict_rem(line);
            let end_of_line = first.strict_sub(column).strict_add(line);
            let end = if line >= most {
                first.strict_add(most).min(end_of_line)
            } else {
                let lines = most.strict_div(line).max(1);
                first.strict_sub(column).strict_add(lines.strict_mul(line))
            };
            let end = end.min(range.end).min(next_matrix);
            parts.push(first..end);
            first = end;
        }
        parts
    }

    fn matrix_len(&self) -> u64 {
        let [rows, columns] = self.codes.shape();
        rows.strict_mul(columns)
    }

    /// Values of a row of the logical matrix.
    fn line(&self) -> u64 {
        let [rows, columns] = self.codes.shape();
        if self.is_transposed { rows.max(1) } else { columns.max(1) }
    }

    /// What the values of `range`, which lies in one matrix, are made of.
    pub(crate) fn load(&self, range: &Range<u64>) -> Result<Loaded> {
        let (line, len) = (self.line(), self.matrix_len().max(1));
        let matrix = range.start.strict_div(len);
        let first = matrix.strict_mul(len);
        let (start, end) = (range.start.strict_sub(first), range.end.strict_sub(first));
        let lines = start.strict_div(line)..end.div_ceil(line);
        let along = if lines.end.strict_sub(lines.start) == 1 {
            let before = lines.start.strict_mul(line);
            start.strict_sub(before)..end.strict_sub(before)
        } else {
            0..line
        };
        let (rows, columns) = self.rows_and_columns(lines, along);
        let codes = self.codes.load(matrix, rows.clone(), columns.clone())?;
        let [r, c] = self.block;
        let blocks = |range: &Range<u64>, block: u64| {
            range.start.strict_div(block)..range.end.div_ceil(block)
        };
        let (mut row_blocks, mut column_blocks) = (blocks(&rows, r), blocks(&columns, c));
        if self.groups.is_some() {
            // A group may be anywhere.
            let [_, all_rows, all_columns] = self.grid();
            if self.is_transposed {
                row_blocks = 0..all_rows;
            } else {
                column_blocks = 0..all_columns;
            }
        }
        let grid =
            |codes: &Codes| Grid::load(codes, matrix, row_blocks.clone(), column_blocks.clone());
        let scale = match &self.scale {
            Some(scale) => {
                Some(self.scale_of(scale, matrix, row_blocks.clone(), column_blocks.clone())?)
            }
            None => None,
        };
        let mut zero = self.zero.as_ref().map(grid).transpose()?;
        for zero in zero.iter_mut().flat_map(|zero| &mut zero.numbers) {
            *zero += self.zero_shift;
        }
        let bias = self.bias.as_ref().map(grid).transpose()?;
        let global = match &self.global {
            None => self.divisor.map(|divisor| (divisor, true)),
            Some(global) => {
                let numbers = global.numbers()?;
                let number = numbers.get(in_memory(matrix)).or(numbers.first());
                Some((number.copied().unwrap_or(f32::NAN), global.divides))
            }
        };
        if let Some(groups) = &self.groups {
            groups.numbers()?;
        }
        Ok(Loaded { range: range.clone(), first, codes, scale, zero, bias, global })
    }

    /// Lines and places in them as rows and columns of the stored matrix.
    fn rows_and_columns<T>(&self, lines: T, along: T) -> (T, T) {
        if self.is_transposed { (along, lines) } else { (lines, along) }
    }

    fn scale_of(
        &self,
        scale: &Scale,
        matrix: u64,
        rows: Range<u64>,
        columns: Range<u64>,
    ) -> Result<Grid> {
        let (codes, absmax, block, offset, read) = match scale {
            Scale::Plain(codes) => return Grid::load(codes, matrix, rows, columns),
            Scale::Nested { codes, absmax, block, offset, read } => {
                (codes, absmax, block, offset, read)
            }
        };
        let absmax = read_once(read, absmax)?;
        let [_, all_rows, all_columns] = self.grid();
        let mut grid = Grid::load(codes, matrix, rows, columns)?;
        let first = matrix.strict_mul(all_rows);
        for (at, number) in grid.numbers.iter_mut().enumerate() {
            let at = at as u64;
            let (row, column) =
                (at.strict_div(grid.width.max(1)), at.strict_rem(grid.width.max(1)));
            let row = first.strict_add(grid.row).strict_add(row);
            let position = row.strict_mul(all_columns).strict_add(grid.column).strict_add(column);
            let absmax = absmax.get(in_memory(position.strict_div(*block))).copied();
            *number = *number * absmax.unwrap_or(f32::NAN) + offset;
        }
        Ok(grid)
    }
}

fn read_once<'o>(once: &'o OnceLock<Vec<f32>>, tensor: &OwnedTensor) -> Result<&'o [f32]> {
    if let Some(read) = once.get() {
        return Ok(read);
    }
    let numbers = all_numbers(tensor)?;
    Ok(once.get_or_init(|| numbers))
}

impl Global {
    fn numbers(&self) -> Result<&[f32]> {
        read_once(&self.read, &self.tensor)
    }
}

impl Groups {
    /// The groups, which exist.
    fn numbers(&self) -> Result<&[u32]> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        let tensor = self.tensor.tensor();
        let elements = tensor.elements("data")?;
        let integers: Vec<i64> = match elements.dtype {
            DType::I64 => elements.as_slice::<i64>()?.to_vec(),
            _ => elements.as_slice::<i32>()?.iter().map(|group| i64::from(*group)).collect(),
        };
        let mut groups = Vec::with_capacity(integers.len());
        for (position, group) in integers.into_iter().enumerate() {
            let known = u32::try_from(group).ok().filter(|group| u64::from(*group) < self.count);
            let count = self.count;
            groups.push(known.ok_or(Fault::Group {
                name: tensor.name().to_owned(),
                position,
                group,
                count,
            })?);
        }
        Ok(self.read.get_or_init(|| groups))
    }
}

/// Numbers of some blocks.
struct Grid {
    numbers: Vec<f32>,
    row: u64,
    column: u64,
    /// Blocks of a row.
    width: u64,
}

impl Grid {
    fn load(codes: &Codes, matrix: u64, rows: Range<u64>, columns: Range<u64>) -> Result<Self> {
        let tile = codes.load(matrix, rows.clone(), columns.clone())?;
        let width = columns.end.strict_sub(columns.start);
        let count = width.strict_mul(rows.end.strict_sub(rows.start));
        let mut numbers: Vec<f32> = memory::zeroed(count)?;
        for (row, line) in rows.clone().zip(numbers.chunks_mut(in_memory(width).max(1))) {
            tile.fill_row(codes, row, columns.start, line);
        }
        Ok(Grid { numbers, row: rows.start, column: columns.start, width })
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
    first: u64,
    codes: Tile,
    scale: Option<Grid>,
    zero: Option<Grid>,
    bias: Option<Grid>,
    global: Option<(f32, bool)>,
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
        if formula.is_transposed {
            self.codes.fill_columns(codes, line, along, len, out);
        } else if along == 0 && len as u64 == formula.line() && self.codes.is_contiguous(codes) {
            self.codes.fill_row(codes, line, 0, out);
        } else {
            for (line, values) in (line..).zip(out.chunks_mut(len)) {
                self.codes.fill_row(codes, line, along, values);
            }
        }
        for (line, values) in (line..).zip(out.chunks_mut(len)) {
            self.scale_line(formula, line, along, values);
        }
    }

    /// Applies scales to the values of one line.
    fn scale_line(&self, formula: &Formula, line: u64, along: u64, out: &mut [f32]) {
        let [r, c] = formula.block;
        let (across, step) =
            if formula.is_transposed { (line.strict_div(c), r) } else { (line.strict_div(r), c) };
        let number = |grid: &Option<Grid>, group: u64| {
            let (row, column) = formula.rows_and_columns(across, group);
            grid.as_ref().map(|grid| grid.at(row, column))
        };
        let apply = |group: u64, values: &mut [f32]| {
            let factors = [&self.scale, &self.zero, &self.bias].map(|grid| number(grid, group));
            apply(factors, self.global, values);
        };
        if let Some(groups) = formula.groups.as_ref().and_then(|groups| groups.read.get()) {
            // Neighbours are often of one group, in checkpoints that are sorted.
            let mut groups = groups.get(in_memory(along)..).unwrap_or_default();
            let mut out = out;
            while let ([group, ..], false) = (groups, out.is_empty()) {
                let same = groups.iter().take_while(|other| *other == group).count().min(out.len());
                let (values, rest) = out.split_at_mut(same);
                apply((*group).into(), values);
                groups = groups.get(same..).unwrap_or_default();
                out = rest;
            }
            return;
        }
        let (mut along, mut out) = (along, out);
        let scales = || {
            let group = along.checked_div(step).filter(|_| along.is_multiple_of(step))?;
            self.scale.as_ref().filter(|_| !formula.is_transposed)?.row(across, group)
        };
        // A scale for each row of what is turned.
        if let (None, None, None, Some(scale)) = (&self.zero, &self.bias, self.global, &self.scale)
            && formula.is_transposed
            && step == 1
        {
            let scales = scale.column(across, along);
            out.iter_mut().zip(scales).for_each(|(value, scale)| *value *= scale);
            return;
        }
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
