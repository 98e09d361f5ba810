//! Matrices of FP4 in groups that share a scale of a byte, read from any packing and given as bytes of another.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use zt::container::memory::{self, end_of_read, in_memory};
use zt::foreign::on_all_cores;
use zt::formats::{F8E4M3Fn, F8E8M0Fnu};
use zt::{OwnedTensor, Result, Slice, Source};

use crate::dialects::E2M1;
use crate::fault::Fault;
use crate::find::byte_values;
use crate::values::codes::all_numbers;
use crate::values::loaded::Grid;
use crate::values::weight::{Formula, Scale};

/// Codes that are in memory at a time for each core.
const CODES: u64 = 256 << 10;

/// What the scales are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scales {
    /// MXFP4: exponents of E8M0, of 32 codes.
    Exponents,
    /// NVFP4: E4M3, of 16 codes.
    Floats,
}

/// Matrices of FP4 codes, with a scale of a byte for each group of a row.
#[derive(Debug)]
pub(crate) struct Fp4 {
    shape: Vec<u64>,
    pub(crate) scales: Scales,
    origin: Origin,
    /// Rows of all matrices, and columns.
    rows: u64,
    columns: u64,
    /// The numbers of matrices, and whether they divide.
    global: Option<(OwnedTensor, bool)>,
}

#[derive(Debug)]
enum Origin {
    Formula(Box<Formula>),
    /// Blocks of GGUF.
    Blocks(OwnedTensor),
}

impl Scales {
    /// The scales of a formula, if its codes are FP4 in such groups along the rows of what it gives.
    pub(crate) fn of(formula: &Formula) -> Option<Self> {
        let Some(Scale::Plain(scale)) = &formula.scale else {
            return None;
        };
        let decoder = formula.codes.decoder()?;
        let bits = |values: &[f32]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        let is_of = |scales: &Scales| {
            let is_type = match scale.decoder() {
                None => scale.tensor().tensor().value_type()? == scales.type_name(),
                Some(decoder) => {
                    bits(decoder.values()) == bits(&byte_values(scales.type_name()).ok()?)
                }
            };
            Some(is_type && formula.block == [1, scales.group()])
        };
        let known = [Scales::Exponents, Scales::Floats];
        let scales = known.into_iter().find(|scales| is_of(scales) == Some(true))?;
        let [rows, columns] = formula.codes.shape();
        let count = formula.codes.count().checked_mul(rows)?.checked_mul(columns);
        let is_whole = columns > 0
            && columns.is_multiple_of(scales.group())
            && zt::formats::element_count(formula.shape()) == count;
        let is_fp4 = bits(decoder.values()) == bits(&E2M1);
        (formula.is_scaled() && is_whole && is_fp4).then_some(scales)
    }

    /// Codes that share a scale.
    pub(crate) const fn group(self) -> u64 {
        match self {
            Scales::Exponents => 32,
            Scales::Floats => 16,
        }
    }

    /// The codes and the bytes of a block of GGUF.
    const fn block(self) -> [u64; 2] {
        match self {
            Scales::Exponents => [32, 17],
            Scales::Floats => [64, 36],
        }
    }

    /// The format of the blocks of GGUF.
    pub(crate) const fn blocks(self) -> &'static str {
        match self {
            Scales::Exponents => "gguf.mxfp4/1",
            Scales::Floats => "gguf.nvfp4/1",
        }
    }

    /// The logical type of scales.
    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Scales::Exponents => "f8_e8m0fnu",
            Scales::Floats => "f8_e4m3fn",
        }
    }

    /// The byte that has the value of a scale.
    fn byte(self, value: f32) -> u8 {
        match self {
            Scales::Exponents => F8E8M0Fnu::from_f32(value).to_bits(),
            Scales::Floats => F8E4M3Fn::from_f32(value).to_bits(),
        }
    }
}

