//! Finite values that a cast makes infinite.
use zt::formats::Result;
use zt::{Bytes, DType, Elements, Registry};

/// Values that are counted together. Only if one of them is infinite are the values before the cast
/// looked at.
const CHUNK: usize = 4096;

/// The finite values that a cast has made infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// The dtype of the cast.
    pub dtype: DType,
    /// The number of values that were finite and became infinite.
    pub infinite: u64,
    /// The number of values that were cast.
    pub values: u64,
}

impl Overflow {
    /// A cast to `dtype` that has not begun.
    pub const fn none(dtype: DType) -> Self {
        Overflow {
            dtype,
            infinite: 0,
            values: 0,
        }
    }

    /// Counts the values of `source` that are infinite in `cast`, the bytes that they were cast to.
    ///
    /// # Errors
    ///
    /// As [`Elements::to_dtype`].
    pub fn add(&mut self, source: &Elements<'_>, cast: &[u8], registry: &Registry) -> Result<()> {
        let width = self.dtype.byte_len();
        let count = cast.len() / width;
        self.values = self.values.strict_add(count as u64);
        // The bytes of a value before the cast.
        let value_len = source.bytes.len().checked_div(count).unwrap_or(1).max(1);
        let chunks = source.bytes.chunks(CHUNK.strict_mul(value_len));
        for (source_bytes, cast) in chunks.zip(cast.chunks(CHUNK.strict_mul(width))) {
            let infinite = infinities(self.dtype, cast);
            if infinite == 0 {
                continue;
            }
            let chunk = Elements {
                dtype: source.dtype,
                logical_type: source.logical_type.clone(),
                bytes: Bytes::Borrowed(source_bytes),
            };
            // f64 represents every value of every type exactly.
            let wide = chunk.to_dtype(DType::F64, registry)?;
            let before = infinities(DType::F64, &wide.bytes);
            self.infinite = self.infinite.strict_add(infinite.strict_sub(before));
        }
        Ok(())
    }

    /// This, if a value became infinite.
    pub fn found(self) -> Option<Self> {
        (self.infinite > 0).then_some(self)
    }
}

/// The number of infinite values, of at most [`CHUNK`], so that no count wraps. Counts in integers of
/// the values' width take a fifth of the time.
fn infinities(dtype: DType, bytes: &[u8]) -> u64 {
    let of_16 = |infinity: u16| {
        let values = bytes.as_chunks().0.iter();
        values.fold(0u16, |count, value| {
            let is_infinite = u16::from_le_bytes(*value) & 0x7FFF == infinity;
            count.wrapping_add(is_infinite.into())
        })
    };
    match dtype {
        DType::F16 => of_16(0x7C00).into(),
        DType::BF16 => of_16(0x7F80).into(),
        DType::F32 => {
            let values = bytes.as_chunks().0.iter();
            let count = values.fold(0u32, |count, value| {
                count.wrapping_add(f32::from_le_bytes(*value).is_infinite().into())
            });
            count.into()
        }
        DType::F64 => {
            let values = bytes.as_chunks().0.iter();
            values.fold(0, |count, value| {
                count.wrapping_add(f64::from_le_bytes(*value).is_infinite().into())
            })
        }
        _ => 0,
    }
}
