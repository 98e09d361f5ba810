//! What a cast loses.

use std::fmt;

use zt::formats::{F8E4M3Fn, F8E5M2, FloatType, Result};
use zt::{Bytes, DType, Elements, Registry};

/// Values that are counted together. Only if one of them is infinite, saturated or zero are the values
/// before the cast looked at, unless all errors are measured.
const CHUNK: usize = 4096;

/// What the casts to one type lose.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Cast {
    /// The type.
    pub to: FloatType,
    /// The number of values that were cast.
    pub values: u64,
    /// The number of values that are out of range. The cast makes them infinite. `f8_e4m3fn` has no
    /// infinities: there they become the greatest value, and infinities do, too.
    pub out_of_range: u64,
    /// The number of values that were not 0, and are now.
    pub to_zero: u64,
    /// The sums of the squares of all errors, and of all values, where both values are finite.
    errors: f64,
    squares: f64,
}

impl Cast {
    /// A cast to this type that has not begun.
    pub const fn to(to: FloatType) -> Self {
        Cast { to, values: 0, out_of_range: 0, to_zero: 0, errors: 0.0, squares: 0.0 }
    }

    /// The norm of the errors over the norm of the values. `None` for `bf16` and types of more than 16 bits: they change a
    /// value by less than 0.4 %, and their errors are not measured.
    pub fn relative_error(&self) -> Option<f64> {
        let error = (self.errors / self.squares).sqrt();
        Some(error).filter(|error| self.is_measured() && error.is_finite())
    }

    /// Whether a user should read it: a cast to FP8, or values that became 0 or infinite.
    pub const fn is_notable(&self) -> bool {
        let is_narrow = matches!(self.to, FloatType::F8E4M3Fn | FloatType::F8E5M2);
        self.values > 0 && (is_narrow || self.out_of_range > 0 || self.to_zero > 0)
    }

    /// What becomes of values that are out of range.
    pub const fn becomes(&self) -> &'static str {
        match self.to {
            FloatType::F8E4M3Fn => "448 or -448",
            _ => "infinite",
        }
    }

    const fn is_measured(&self) -> bool {
        matches!(self.to, FloatType::F16 | FloatType::F8E4M3Fn | FloatType::F8E5M2)
    }

    /// Counts the values of `source`. `cast` has the bytes that they were cast to.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    #[expect(clippy::arithmetic_side_effects, reason = "a dtype has a width")]
    pub fn add(&mut self, source: &Elements<'_>, cast: &[u8], registry: &Registry) -> Result<()> {
        let width = self.to.dtype().byte_len();
        let count = cast.len() / width;
        self.values = self.values.strict_add(count as u64);
        if self.to == FloatType::F64 {
            return Ok(());
        }
        // The bytes of a value before the cast.
        let value_len = source.bytes.len().checked_div(count).unwrap_or(1).max(1);
        let is_short = source.logical_type.is_none()
            && matches!(source.dtype, DType::F32 | DType::F16 | DType::BF16);
        // A type that represents every value exactly.
        let wide = if is_short { FloatType::F32 } else { FloatType::F64 };
        let codes = self.codes();
        let chunks = source.bytes.chunks(CHUNK.strict_mul(value_len));
        for (source_bytes, cast) in chunks.zip(cast.chunks(CHUNK.strict_mul(width))) {
            let (infinite, zero) = (infinities(self.to, cast), zeros(self.to, cast));
            if infinite == 0 && zero == 0 && !self.is_measured() {
                continue;
            }
            let chunk = Elements {
                dtype: source.dtype,
                logical_type: source.logical_type.clone(),
                bytes: Bytes::Borrowed(source_bytes),
            };
            let before = chunk.cast(wide, registry)?.bytes;
            let lost = match self.to {
                FloatType::F8E4M3Fn if infinite > 0 => saturated(wide, &before),
                FloatType::F8E4M3Fn => 0,
                _ => infinite.saturating_sub(infinities(wide, &before)),
            };
            self.out_of_range = self.out_of_range.strict_add(lost);
            let was_zero = if zero > 0 { zeros(wide, &before) } else { 0 };
            self.to_zero = self.to_zero.strict_add(zero.saturating_sub(was_zero));
            if !self.is_measured() {
                continue;
            }
            if let (Some(codes), FloatType::F32) = (&codes, wide) {
                let value =
                    |[code]: [u8; 1]| codes.get(usize::from(code)).copied().unwrap_or(f32::NAN);
                self.measure(&before, cast, f32::from_le_bytes, value);
                continue;
            }
            let (dtype, logical_type) = self.to.value_type();
            let after = Elements { dtype, logical_type, bytes: Bytes::Borrowed(cast) };
            let after = after.cast(wide, registry)?.bytes;
            match wide {
                FloatType::F32 => {
                    self.measure(&before, &after, f32::from_le_bytes, f32::from_le_bytes)
                }
                _ => self.measure(&before, &after, f64::from_le_bytes, f64::from_le_bytes),
            }
        }
        Ok(())
    }

    /// The value of each code of a byte. `None` for wider types.
    fn codes(&self) -> Option<[f32; 256]> {
        let of =
            |value: fn(u8) -> f32| Some(std::array::from_fn(|code| value(code.to_le_bytes()[0])));
        match self.to {
            FloatType::F8E4M3Fn => of(|code| F8E4M3Fn::from_bits(code).to_f32()),
            FloatType::F8E5M2 => of(|code| F8E5M2::from_bits(code).to_f32()),
            _ => None,
        }
    }

    /// Adds the errors of values, before and after.
    fn measure<V: Into<f64>, const B: usize, const A: usize>(
        &mut self,
        before: &[u8],
        after: &[u8],
        value_before: impl Fn([u8; B]) -> V,
        value_after: impl Fn([u8; A]) -> V,
    ) {
        // Several sums, because one alone waits for each addition.
        let (mut errors, mut squares) = ([0.0; 4], [0.0; 4]);
        let (before, after) = (before.as_chunks::<B>().0, after.as_chunks::<A>().0);
        for (before, after) in before.chunks(4).zip(after.chunks(4)) {
            let sums = errors.iter_mut().zip(&mut squares);
            for ((before, after), (errors, squares)) in before.iter().zip(after).zip(sums) {
                let (before, after): (f64, f64) =
                    (value_before(*before).into(), value_after(*after).into());
                let error = after - before;
                let is_counted = error.is_finite() && before.is_finite();
                *errors += if is_counted { error * error } else { 0.0 };
                *squares += if is_counted { before * before } else { 0.0 };
            }
        }
        self.errors += errors.iter().sum::<f64>();
        self.squares += squares.iter().sum::<f64>();
    }

    /// Adds what it has lost to a list with one cast for each type.
    pub fn add_to(&self, casts: &mut Vec<Self>) {
        let Some(known) = casts.iter_mut().find(|known| known.to == self.to) else {
            return casts.push(*self);
        };
        known.values = known.values.strict_add(self.values);
        known.out_of_range = known.out_of_range.strict_add(self.out_of_range);
        known.to_zero = known.to_zero.strict_add(self.to_zero);
        known.errors += self.errors;
        known.squares += self.squares;
    }
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cast to {}: {} of {} values became 0", self.to, self.to_zero, self.values)?;
        if self.out_of_range > 0 {
            write!(f, ", {} became {}", self.out_of_range, self.becomes())?;
        }
        match self.relative_error() {
            Some(error) => write!(f, "; relative error {:.3} %", 100.0 * error),
            None => Ok(()),
        }
    }
}

