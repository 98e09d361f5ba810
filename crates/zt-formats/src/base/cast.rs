//! Casts between floating-point types, rounded once.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use zt_manifest::{DType, Text};

use crate::base::buffer::Buffer;
use crate::base::elements::Elements;
use crate::base::error::{Error, Result, SizeMismatch, Unsupported};
use crate::base::float_type::FloatType;
use crate::base::fp8::{F8E4M3Fn, F8E5M2};
use crate::base::logical::Decode;
use crate::base::registry::Registry;
use crate::base::vectors::{Vectors, on_vectors};

/// Values that are converted at a time, on the stack.
const CHUNK: usize = 1024;

/// Some real values of an array.
#[derive(Debug, Clone, Copy)]
pub enum Reals<'v> {
    /// Of a type whose values are exact in an f32.
    F32(&'v [f32]),
    /// Of any other.
    F64(&'v [f64]),
}

/// See [`Elements::cast`].
pub(crate) fn cast(
    elements: &Elements<'_>,
    to: FloatType,
    registry: &Registry,
) -> Result<Elements<'static>> {
    let real = Real::of(elements, to.dtype(), registry)?;
    let width = to.dtype().byte_len();
    let count = elements.bytes.len().strict_div(real.value_len);
    let mut out = Buffer::try_zeroed_values(count as u64, width as u64)?;
    let mut targets = out.chunks_mut(CHUNK.strict_mul(width));
    real.for_each(&elements.bytes, |values| {
        let target = targets.next().unwrap_or_default();
        match values {
            Reals::F32(values) => write_f32(values, to, target),
            Reals::F64(values) => write_f64(values, to, target),
        }
    });
    let (dtype, logical_type) = to.value_type();
    Ok(Elements { logical_type, ..Elements::new(dtype, out) })
}

impl FloatType {
    /// Writes values of this type, little-endian, each rounded to nearest, ties to even: as many as both slices hold.
    /// What is out of range is an infinity, or the greatest value of a type without infinities.
    pub fn write(self, values: &[f32], out: &mut [u8]) {
        let width = self.dtype().byte_len();
        let targets = out.chunks_mut(CHUNK.strict_mul(width));
        for (values, target) in values.chunks(CHUNK).zip(targets) {
            write_f32(values, self, target);
        }
    }
}

/// How the values of a real type are read.
pub(crate) struct Real {
    decode: Option<Decode>,
    dtype: DType,
    value_len: usize,
}

impl Real {
    /// Fails if the values are not real floating-point numbers, or not whole.
    pub(crate) fn of(elements: &Elements<'_>, to: DType, registry: &Registry) -> Result<Self> {
        let logical = registry.logical_type_of(elements)?;
        let decode = logical.map(|logical| logical.decode);
        let is_real = match decode {
            Some(decode) => matches!(decode, Decode::F32(_) | Decode::F64(_)),
            None => elements.logical_type().is_none() && elements.dtype.is_float(),
        };
        if !is_real {
            let from = Text::Owned(elements.type_name().to_owned());
            return Err(Error::Unsupported(Unsupported::Cast { from, to }));
        }
        let value_len = match logical {
            Some(logical) => logical.value_len(),
            None => elements.dtype.byte_len() as u64,
        };
        let byte_len = elements.bytes.len();
        let partial = || SizeMismatch::partial(byte_len, value_len).of_object();
        let value_len = usize::try_from(value_len).map_err(|_| partial())?;
        if !byte_len.is_multiple_of(value_len) {
            return Err(partial());
        }
        Ok(Real { decode, dtype: elements.dtype, value_len })
    }

