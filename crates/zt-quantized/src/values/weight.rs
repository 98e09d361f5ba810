//! The values of one weight, from its codes, scales, zero points and offsets.

use std::ops::Range;
use std::sync::OnceLock;

use zt::container::memory::in_memory;
use zt::formats::element_count;
use zt::{DType, OwnedTensor, Result};

use crate::fault::Fault;
use crate::values::codes::{Codes, all_numbers};
use crate::values::loaded::{Grid, Loaded};

/// Scales that are looked at together.
const SCALES: u64 = 64 << 10;

/// How the values of a weight are made: `(code - zero) * scale`, times or divided by one number, plus an offset.
///
/// The codes are matrices. The values are those of the matrices in row-major order, or of the transposed matrices.
#[derive(Debug)]
pub struct Formula {
    pub(super) shape: Vec<u64>,
    pub(super) codes: Codes,
    is_transposed: bool,
    /// Rows and columns that share a scale.
    pub(super) block: [u64; 2],
    pub(super) scale: Option<Scale>,
    pub(super) zero: Option<Codes>,
    /// What is added to a stored zero point.
    pub(super) zero_shift: f32,
    pub(super) bias: Option<Codes>,
    pub(super) global: Option<Global>,
    /// What all products are divided by.
    pub(super) divisor: Option<f32>,
    pub(super) groups: Option<Groups>,
}

/// Scales of blocks.
#[derive(Debug)]
pub(super) enum Scale {
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
pub(super) struct Global {
    pub(super) tensor: OwnedTensor,
    pub(super) divides: bool,
    read: OnceLock<Vec<f32>>,
}

/// The group of each column, or of each row if the matrix is transposed.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) tensor: OwnedTensor,
    count: u64,
    read: OnceLock<Vec<Run>>,
}

/// Neighbours of one group.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) end: u64,
    pub(super) group: u64,
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

    /// The groups of a line, if they were read.
    pub(super) fn known_groups(&self) -> Option<&[Run]> {
        self.groups.as_ref()?.read.get().map(Vec::as_slice)
    }

    /// Whether groups of `step` values of a line follow each other. Groups that the weight gives are read.
    pub(super) fn has_groups_in_order(&self, step: u64) -> Result<bool> {
        let Some(groups) = &self.groups else { return Ok(true) };
        let mut start = 0;
        Ok(groups.runs()?.iter().all(|run| {
            let first = std::mem::replace(&mut start, run.end).strict_div(step);
            first == run.group && run.end.strict_sub(1).strict_div(step) == first
        }))
    }

    /// Whether a few rows of values are made of a part of each stored row.
    pub(crate) const fn is_transposed(&self) -> bool {
        self.is_transposed
    }

    /// Rows and columns that share a scale; `u64::MAX` for all.
    pub(crate) const fn block_len(&self) -> [u64; 2] {
        self.block
    }

    /// Whether the values are products of codes, plain scales and perhaps one number, in the order of the codes.
    pub(crate) fn is_scaled(&self) -> bool {
        let is_sum = self.zero.is_some() || self.bias.is_some();
        let is_other = self.is_transposed || self.groups.is_some() || self.divisor.is_some();
        matches!(&self.scale, Some(Scale::Plain(_))) && !is_sum && !is_other
    }

    /// The shape of the values.
    pub fn shape(&self) -> &[u64] {
        &self.shape
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

    /// All tensors that values are made of, and what each is for.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&'static str, &OwnedTensor)> {
        let (scales, absmax) = match &self.scale {
            Some(Scale::Plain(codes)) => (Some(codes), None),
            Some(Scale::Nested { codes, absmax, .. }) => (Some(codes), Some(absmax)),
            None => (None, None),
        };
        let codes = [
            ("codes", Some(&self.codes)),
            ("scales", scales),
            ("zeros", self.zero.as_ref()),
            ("biases", self.bias.as_ref()),
        ];
        let numbers = [
            ("absmax", absmax),
            ("global_scale", self.global.as_ref().map(|global| &global.tensor)),
            ("groups", self.groups.as_ref().map(|groups| &groups.tensor)),
        ];
        let codes = codes.into_iter().map(|(role, codes)| (role, codes.map(Codes::tensor)));
        codes.chain(numbers).filter_map(|(role, tensor)| Some((role, tensor?)))
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
    pub(super) fn line(&self) -> u64 {
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
        let mut codes = self.codes.load(matrix, rows.clone(), columns.clone())?;
        if self.is_transposed {
            codes.spread()?;
        }
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
            groups.runs()?;
        }
        Ok(Loaded { range: range.clone(), first, codes, scale, zero, bias, global })
    }

    /// Lines and places in them as rows and columns of the stored matrix.
    pub(super) fn rows_and_columns<T>(&self, lines: T, along: T) -> (T, T) {
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
    fn runs(&self) -> Result<&[Run]> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        let tensor = self.tensor.tensor();
        let elements = tensor.elements("data")?;
        let integers: Vec<i64> = match elements.dtype {
            DType::I64 => elements.as_slice::<i64>()?.to_vec(),
            _ => elements.as_slice::<i32>()?.iter().map(|group| i64::from(*group)).collect(),
        };
        let mut runs = Vec::new();
        for same in integers.chunk_by(|group, next| group == next) {
            let start = runs.last().map_or(0, |run: &Run| run.end);
            let group = same.first().copied().unwrap_or_default();
            let known = u64::try_from(group).ok().filter(|group| *group < self.count);
            let fault = || Fault::Group {
                name: tensor.name().to_owned(),
                position: in_memory(start),
                group,
                count: self.count,
            };
            let end = start.strict_add(same.len() as u64);
            runs.push(Run { end, group: known.ok_or_else(fault)? });
        }
        Ok(self.read.get_or_init(|| runs))
    }
}