/// The number of values, of at most [`CHUNK`], that a cast to `f8_e4m3fn` saturates. 464 is halfway between the
/// greatest value and the next one if there were one, and rounds to the even code, the greatest.
fn saturated(wide: FloatType, values: &[u8]) -> u64 {
    let count = match wide {
        FloatType::F32 => {
            let values = values.as_chunks().0.iter();
            values.filter(|value| f32::from_le_bytes(**value).abs() > 464.0).count()
        }
        _ => {
            let values = values.as_chunks().0.iter();
            values.filter(|value| f64::from_le_bytes(**value).abs() > 464.0).count()
        }
    };
    count as u64
}

/// The number of infinite values, of at most [`CHUNK`]. Counts the values of `f8_e4m3fn` that may be saturated.
fn infinities(float: FloatType, bytes: &[u8]) -> u64 {
    match float {
        FloatType::F8E4M3Fn => of_8(bytes, 0x7E),
        FloatType::F8E5M2 => of_8(bytes, 0x7C),
        FloatType::F16 => of_16(bytes, 0x7C00),
        FloatType::BF16 => of_16(bytes, 0x7F80),
        FloatType::F32 => of_32(bytes, f32::INFINITY.to_bits()),
        _ => of_64(bytes, f64::INFINITY.to_bits()),
    }
}

/// The number of zeros, of at most [`CHUNK`] values.
fn zeros(float: FloatType, bytes: &[u8]) -> u64 {
    match float {
        FloatType::F8E4M3Fn | FloatType::F8E5M2 => of_8(bytes, 0),
        FloatType::F16 | FloatType::BF16 => of_16(bytes, 0),
        FloatType::F32 => of_32(bytes, 0),
        _ => of_64(bytes, 0),
    }
}

fn of_8(bytes: &[u8], code: u8) -> u64 {
    let codes = bytes.iter().filter(|byte| *byte & 0x7F == code);
    codes.count() as u64
}

/// Of at most [`CHUNK`] values, so that no count wraps. Counts in integers of the values' width take a fifth of
/// the time.
fn of_16(bytes: &[u8], code: u16) -> u64 {
    let count = bytes.as_chunks().0.iter().fold(0u16, |count, value| {
        count.wrapping_add((u16::from_le_bytes(*value) & 0x7FFF == code).into())
    });
    count.into()
}

/// As [`of_16`].
fn of_32(bytes: &[u8], code: u32) -> u64 {
    let count = bytes.as_chunks().0.iter().fold(0u32, |count, value| {
        count.wrapping_add((u32::from_le_bytes(*value) & (u32::MAX >> 1) == code).into())
    });
    count.into()
}

/// As [`of_16`].
fn of_64(bytes: &[u8], code: u64) -> u64 {
    bytes.as_chunks().0.iter().fold(0u64, |count, value| {
        count.wrapping_add((u64::from_le_bytes(*value) & (u64::MAX >> 1) == code).into())
    })
}