    /// Calls `take` with the values in `bytes`, [`CHUNK`] at a time.
    pub(crate) fn for_each(&self, bytes: &[u8], mut take: impl FnMut(Reals<'_>)) {
        let value_len = self.value_len;
        // A value that long is the only one.
        let chunks = bytes.chunks(CHUNK.saturating_mul(value_len));
        let chunks = chunks.map(|source| (source.len().strict_div(value_len), source));
        match (self.decode, self.dtype) {
            (Some(Decode::F64(decode)), _) => each_chunk(
                chunks,
                |values, source| decode_each(values, source, value_len, decode),
                |values| take(Reals::F64(values)),
            ),
            (Some(Decode::F32(decode)), _) => each_chunk(
                chunks,
                |values, source| decode_each(values, source, value_len, decode),
                |values| take(Reals::F32(values)),
            ),
            (_, DType::F64) => each_chunk(
                chunks,
                |values, source| load(values, source, f64::from_le_bytes),
                |values| take(Reals::F64(values)),
            ),
            // Whole slices, because `half` converts them with the processor's instruction.
            (_, DType::F16) => each_chunk(
                chunks,
                |values, source| {
                    let mut halves = [f16::ZERO; CHUNK];
                    let halves = halves.get_mut(..values.len()).unwrap_or_default();
                    load(halves, source, f16::from_le_bytes);
                    halves.convert_to_f32_slice(values);
                },
                |values| take(Reals::F32(values)),
            ),
            (_, DType::BF16) => each_chunk(
                chunks,
                |values, source| load(values, source, |bytes| bf16::from_le_bytes(bytes).to_f32()),
                |values| take(Reals::F32(values)),
            ),
            _ => each_chunk(
                chunks,
                |values, source| load(values, source, f32::from_le_bytes),
                |values| take(Reals::F32(values)),
            ),
        }
    }
}

/// Reads the values of each chunk (their number and their bytes), and hands them over.
fn each_chunk<'c, T: Copy + Default>(
    chunks: impl Iterator<Item = (usize, &'c [u8])>,
    read: impl Fn(&mut [T], &[u8]),
    mut take: impl FnMut(&[T]),
) {
    let mut values = [T::default(); CHUNK];
    for (count, source) in chunks {
        let values = values.get_mut(..count).unwrap_or_default();
        read(values, source);
        take(values);
    }
}

/// Decodes each value from its `value_len` bytes.
fn decode_each<T>(values: &mut [T], source: &[u8], value_len: usize, decode: fn(&[u8]) -> T) {
    for (value, bytes) in values.iter_mut().zip(source.chunks_exact(value_len)) {
        *value = decode(bytes);
    }
}

/// Reads each value from its bytes.
fn load<T, const N: usize>(values: &mut [T], source: &[u8], value: impl Fn([u8; N]) -> T) {
    on_vectors(Each {
        from: source.as_chunks().0,
        to: values,
        each: |bytes: &[u8; N]| value(*bytes),
    });
}

/// Writes the bytes of each value.
fn put<T, const N: usize>(target: &mut [u8], values: &[T], bytes: impl Fn(&T) -> [u8; N]) {
    on_vectors(Each { from: values, to: target.as_chunks_mut().0, each: bytes });
}

/// One value after the other.
struct Each<'v, A, B, F> {
    from: &'v [A],
    to: &'v mut [B],
    each: F,
}

impl<A, B, F: Fn(&A) -> B> Vectors for Each<'_, A, B, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (from, to) in self.from.iter().zip(self.to) {
            *to = (self.each)(from);
        }
    }
}

fn write_f32(values: &[f32], to: FloatType, target: &mut [u8]) {
    match to {
        FloatType::F64 => put(target, values, |value| f64::from(*value).to_le_bytes()),
        FloatType::F16 => {
            let mut halves = [f16::ZERO; CHUNK];
            let halves = halves.get_mut(..values.len()).unwrap_or_default();
            halves.convert_from_f32_slice(values);
            put(target, halves, |half| half.to_le_bytes());
        }
        FloatType::BF16 => put(target, values, |value| bf16::from_f32(*value).to_le_bytes()),
        FloatType::F8E4M3Fn => put(target, values, |value| [e4m3fn(*value)]),
        FloatType::F8E5M2 => put(target, values, |value| [e5m2(*value)]),
        FloatType::F32 => put(target, values, |value| value.to_le_bytes()),
    }
}

fn write_f64(values: &[f64], to: FloatType, target: &mut [u8]) {
    match to {
        FloatType::F64 => put(target, values, |value| value.to_le_bytes()),
        FloatType::F32 => put(target, values, |value| narrow(*value).to_le_bytes()),
        _ => {
            let mut narrow = [0f32; CHUNK];
            let narrow = narrow.get_mut(..values.len()).unwrap_or_default();
            for (narrow, value) in narrow.iter_mut().zip(values) {
                *narrow = round_to_odd(*value);
            }
            write_f32(narrow, to, target);
        }
    }
}

/// Saturates as torch does; `ml_dtypes` and [`F8E4M3Fn::from_f32`] make NaN of what is out of range.
const fn e4m3fn(value: f32) -> u8 {
    let greatest = F8E4M3Fn::MAX.to_f32();
    F8E4M3Fn::from_f32(value.clamp(-greatest, greatest)).to_bits()
}

/// With the NaN that torch writes, where `ml_dtypes` writes 7e.
const fn e5m2(value: f32) -> u8 {
    let code = F8E5M2::from_f32(value).to_bits();
    if value.is_nan() { code | 0x7f } else { code }
}

/// `value` as the nearest f32, ties to even.
#[expect(
    clippy::cast_possible_truncation,
    reason = "between floats, `as` rounds to nearest, ties to even"
)]
pub(crate) const fn narrow(value: f64) -> f32 {
    value as f32
}

/// `value` as an f32 that rounds to the same narrower number as `value` does.
///
/// Rounding twice to nearest is wrong if the first step lands on a tie of the second. The
/// conversions of `half` 2.7 from f64 drop the lower 32 bits before they look for a tie. Here
/// inexact values are rounded to the odd neighbour, which is never a tie, and stays on the value's
/// side of one. The middle precision must have two bits more than the last: S. Boldo, G. Melquiond,
/// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
fn round_to_odd(value: f64) -> f32 {
    let nearest = narrow(value);
    let exact = f64::from(nearest);
    if exact == value || value.is_nan() {
        return nearest;
    }
    let bits = nearest.to_bits();
    // Toward zero. If the nearest f32 is larger in magnitude, it is not zero, so the pattern before
    // it exists. The pattern before infinity is the largest f32, which is odd.
    let is_larger = exact.abs() > value.abs();
    let truncated = bits.wrapping_sub(is_larger.into());
    f32::from_bits(truncated | 1)
}
