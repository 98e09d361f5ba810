//! Numbers in a stream of bits. Spec: formats/zt.delta.
#![deny(clippy::cast_possible_truncation)]

use crate::base::DeltaFault;

/// Ones that announce a number in full: the quotient would be as long or longer.
const QUOTIENT_LIMIT: u32 = 24;

/// Bits that [`BitReader::bits`] reads at once.
const HALF: u32 = 32;

/// How the numbers of a list are coded, which have at most `full` bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberCode {
    parameter: u32,
    /// Each number is its lowest bits alone: without a quotient.
    is_plain: bool,
    full: u32,
}

impl NumberCode {
    /// Bits of a code in the stream: the parameter, and the highest for a plain one.
    const BITS: u32 = 8;
    const PLAIN: u64 = 1 << 7;
    /// A greater parameter would let a quotient overflow.
    const MOST: u32 = 58;

    fn from_bits(bits: u64, full: u32) -> Option<Self> {
        let is_plain = bits & Self::PLAIN != 0;
        let parameter = u32::try_from(bits & !Self::PLAIN).ok()?;
        let most = if is_plain { full } else { full.min(Self::MOST) };
        (parameter <= most).then_some(NumberCode { parameter, is_plain, full })
    }

    fn to_bits(self) -> u64 {
        let plain = if self.is_plain { Self::PLAIN } else { 0 };
        u64::from(self.parameter) | plain
    }

    /// The shortest code of these numbers.
    fn of(numbers: &[u64], full: u32) -> Self {
        let all = numbers.iter().fold(0, |all, number| all | number);
        let plain = NumberCode { parameter: bit_len(all), is_plain: true, full };
        // Saturating: any parameter near the best one codes the numbers.
        let sum = numbers.iter().fold(0u64, |sum, it| sum.saturating_add(*it));
        let mean = sum.checked_div(numbers.len() as u64).unwrap_or(0);
        let with = |parameter: u32| NumberCode {
            parameter: parameter.min(full).min(Self::MOST),
            is_plain: false,
            full,
        };
        let (mut best, mut least) = (plain, plain.bits_of(numbers));
        let mut consider = |code: NumberCode| {
            let bits = code.bits_of(numbers);
            let is_better = bits < least;
            if is_better {
                (best, least) = (code, bits);
            }
            is_better
        };
        // The length has one minimum, near the mean or below it, where most numbers are small.
        let start = mean.checked_ilog2().unwrap_or(0);
        consider(with(start.strict_add(1)));
        consider(with(start));
        for parameter in (0..start).rev() {
            if !consider(with(parameter)) {
                break;
            }
        }
        best
    }

    /// Bits that the numbers take.
    fn bits_of(self, numbers: &[u64]) -> u64 {
        let NumberCode { parameter, full, .. } = self;
        if self.is_plain {
            return u64::from(parameter).strict_mul(numbers.len() as u64);
        }
        let limit = u64::from(QUOTIENT_LIMIT);
        let escaped = limit.strict_add(u64::from(full));
        let short = u64::from(parameter).strict_add(1);
        numbers.iter().fold(0, |bits: u64, number| {
            let quotient = number.wrapping_shr(parameter);
            bits.wrapping_add(if quotient < limit { quotient.wrapping_add(short) } else { escaped })
        })
    }
}

/// About as many bits as [`NumberCode::of`] needs for `count` numbers with this sum.
pub(super) fn estimated_bits(count: u64, sum: u64) -> u64 {
    let mean = sum.checked_div(count).unwrap_or(0);
    let parameter = mean.checked_ilog2().unwrap_or(0);
    let short = u64::from(parameter).strict_add(1);
    count.strict_mul(short).strict_add(sum.wrapping_shr(parameter))
}

/// Bits of the number without leading zeros.
pub(super) const fn bit_len(number: u64) -> u32 {
    u64::BITS.strict_sub(number.leading_zeros())
}