impl Fp4 {
    /// The codes of a formula, if they are FP4 in such groups along the rows of what it gives.
    pub(crate) fn of_formula(formula: Formula) -> Option<Self> {
        let scales = Scales::of(&formula)?;
        let [rows, columns] = formula.codes.shape();
        let rows = formula.codes.count().checked_mul(rows)?;
        let global = formula.global.as_ref().map(|it| (it.tensor.clone(), it.divides));
        let shape = formula.shape().to_vec();
        Some(Fp4 {
            shape,
            scales,
            origin: Origin::Formula(Box::new(formula)),
            rows,
            columns,
            global,
        })
    }

    /// The codes of blocks of GGUF, and the tensor of the number that all are multiplied by.
    pub(crate) fn of_blocks(blocks: OwnedTensor, global: Option<OwnedTensor>) -> Option<Self> {
        let known = [Scales::Exponents, Scales::Floats];
        let scales = known.into_iter().find(|it| it.blocks() == blocks.tensor().format())?;
        let shape = blocks.tensor().shape().to_vec();
        let (columns, outer) = shape.split_last().filter(|(columns, _)| **columns > 0)?;
        let rows = zt::formats::element_count(outer)?;
        let (columns, global) = (*columns, global.map(|tensor| (tensor, false)));
        Some(Fp4 { shape, scales, origin: Origin::Blocks(blocks), rows, columns, global })
    }

    /// The shape of the values.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Whether rows are whole blocks of GGUF.
    pub(crate) const fn is_whole_blocks(&self) -> bool {
        let [codes, _] = self.scales.block();
        self.columns.is_multiple_of(codes)
    }

    /// How many numbers all values of a matrix are multiplied by; `None` without any.
    pub(crate) fn globals(&self) -> Option<u64> {
        self.global.as_ref().and_then(|(tensor, _)| tensor.tensor().element_count())
    }

    /// The codes of rows, one each byte, and the bytes of their scales.
    fn load(&self, rows: Range<u64>) -> Result<(Vec<u8>, Vec<u8>)> {
        let count = rows.end.strict_sub(rows.start).strict_mul(self.columns);
        let mut codes: Vec<u8> = memory::zeroed(count)?;
        let mut scales: Vec<u8> = memory::zeroed(count.strict_div(self.scales.group()))?;
        match &self.origin {
            Origin::Formula(formula) => {
                self.load_formula(formula, rows, &mut codes, &mut scales)?
            }
            Origin::Blocks(blocks) => self.load_blocks(blocks, rows, &mut codes, &mut scales)?,
        }
        Ok((codes, scales))
    }

    fn load_formula(
        &self,
        formula: &Formula,
        rows: Range<u64>,
        codes: &mut [u8],
        scales: &mut [u8],
    ) -> Result<()> {
        let Some(Scale::Plain(scale)) = &formula.scale else { return Ok(()) };
        let [of_matrix, columns] = formula.codes.shape();
        let groups = columns.strict_div(self.scales.group());
        let mut values: Vec<f32> = memory::zeroed(columns)?;
        let (mut codes, mut scales) =
            (codes.chunks_mut(in_memory(columns)), scales.chunks_mut(in_memory(groups)));
        let mut first = rows.start;
        while first < rows.end {
            let matrix = first.strict_div(of_matrix);
            let before = matrix.strict_mul(of_matrix);
            let end = rows.end.min(before.strict_add(of_matrix));
            let here = first.strict_sub(before)..end.strict_sub(before);
            let tile = formula.codes.load(matrix, here.clone(), 0..columns)?;
            let grid = Grid::load(scale, matrix, here.clone(), 0..groups)?;
            let lines = grid.numbers.chunks(in_memory(groups));
            for ((row, numbers), (codes, scales)) in
                here.zip(lines).zip(codes.by_ref().zip(scales.by_ref()))
            {
                tile.fill_row(&formula.codes, row, 0, &mut values);
                codes.iter_mut().zip(&values).for_each(|(code, value)| *code = e2m1(*value));
                let bytes = numbers.iter().map(|number| self.scales.byte(*number));
                scales.iter_mut().zip(bytes).for_each(|(scale, byte)| *scale = byte);
            }
            first = end;
        }
        Ok(())
    }

