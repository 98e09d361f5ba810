//! Weights of integer codes as blocks of GGUF with the same values: Q4_0, Q4_1 and Q8_0.
//!
//! A block has 32 values of a row, and a scale of f16, `d`. A value of Q4_0 is `(code - 8) * d`, of Q4_1 `code * d + m`,
//! and of Q8_0 `code * d`. Nothing is rounded: a scale that f16 does not have is an error.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use zt::container::memory::{self, in_memory, read_whole};
use zt::foreign::on_all_cores;
use zt::formats::f16;
use zt::{FloatType, Result, Source};

use crate::fault::Fault;
use crate::values::codes::Codes;
use crate::values::source::{Computed, Latest};
use crate::values::weight::{Formula, Scale};

/// Values of a block.
const BLOCK: u64 = 32;

/// Values that are in memory at a time.
const VALUES: u64 = 1 << 20;

/// Blocks that one core packs at a time.
const PACKED: usize = 2 << 10;

/// Zero points that are looked at together.
const ZEROS: u64 = 64 << 10;

/// The zero point of Q4_0.
const MIDDLE: f32 = 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Q4_0,
    Q4_1,
    Q8_0,
}

impl Kind {
    const fn byte_len(self) -> u64 {
        match self {
            Kind::Q4_0 => 18,
            Kind::Q4_1 => 20,
            Kind::Q8_0 => 34,
        }
    }
}

/// A weight as blocks of GGUF, which are made when they are read.
pub(crate) struct IntegerBlocks {
    kind: Kind,
    shape: Vec<u64>,
    count: u64,
    /// The integers as f32: codes less their zero points; of Q4_1, codes alone.
    codes: Arc<dyn Source>,
    /// What is added to an integer to get the bits of it.
    base: f32,
    scales: Arc<dyn Source>,
    /// Of Q4_1: zero points, or what is added to the products.
    minima: Option<(Arc<dyn Source>, Minimum)>,
    /// Values in one row of the codes, and how many of them share a scale.
    line: u64,
    step: u64,
    /// Lines of a matrix, and how many of them share scales.
    lines: u64,
    across: u64,
}

/// What was loaded last of the codes, of the scales, and of the zero points of a file.
pub(crate) type LatestParts = [Latest; 3];

#[derive(Debug, Clone, Copy)]
enum Minimum {
    /// A zero point, after this shift.
    Zero(f32),
    Offset,
}