const fn ones(count: u32) -> u64 {
    match u64::MAX.checked_shl(count) {
        Some(above) => !above,
        None => u64::MAX,
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
        BitWriter { bytes: vec![first], pending: 0, count: 0 }
    }

    /// The lowest `count` bits of `value`.
    pub(super) fn bits(&mut self, value: u64, count: u32) {
        if let Some(more) = count.checked_sub(HALF).filter(|more| *more > 0) {
            self.bits(value, HALF);
            self.bits(value >> HALF, more);
            return;
        }
        self.pending |= (value & ones(count)).wrapping_shl(self.count);
        self.count = self.count.strict_add(count);
        if let Some(rest) = self.count.checked_sub(HALF) {
            let [a, b, c, d, ..] = self.pending.to_le_bytes();
            self.bytes.extend([a, b, c, d]);
            self.pending >>= HALF;
            self.count = rest;
        }
    }

    /// A list of numbers, after its code.
    pub(super) fn code_of(&mut self, numbers: &[u64], full: u32) -> NumberCode {
        let code = NumberCode::of(numbers, full);
        self.bits(code.to_bits(), NumberCode::BITS);
        code
    }

    pub(super) fn numbers(&mut self, numbers: &[u64], code: NumberCode) {
        for number in numbers {
            self.number(*number, code);
        }
    }

    fn number(&mut self, number: u64, code: NumberCode) {
        if code.is_plain {
            return self.bits(number, code.parameter);
        }
        let quotient = number.wrapping_shr(code.parameter);
        match u32::try_from(quotient) {
            Ok(quotient) if quotient < QUOTIENT_LIMIT => {
                self.bits(ones(quotient), quotient.strict_add(1));
                self.bits(number, code.parameter);
            }
            _ => {
                self.bits(ones(QUOTIENT_LIMIT), QUOTIENT_LIMIT);
                self.bits(number, code.full);
            }
        }
    }

    /// The bytes; the last one is filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let left = self.count.div_ceil(8);
        self.bytes.extend(self.pending.to_le_bytes().iter().take(left as usize));
        self.bytes
    }
}

/// Fewer than 8 bytes as a little-endian number.
#[cold]
fn last_word(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Reads bits, the lowest of each byte first.
pub(super) struct BitReader<'a> {
    /// Bytes that `count` does not count yet.
    bytes: &'a [u8],
    /// The next bits. Those beyond `count` are the first of `bytes`, or zeros.
    pending: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, pending: 0, count: 0 }
    }

    /// Fills up to 56 bits or more, as far as there are bytes.
    #[inline(always)]
    fn fill(&mut self) {
        // Shifts are below 64, as the count is.
        let (word, room) = match self.bytes.first_chunk() {
            Some(word) => (u64::from_le_bytes(*word), 8),
            None => (last_word(self.bytes), self.bytes.len()),
        };
        self.pending |= word.wrapping_shl(self.count);
        let taken = (63u32.wrapping_sub(self.count) >> 3) as usize;
        let taken = taken.min(room);
        self.bytes = self.bytes.get(taken..).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "at most 8")]
        let taken = taken as u32;
        self.count = self.count.wrapping_add(taken << 3);
    }

    /// Drops bits that were looked at: 63 at most.
    #[inline(always)]
    fn skip(&mut self, count: u32) -> Result<(), DeltaFault> {
        self.count = self.count.checked_sub(count).ok_or(DeltaFault::Length)?;
        self.pending = self.pending.wrapping_shr(count);
        Ok(())
    }

    /// The next `count` bits.
    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> Result<u64, DeltaFault> {
        if let Some(more) = count.checked_sub(HALF).filter(|more| *more > 0) {
            let low = self.bits(HALF)?;
            return Ok(low | self.bits(more)?.wrapping_shl(HALF));
        }
        self.fill();
        let value = self.pending & ones(count);
        self.skip(count)?;
        Ok(value)
    }

    /// How the numbers of a list are coded.
    pub(super) fn code(&mut self, full: u32) -> Result<NumberCode, DeltaFault> {
        let bits = self.bits(NumberCode::BITS)?;
        NumberCode::from_bits(bits, full).ok_or(DeltaFault::Parameter)
    }

    /// The next number of a list. It may have more bits than the full ones.
    #[inline(always)]
    pub(super) fn number(&mut self, code: NumberCode) -> Result<u64, DeltaFault> {
        let NumberCode { parameter, .. } = code;
        if code.is_plain {
            return self.bits(parameter);
        }
        self.fill();
        let quotient = self.pending.trailing_ones();
        if quotient >= QUOTIENT_LIMIT {
            return self.full_number(code.full);
        }
        self.skip(quotient.wrapping_add(1))?;
        let low = if parameter > HALF {
            self.bits(parameter)?
        } else {
            // 24 + 32 bits are there.
            let low = self.pending & ones(parameter);
            self.skip(parameter)?;
            low
        };
        Ok(u64::from(quotient).wrapping_shl(parameter) | low)
    }

    #[cold]
    fn full_number(&mut self, full: u32) -> Result<u64, DeltaFault> {
        self.skip(QUOTIENT_LIMIT)?;
        self.bits(full)
    }

    /// Checks that only the zeros are left that fill up the last byte.
    pub(super) fn finish(self) -> Result<(), DeltaFault> {
        let is_padding = self.bytes.is_empty() && self.count < 8 && self.pending == 0;
        is_padding.then_some(()).ok_or(DeltaFault::Length)
    }
}
