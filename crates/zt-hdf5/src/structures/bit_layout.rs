//! Numbers with a layout that no dtype has: integers with unused bits, and floats with other parts than
//! IEEE's. They are read as the next wider dtype, as the library converts them and h5py shows them.

use zt::formats::f16;
use zt::{ByteOrder, DType};

/// Bytes of the longest number: binary128.
const LEN_MAX: usize = 16;

/// The layout of a stored number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitLayout {
    pub(crate) byte_len: usize,
    pub(crate) byte_order: ByteOrder,
    pub(crate) parts: Parts,
}

/// Bits are counted from the lowest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    Integer { offset: u32, precision: u32, is_signed: bool },
    Float(Float),
}

/// The parts of a float: the sign, the exponent and the mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Float {
    pub(crate) sign: u32,
    pub(crate) exponent_at: u32,
    pub(crate) exponent: u32,
    pub(crate) mantissa_at: u32,
    pub(crate) mantissa: u32,
    pub(crate) bias: u32,
    /// Whether the highest bit of the mantissa is not stored.
    pub(crate) is_implied: bool,
}

/// The dtype of integers of so many bytes, or the next wider one.
pub(crate) fn integer(byte_len: usize, is_signed: bool) -> Option<DType> {
    Some(match (byte_len, is_signed) {
        (1, true) => DType::I8,
        (2, true) => DType::I16,
        (3..=4, true) => DType::I32,
        (5..=8, true) => DType::I64,
        (1, false) => DType::U8,
        (2, false) => DType::U16,
        (3..=4, false) => DType::U32,
        (5..=8, false) => DType::U64,
        _ => return None,
    })
}

impl BitLayout {
    /// The dtype that the numbers become, and whether values may be rounded. `None` if a part is
    /// outside the number, or the number is too long.
    pub(crate) fn widened(&self) -> Option<(DType, bool)> {
        let bits = u32::try_from(self.byte_len).ok()?.checked_mul(8)?;
        let is_within = |at: u32, len: u32| {
            let end = at.checked_add(len);
            end.is_some_and(|end| end <= bits)
        };
        match self.parts {
            Parts::Integer { offset, precision, is_signed } => {
                let dtype = integer(self.byte_len, is_signed)?;
                (precision > 0 && is_within(offset, precision)).then_some((dtype, false))
            }
            Parts::Float(float) => {
                let is_valid = self.byte_len <= LEN_MAX
                    && is_within(float.sign, 1)
                    && is_within(float.exponent_at, float.exponent)
                    && is_within(float.mantissa_at, float.mantissa)
                    && (1..=30).contains(&float.exponent)
                    && float.mantissa > 0;
                // As h5py does it, a float never becomes shorter, except that none is longer than f64.
                let fitting = float.fitting(self.byte_len.min(8));
                let widened = fitting.map_or((DType::F64, true), |dtype| (dtype, false));
                is_valid.then_some(widened)
            }
        }
    }

    /// Appends the number in `stored` as little-endian bytes of `dtype`.
    pub(crate) fn widen(&self, stored: &[u8], dtype: DType, out: &mut Vec<u8>) {
        let push = |bits: u128, byte: &u8| bits << 8 | u128::from(*byte);
        let bits = match self.byte_order {
            ByteOrder::Big => stored.iter().fold(0, push),
            ByteOrder::Little => stored.iter().rev().fold(0, push),
        };
        match self.parts {
            Parts::Integer { offset, precision, is_signed } => {
                let number = part(bits, offset, precision);
                let unused = 128u32.strict_sub(precision);
                let number = if is_signed {
                    number.strict_shl(unused).cast_signed().strict_shr(unused).cast_unsigned()
                } else {
                    number
                };
                out.extend(number.to_le_bytes().iter().take(dtype.byte_len()));
            }
            Parts::Float(float) => {
                let value = float.value(bits);
                match dtype {
                    DType::F16 => out.extend(f16::from_f64(value).to_le_bytes()),
                    // Exact, because the dtype has room for all values.
                    #[expect(clippy::cast_possible_truncation, reason = "the value fits")]
                    DType::F32 => out.extend((value as f32).to_le_bytes()),
                    _ => out.extend(value.to_le_bytes()),
                }
            }
        }
    }
}