impl IntegerBlocks {
    /// The blocks of a formula; `None` if its codes are no integers of 4 or 8 bits in groups of whole blocks along the
    /// rows of what it gives. Zero points and the groups of columns are read where the kind of the blocks depends on them.
    pub(crate) fn of_formula(
        formula: Formula,
        number: usize,
        latest: &LatestParts,
    ) -> Result<Option<Self>> {
        let Some(decoder) = formula.codes.decoder() else { return Ok(None) };
        let values = decoder.values();
        let first = values.first().copied().unwrap_or(f32::NAN);
        let is_bytes = values.len() == 256;
        let fits = matches!(&formula.scale, Some(Scale::Plain(_)))
            && (values.len() == 16 && decoder.first().is_some()
                || is_bytes && values.iter().all(|it| it.fract() == 0.0))
            && formula.global.is_none()
            && formula.divisor.is_none();
        let (line, is_turned) = (formula.line(), formula.is_transposed());
        let [rows, columns] = formula.codes.shape();
        let lines = if is_turned { columns } else { rows };
        let (across, step) = match (formula.block, is_turned) {
            ([r, c], true) => (c, r.min(line)),
            ([r, c], false) => (r, c.min(line)),
        };
        let count = zt::formats::element_count(&formula.shape);
        let is_whole = |len: u64| len > 0 && len.is_multiple_of(BLOCK);
        let (Some(count), true) = (count, fits) else { return Ok(None) };
        let last = formula.shape.last().copied().unwrap_or(0);
        if ![line, step, last].into_iter().all(is_whole) || !formula.has_groups_in_order(step)? {
            return Ok(None);
        }
        let Formula { shape, codes, scale, zero, zero_shift, bias, block, .. } = formula;
        let Some(Scale::Plain(scale)) = scale else { return Ok(None) };
        let source = |formula: Formula, latest: &Latest| {
            let formula = if is_turned { formula.transposed() } else { formula };
            let latest = Arc::clone(latest);
            Ok::<_, zt::Error>(Computed::object(formula, FloatType::F32, number, latest)?.1)
        };
        let of_grid = |codes: Codes, latest: &Latest| {
            let [rows, columns] = codes.shape();
            source(Formula::new([codes.count(), rows, columns], codes)?, latest)
        };
        let [latest_codes, latest_scales, latest_zeros] = latest;
        let all = [codes.count(), rows, columns];
        let mut integers = Formula::new(all, codes)?.block(block[0], block[1]);
        let shift = zero_shift - first;
        let mut minima = None;
        let kind = match (zero, bias) {
            (Some(zero), None) if is_bytes => {
                integers = integers.zero(zero, zero_shift)?;
                Kind::Q8_0
            }
            (None, None) if is_bytes => Kind::Q8_0,
            (None, None) if first == -MIDDLE => Kind::Q4_0,
            (Some(zero), None) if !is_bytes => {
                let source = of_grid(zero.clone(), latest_zeros)?;
                if all_are(&*source, MIDDLE - shift)? {
                    integers = integers.zero(zero, zero_shift)?;
                    Kind::Q4_0
                } else {
                    minima = Some((source, Minimum::Zero(shift)));
                    Kind::Q4_1
                }
            }
            (None, Some(bias)) if !is_bytes && first == 0.0 => {
                minima = Some((of_grid(bias, latest_zeros)?, Minimum::Offset));
                Kind::Q4_1
            }
            _ => return Ok(None),
        };
        let base = match kind {
            Kind::Q4_0 => MIDDLE,
            Kind::Q4_1 => -first,
            Kind::Q8_0 => 0.0,
        };
        let (codes, scales) = (source(integers, latest_codes)?, of_grid(scale, latest_scales)?);
        let blocks = IntegerBlocks {
            kind,
            shape,
            count,
            codes,
            base,
            scales,
            minima,
            line,
            step,
            lines,
            across,
        };
        Ok(Some(blocks))
    }

