//! Adaptive Golomb-Rice codes in a stream of bits. Spec: formats/zt.delta.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use crate::base::DeltaFault;

/// Ones that announce a number in full: the quotient would be as long or longer.
const QUOTIENT_LIMIT: u32 = 24;

/// The numbers that were coded in one context, as a sum that forgets. It determines the parameter of
/// the next code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    count: u64,
    sum: u64,
}

impl Mean {
    /// The greatest parameters that a stretch may begin with.
    pub(super) const MOST_OF_GAPS: u32 = 17;
    pub(super) const MOST_OF_SIZES: u32 = 62;
    /// With so many numbers, count and sum are halved.
    const WINDOW: u64 = 64;

    /// The context of gaps at the beginning. It trusts the parameter as two numbers.
    pub(super) fn of_gaps(parameter: u32) -> Option<Self> {
        let mean = Self::of(parameter, Self::MOST_OF_GAPS)?;
        Some(Mean {
            count: 2,
            sum: mean.sum.saturating_mul(2),
        })
    }

    /// The context of the sizes of changes at the beginning.
    pub(super) fn of_sizes(parameter: u32) -> Option<Self> {
        Self::of(parameter, Self::MOST_OF_SIZES)
    }

    fn of(parameter: u32, most: u32) -> Option<Self> {
        let sum = match parameter {
            0 => 0,
            _ => 1u64.checked_shl(parameter)?,
        };
        (parameter <= most).then_some(Mean { count: 1, sum })
    }

    /// The least k for which 2^k is at least two thirds of the mean: the best for a geometric
    /// distribution is ln 2 of it.
    pub(super) fn parameter(&self) -> u32 {
        let count = u128::from(self.count).saturating_mul(3);
        let sum = u128::from(self.sum).saturating_mul(2);
        let log = |number: u128| number.checked_ilog2().unwrap_or(0);
        let mut parameter = log(sum).saturating_sub(log(count).saturating_add(1));
        while count > 0 && count.wrapping_shl(parameter) < sum {
            parameter = parameter.saturating_add(1);
        }
        parameter
    }

    /// Adds a number and forgets nothing.
    pub(super) fn count_in(&mut self, number: u64) {
        self.sum = self.sum.saturating_add(number);
        self.count = self.count.saturating_add(1);
    }

    /// Adds a number that was coded.
    pub(super) fn add(&mut self, number: u64) {
        self.count_in(number);
        if self.count >= Self::WINDOW {
            self.count >>= 1;
            self.sum >>= 1;
        }
    }
}

/// Writes bits, the lowest of each byte first.
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Begins after one byte.
    pub(super) fn new(first: u8) -> Self {
        BitWriter {
            bytes: vec![first],
            pending: 0,
            count: 0,
        }
    }

    /// A whole byte, before any bits.
    pub(super) fn push_byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// The lowest `count` bits of `value`.
    pub(super) fn bits(&mut self, value: u64, count: u32) {
        const HALF: u32 = 32;
        if count > HALF {
            self.bits(value, HALF);
            self.bits(value >> HALF, count.saturating_sub(HALF));
            return;
        }
        self.pending |= (value & ones(count)).wrapping_shl(self.count);
        self.count = self.count.saturating_add(count);
        while let Some(rest) = self.count.checked_sub(8) {
            let [byte, ..] = self.pending.to_le_bytes();
            self.bytes.push(byte);
            self.pending >>= 8;
            self.count = rest;
        }
    }

    /// The code of a number. `full` is the number of bits that hold every number.
    pub(super) fn golomb(&mut self, number: u64, parameter: u32, full: u32) {
        let quotient = number.checked_shr(parameter).unwrap_or(0);
        match u32::try_from(quotient) {
            Ok(quotient) if quotient < QUOTIENT_LIMIT => {
                self.bits(ones(quotient), quotient.saturating_add(1));
                self.bits(number, parameter);
            }
            _ => {
                self.bits(ones(QUOTIENT_LIMIT), QUOTIENT_LIMIT);
                self.bits(number, full);
            }
        }
    }

    /// The bytes; the last one is filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            let [byte, ..] = self.pending.to_le_bytes();
            self.bytes.push(byte);
        }
        self.bytes
    }
}

const fn ones(count: u32) -> u64 {
    match u64::MAX.checked_shl(count) {
        Some(above) => !above,
        None => u64::MAX,
    }
}

/// Reads bits, the lowest of each byte first.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    pending: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        BitReader {
            bytes,
            pending: 0,
            count: 0,
        }
    }

    /// Fills up to more than 56 bits, as far as there are bytes.
    fn fill(&mut self) {
        while self.count <= 56
            && let Some((byte, rest)) = self.bytes.split_first()
        {
            self.pending |= u64::from(*byte).wrapping_shl(self.count);
            self.count = self.count.saturating_add(8);
            self.bytes = rest;
        }
    }

    /// The next `count` bits.
    pub(super) fn bits(&mut self, count: u32) -> Result<u64, DeltaFault> {
        const HALF: u32 = 32;
        if let Some(more) = count.checked_sub(HALF).filter(|more| *more > 0) {
            let low = self.bits(HALF)?;
            return Ok(low | self.bits(more)?.wrapping_shl(HALF));
        }
        if self.count < count {
            self.fill();
        }
        let rest = self.count.checked_sub(count).ok_or(DeltaFault::Length)?;
        let value = self.pending & ones(count);
        self.skip(count, rest);
        Ok(value)
    }

    fn skip(&mut self, count: u32, rest: u32) {
        self.pending = self.pending.checked_shr(count).unwrap_or(0);
        self.count = rest;
    }

    /// A number: see [`BitWriter::golomb`].
    pub(super) fn golomb(&mut self, parameter: u32, full: u32) -> Result<u64, DeltaFault> {
        if self.count <= QUOTIENT_LIMIT {
            self.fill();
        }
        let quotient = self.pending.trailing_ones();
        if quotient >= QUOTIENT_LIMIT {
            self.bits(QUOTIENT_LIMIT)?;
            return self.bits(full);
        }
        self.bits(quotient.saturating_add(1))?;
        let low = self.bits(parameter)?;
        let high = u128::from(quotient).checked_shl(parameter);
        let high = high.and_then(|high| u64::try_from(high).ok());
        high.map(|high| high | low).ok_or(DeltaFault::Size)
    }

    /// Checks that only the zeros are left that fill up the last byte.
    pub(super) fn finish(mut self) -> Result<(), DeltaFault> {
        self.fill();
        if self.count >= 8 || self.pending != 0 {
            return Err(DeltaFault::Length);
        }
        Ok(())
    }
}
