//! Values that are out of range for a cast.
use zt::formats::{FloatType, Result};
use zt::{Bytes, Elements, Registry};

/// Values that are counted together. Only if one of them is infinite or saturated are the values
/// before the cast looked at.
const CHUNK: usize = 4096;

/// The values that are out of range for the type of a cast. It makes them infinite. `f8_e4m3fn` has no
/// infinities: there they become the greatest value, and infinities do, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// The type of the cast.
    pub to: FloatType,
    /// The number of these values.
    pub out_of_range: u64,
    /// The number of values that were cast.
    pub values: u64,
}

impl Overflow {
    /// A cast to this type that has not begun.
    pub const fn none(to: FloatType) -> Self {
        Overflow { to, out_of_range: 0, values: 0 }
    }

    /// What becomes of these values.
    pub const fn becomes(&self) -> &'static str {
        match self.to {
            FloatType::F8E4M3Fn => "448 or -448",
            _ => "infinite",
        }
    }

    /// Counts the values of `source` that are out of range. `cast` has the bytes that they were cast to.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    #[expect(clippy::arithmetic_side_effects, reason = "a dtype has a width")]
    pub fn add(&mut self, source: &Elements<'_>, cast: &[u8], registry: &Registry) -> Result<()> {
        let width = self.to.dtype().byte_len();
        let count = cast.len() / width;
        self.values = self.values.strict_add(count as u64);
        // The bytes of a value before the cast.
        let value_len = source.bytes.len().checked_div(count).unwrap_or(1).max(1);
        let chunks = source.bytes.chunks(CHUNK.strict_mul(value_len));
        for (source_bytes, cast) in chunks.zip(cast.chunks(CHUNK.strict_mul(width))) {
            let after = infinities(self.to, cast);
            if after == 0 {
                continue;
            }
            let chunk = Elements {
                dtype: source.dtype,
                logical_type: source.logical_type.clone(),
                bytes: Bytes::Borrowed(source_bytes),
            };
            // f64 represents every value of every type exactly.
            let wide = chunk.cast(FloatType::F64, registry)?;
            let lost = match self.to {
                FloatType::F8E4M3Fn => saturated(&wide.bytes),
                _ => after.strict_sub(infinities(FloatType::F64, &wide.bytes)),
            };
            self.out_of_range = self.out_of_range.strict_add(lost);
        }
        Ok(())
    }

    /// This, if a value was out of range.
    pub fn found(self) -> Option<Self> {
        (self.out_of_range > 0).then_some(self)
    }
}

/// The number of values, of at most [`CHUNK`], that a cast to `f8_e4m3fn` saturates. 464 is halfway between the
/// greatest value and the next one if there were one, and rounds to the even code, the greatest.
fn saturated(wide: &[u8]) -> u64 {
    let values = wide.as_chunks().0.iter();
    let values = values.filter(|value| f64::from_le_bytes(**value).abs() > 464.0);
    values.count() as u64
}

/// The number of infinite values, of at most [`CHUNK`], so that no count wraps. Counts in integers of
/// the values' width take a fifth of the time. Counts the values of `f8_e4m3fn` that may be saturated.
fn infinities(float: FloatType, bytes: &[u8]) -> u64 {
    let of_8 = |code: u8| {
        let codes = bytes.iter().filter(|byte| *byte & 0x7F == code);
        codes.count() as u64
    };
    let of_16 = |infinity: u16| {
        let values = bytes.as_chunks().0.iter();
        let count = values.fold(0u16, |count, value| {
            let is_infinite = u16::from_le_bytes(*value) & 0x7FFF == infinity;
            count.wrapping_add(is_infinite.into())
        });
        count.into()
    };
    match float {
        FloatType::F8E4M3Fn => of_8(0x7E),
        FloatType::F8E5M2 => of_8(0x7C),
        FloatType::F16 => of_16(0x7C00),
        FloatType::BF16 => of_16(0x7F80),
        FloatType::F32 => {
            let values = bytes.as_chunks().0.iter();
            let count = values.fold(0u32, |count, value| {
                count.wrapping_add(f32::from_le_bytes(*value).is_infinite().into())
            });
            count.into()
        }
        _ => {
            let values = bytes.as_chunks().0.iter();
            values.fold(0, |count, value| {
                count.wrapping_add(f64::from_le_bytes(*value).is_infinite().into())
            })
        }
    }
}