    /// The shape of the values.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The format of the blocks of GGUF.
    pub(crate) const fn format(&self) -> &'static str {
        match self.kind {
            Kind::Q4_0 => "gguf.q4_0/1",
            Kind::Q4_1 => "gguf.q4_1/1",
            Kind::Q8_0 => "gguf.q8_0/1",
        }
    }

    /// Fills `out` with whole blocks from `first` on.
    fn fill(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let len = in_memory(self.kind.byte_len());
        for (number, out) in (0u64..).zip(out.chunks_mut(in_memory(VALUES / BLOCK).strict_mul(len)))
        {
            let first = first.strict_add(number.strict_mul(VALUES / BLOCK));
            self.fill_some(first, out)?;
        }
        Ok(())
    }

    fn fill_some(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let len = in_memory(self.kind.byte_len());
        let count = (out.len() as u64).strict_div(self.kind.byte_len());
        let (start, end) = (first.strict_mul(BLOCK), first.strict_add(count).strict_mul(BLOCK));
        let codes = numbers(&*self.codes, start..end)?;
        // Scales of whole lines.
        let lines = self.scale_line(start)..self.scale_line(end.saturating_sub(1)).strict_add(1);
        let width = self.line.div_ceil(self.step);
        let of_lines = lines.start.strict_mul(width)..lines.end.strict_mul(width);
        let scales = numbers(&*self.scales, of_lines.clone())?;
        let minima = match &self.minima {
            Some((source, _)) => numbers(&**source, of_lines)?,
            None => Vec::new(),
        };
        let pieces = out.chunks_mut(PACKED.strict_mul(len));
        let pieces = pieces.zip(codes.chunks(PACKED.strict_mul(in_memory(BLOCK))));
        let pieces = (0u64..).step_by(PACKED).zip(pieces).collect();
        on_all_cores(pieces, |(before, (blocks, codes))| {
            let blocks = blocks.chunks_mut(len).zip(codes.chunks(in_memory(BLOCK)));
            for (at, (block, codes)) in (first.strict_add(before)..).zip(blocks) {
                let position = at.strict_mul(BLOCK);
                let line = self.scale_line(position).strict_sub(lines.start);
                let group = position.strict_rem(self.line).strict_div(self.step);
                let place = in_memory(line.strict_mul(width).strict_add(group));
                let of = |numbers: &[f32]| numbers.get(place).copied();
                self.pack(block, codes, of(&scales).unwrap_or(f32::NAN), of(&minima))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The line of scales of a value.
    const fn scale_line(&self, position: u64) -> u64 {
        let line = position.strict_div(self.line);
        let (matrix, line) = (line.strict_div(self.lines), line.strict_rem(self.lines));
        matrix.strict_mul(self.lines.div_ceil(self.across)).strict_add(line.strict_div(self.across))
    }

    /// Writes a block.
    fn pack(
        &self,
        block: &mut [u8],
        codes: &[f32],
        scale: f32,
        minimum: Option<f32>,
    ) -> Result<()> {
        let (head, bits) = block.split_at_mut(if self.kind == Kind::Q4_1 { 4 } else { 2 });
        let minimum = match (minimum, &self.minima) {
            (Some(zero), Some((_, Minimum::Zero(shift)))) => Some(-(zero + shift) * scale),
            (minimum, _) => minimum,
        };
        for (bytes, number) in head.as_chunks_mut().0.iter_mut().zip([Some(scale), minimum]) {
            *bytes = half(number.unwrap_or_default())?;
        }
        let integer = |value: &f32| {
            let integer = *value + self.base;
            let (least, most) = if self.kind == Kind::Q8_0 { (-128.0, 127.0) } else { (0.0, 15.0) };
            if integer.fract() != 0.0 || !(least..=most).contains(&integer) {
                return Err(none(format!("the integer {value} in {}", self.format())));
            }
            #[expect(clippy::cast_possible_truncation, reason = "an integer of its range")]
            let integer = integer as i16;
            Ok(integer.to_le_bytes()[0])
        };
        if self.kind == Kind::Q8_0 {
            for (byte, value) in bits.iter_mut().zip(codes) {
                *byte = integer(value)?;
            }
            return Ok(());
        }
        let (low, high) = codes.split_at_checked(bits.len()).unwrap_or_default();
        for (byte, (low, high)) in bits.iter_mut().zip(low.iter().zip(high)) {
            *byte = integer(low)? | integer(high)? << 4;
        }
        Ok(())
    }
}

/// The bytes of a number of f16.
fn half(number: f32) -> Result<[u8; 2]> {
    let half = f16::from_f32(number);
    match half.to_f32() == number {
        true => Ok(half.to_le_bytes()),
        false => Err(none(format!("the number {number} beside codes: a block has numbers of f16"))),
    }
}

fn none(what: String) -> zt::Error {
    Fault::NoPlace { dialect: "gguf", what }.into()
}

/// Values of f32 that a source has.
fn numbers(source: &dyn Source, range: Range<u64>) -> Result<Vec<f32>> {
    let mut bytes: Vec<u8> = memory::zeroed(range.end.strict_sub(range.start).strict_mul(4))?;
    source.read_at(range.start.strict_mul(4), &mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Whether all values of f32 of a source are this number.
fn all_are(source: &dyn Source, number: f32) -> Result<bool> {
    let count = source.byte_len().strict_div(4);
    let mut first = 0;
    while first < count {
        let end = first.strict_add(ZEROS).min(count);
        if numbers(source, first..end)?.iter().any(|it| *it != number) {
            return Ok(false);
        }
        first = end;
    }
    Ok(true)
}

impl Source for IntegerBlocks {
    fn byte_len(&self) -> u64 {
        // A block has fewer than two bytes for each value, and twice the values were counted before.
        self.count.strict_div(BLOCK).saturating_mul(self.kind.byte_len())
    }

    fn is_sequential(&self) -> bool {
        self.codes.is_sequential()
    }

    fn is_remote(&self) -> bool {
        self.codes.is_remote()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let width = in_memory(self.kind.byte_len());
        Ok(read_whole(self.byte_len(), width, offset, out, |first, out| self.fill(first, out))?)
    }
}