    fn load_blocks(
        &self,
        blocks: &OwnedTensor,
        rows: Range<u64>,
        codes: &mut [u8],
        scales: &mut [u8],
    ) -> Result<()> {
        let [block_codes, block_len] = self.scales.block();
        let row_len = self.columns.strict_div(block_codes).strict_mul(block_len);
        let bytes = rows.start.strict_mul(row_len)..rows.end.strict_mul(row_len);
        let read = blocks.tensor().slice_component("data", &[Slice::from(bytes)])?;
        let (_, elements) = read.into_elements();
        let half = in_memory(self.scales.group().strict_div(2));
        let each = in_memory(block_codes.strict_div(self.scales.group()));
        let groups =
            codes.chunks_mut(half.strict_mul(2).strict_mul(each)).zip(scales.chunks_mut(each));
        for ((codes, scales), block) in groups.zip(elements.bytes.chunks(in_memory(block_len))) {
            let (of_block, nibbles) = block.split_at_checked(each).unwrap_or_default();
            scales.iter_mut().zip(of_block).for_each(|(scale, byte)| *scale = *byte);
            for (codes, nibbles) in codes.chunks_mut(half.strict_mul(2)).zip(nibbles.chunks(half)) {
                let (low, high) = codes.split_at_mut(half);
                for ((low, high), byte) in low.iter_mut().zip(high).zip(nibbles) {
                    (*low, *high) = (byte & 15, byte >> 4);
                }
            }
        }
        Ok(())
    }
}

/// The code of a value of FP4.
fn e2m1(value: f32) -> u8 {
    let bits = value.to_bits();
    let is = |code: &usize| E2M1.get(*code).is_some_and(|it| it.to_bits() == bits);
    // A value comes from this table.
    (0..E2M1.len()).find(is).and_then(|code| u8::try_from(code).ok()).unwrap_or_default()
}

/// What of a matrix a source gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Blocks of GGUF.
    Blocks,
    /// Two codes a byte, the first in the low half.
    Pairs,
    /// A byte for each group.
    Scales,
    /// The numbers that all values of a matrix are divided by, or else multiplied by, as f32; 1 without any.
    Global { divides: bool },
}

/// Codes or scales of matrices of FP4 as bytes, which are made when they are read.
pub(crate) struct Fp4Bytes {
    pub(crate) of: Arc<Fp4>,
    pub(crate) given: Given,
}

impl Fp4Bytes {
    /// Bytes of a row.
    fn row_len(&self) -> u64 {
        let columns = self.of.columns;
        match self.given {
            Given::Blocks => {
                let [codes, byte_len] = self.of.scales.block();
                columns.strict_div(codes).strict_mul(byte_len)
            }
            Given::Pairs => columns.div_ceil(2),
            Given::Scales => columns.strict_div(self.of.scales.group()),
            Given::Global { .. } => 4,
        }
    }

    /// The bytes of whole rows.
    fn fill(&self, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        if let Given::Global { divides } = self.given {
            return self.fill_global(rows, divides, out);
        }
        let (codes, scales) = self.of.load(rows)?;
        match self.given {
            Given::Pairs => {
                for (byte, pair) in out.iter_mut().zip(codes.as_chunks().0) {
                    let [low, high] = pair;
                    *byte = low | high << 4;
                }
            }
            Given::Scales => out.copy_from_slice(&scales),
            Given::Blocks => self.fill_blocks(&codes, &scales, out)?,
            Given::Global { .. } => {}
        }
        Ok(())
    }