impl Float {
    /// The shortest dtype of at least `byte_len` bytes that has room for all values.
    fn fitting(&self, byte_len: usize) -> Option<DType> {
        let least = 1i64.checked_sub(self.bias.into())?;
        let most = 1i64.checked_shl(self.exponent)?.checked_sub(2)?;
        let most = most.checked_sub(self.bias.into())?;
        let dtypes =
            [(DType::F16, 10, -14, 15), (DType::F32, 23, -126, 127), (DType::F64, 52, -1022, 1023)];
        let mut fitting = dtypes.into_iter().filter(|(dtype, digits, low, high)| {
            dtype.byte_len() >= byte_len
                && self.digits() <= *digits
                && least >= *low
                && most <= *high
        });
        fitting.next().map(|(dtype, ..)| dtype)
    }

    /// The bits of the mantissa after the point.
    fn digits(&self) -> u32 {
        if self.is_implied { self.mantissa } else { self.mantissa.strict_sub(1) }
    }

    /// The value of these bits, rounded to f64.
    fn value(&self, bits: u128) -> f64 {
        let power = part(bits, self.exponent_at, self.exponent);
        let digits = part(bits, self.mantissa_at, self.mantissa);
        // Above 128 bits there is no unit.
        let unit = 1u128.checked_shl(self.digits()).unwrap_or(0);
        let magnitude = if power == part(u128::MAX, 0, self.exponent) {
            match digits & unit.wrapping_sub(1) {
                0 => f64::INFINITY,
                _ => f64::NAN,
            }
        } else {
            let has_unit = self.is_implied && power > 0;
            let digits = if has_unit { digits | unit } else { digits };
            let power = power.max(1).cast_signed().strict_sub(self.bias.into());
            scaled(digits, power.strict_sub(self.digits().into()))
        };
        match part(bits, self.sign, 1) {
            0 => magnitude,
            _ => -magnitude,
        }
    }
}

/// The number in `len` bits from `at` on, which are one at least and within the number.
fn part(bits: u128, at: u32, len: u32) -> u128 {
    bits.strict_shr(at) & u128::MAX.strict_shr(128u32.strict_sub(len))
}

/// `digits` times two to the `power`, rounded to the nearest f64, or to the even one of two.
fn scaled(digits: u128, power: i128) -> f64 {
    const DIGITS: i128 = 53;
    const LEAST: i128 = -1022;
    const MOST: i128 = 1023;
    let Some(top) = digits.checked_ilog2() else {
        return 0.0;
    };
    let exponent = power.strict_add(top.into());
    if exponent > MOST {
        return f64::INFINITY;
    }
    // Below the least exponent fewer digits are left.
    let kept = DIGITS.strict_sub(LEAST.strict_sub(exponent).max(0));
    let dropped = i128::from(top).strict_add(1).strict_sub(kept);
    let (digits, power) = match u32::try_from(dropped) {
        Err(_) | Ok(0) => (digits, power),
        Ok(dropped) => {
            // Perhaps more digits than there are.
            let high = digits.checked_shr(dropped).unwrap_or(0);
            let low = digits ^ high.checked_shl(dropped).unwrap_or(0);
            let half = 1u128.checked_shl(dropped.strict_sub(1)).unwrap_or(0);
            let is_up = half > 0 && (low > half || low == half && high & 1 == 1);
            (high.strict_add(is_up.into()), power.strict_add(dropped.into()))
        }
    };
    if digits == 0 {
        return 0.0;
    }
    // A power of two, perhaps a subnormal one.
    let factor = match u64::try_from(power.strict_sub(LEAST)) {
        Ok(above) => above.strict_add(1).checked_shl(52),
        Err(_) => u32::try_from(power.strict_add(1074)).ok().and_then(|bit| 1u64.checked_shl(bit)),
    };
    // At most 53 bits are left, and the product is exact.
    #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
    let digits = digits as f64;
    digits * f64::from_bits(factor.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_scaled_and_rounded_to_even() {
        assert_eq!(scaled(3, -1), 1.5);
        assert_eq!(scaled(1, -1074), f64::from_bits(1));
        assert_eq!(scaled(3, -1075), f64::from_bits(2));
        assert_eq!(scaled(1, -1075), 0.0);
        assert_eq!(scaled(3, -1076), f64::from_bits(1));
        assert_eq!(scaled(1, 1024), f64::INFINITY);
        assert_eq!(scaled((1 << 53) + 1, 0), 9_007_199_254_740_992.0);
        assert_eq!(scaled((1 << 53) + 3, 0), 9_007_199_254_740_996.0);
        assert_eq!(scaled(u128::MAX, 896), f64::INFINITY);
        assert_eq!(scaled(1 << 127, -1200), f64::from_bits(2));
    }
}