    fn fill_blocks(&self, codes: &[u8], scales: &[u8], out: &mut [u8]) -> Result<()> {
        // ggml takes these scales for other numbers: NaN of E8M0, and what is negative or NaN of E4M3.
        let most = if self.of.scales == Scales::Exponents { 254 } else { 126 };
        if let Some(scale) = scales.iter().find(|scale| **scale > most) {
            let what =
                format!("a scale has the byte {scale:#04x}, which is another number in GGUF");
            return Err(Fault::Rule { dialect: "gguf", what }.into());
        }
        let [block_codes, block_len] = self.of.scales.block();
        let half = in_memory(self.of.scales.group().strict_div(2));
        let each = in_memory(block_codes.strict_div(self.of.scales.group()));
        let blocks = out.chunks_mut(in_memory(block_len));
        let groups = codes.chunks(in_memory(block_codes)).zip(scales.chunks(each));
        for (block, (codes, scales)) in blocks.zip(groups) {
            let (of_block, nibbles) = block.split_at_mut(each);
            of_block.copy_from_slice(scales);
            for (nibbles, codes) in nibbles.chunks_mut(half).zip(codes.chunks(half.strict_mul(2))) {
                let (low, high) = codes.split_at_checked(half).unwrap_or_default();
                for (byte, (low, high)) in nibbles.iter_mut().zip(low.iter().zip(high)) {
                    *byte = low | high << 4;
                }
            }
        }
        Ok(())
    }

    fn fill_global(&self, rows: Range<u64>, divides: bool, out: &mut [u8]) -> Result<()> {
        let Some((tensor, was_divisor)) = &self.of.global else {
            out.as_chunks_mut().0.fill(1f32.to_le_bytes());
            return Ok(());
        };
        let numbers = all_numbers(tensor)?;
        let numbers = numbers.get(in_memory(rows.start)..).unwrap_or_default();
        for (bytes, number) in out.as_chunks_mut().0.iter_mut().zip(numbers) {
            let number = if *was_divisor == divides { *number } else { number.recip() };
            *bytes = number.to_le_bytes();
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        match self.given {
            Given::Global { .. } => self.of.globals().unwrap_or(1),
            _ => self.of.rows,
        }
    }
}

impl Source for Fp4Bytes {
    fn byte_len(&self) -> u64 {
        // A row has fewer bytes than values, and those of all rows were counted.
        self.rows().saturating_mul(self.row_len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = end_of_read(self.byte_len(), offset, out)?;
        let row_len = self.row_len().max(1);
        let (first, last) = (offset.strict_div(row_len), end.div_ceil(row_len));
        let step = CODES.checked_div(self.of.columns).unwrap_or(1).max(1);
        let mut rest = out;
        let mut parts = Vec::new();
        let mut row = first;
        while row < last {
            let next = row.strict_add(step).min(last);
            let (from, to) =
                (row.strict_mul(row_len).max(offset), next.strict_mul(row_len).min(end));
            let (bytes, left) = rest.split_at_mut(in_memory(to.strict_sub(from)));
            parts.push((row..next, in_memory(from.strict_sub(row.strict_mul(row_len))), bytes));
            rest = left;
            row = next;
        }
        on_all_cores(parts, |(rows, before, bytes)| {
            let whole = rows.end.strict_sub(rows.start).strict_mul(row_len);
            if bytes.len() as u64 == whole {
                return self.fill(rows, bytes);
            }
            let mut all: Vec<u8> = memory::zeroed(whole)?;
            self.fill(rows, &mut all)?;
            let part = all.get(before..before.strict_add(bytes.len())).unwrap_or_default();
            bytes.copy_from_slice(part);
            Ok(())
        })?;
        Ok(())
    }

    fn is_remote(&self) -> bool {
        match &self.of.origin {
            Origin::Formula(formula) => {
                let far = |(_, tensor): (&str, &OwnedTensor)| tensor.tensor().is_remote();
                formula.roles().any(far)
            }
            Origin::Blocks(blocks) => blocks.tensor().is_remote(),
        }
    }
}
