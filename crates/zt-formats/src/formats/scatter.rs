//! The dense value of a sparse array.

use half::{bf16, f16};
use num_complex::Complex;
use zt_manifest::{DType, Text};

use crate::base::typed::to_le;
use crate::base::{
    Buffer, Elements, Error, F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz, F8E8M0Fnu, Result,
    SizeMismatch, Unsupported, check_bools,
};

/// An array of `count` values: `values` at their `places`, and zeros elsewhere. There are
/// `place_count` places, all below `count`.
///
/// A value that has its place alone keeps every bit, also as a negative zero or a NaN. Values that
/// share a place are added in the order in which they are stored and in their own type: integers
/// wrap, bools are or-ed, and f16, bf16 and FP8 are added as f32 and rounded each time. Values of a
/// logical type outside the specification cannot be added.
/// Malformed if the numbers of values and places differ; unsupported if values of an unknown type share a place
/// or an element.
pub(crate) fn scatter(
    values: &Elements<'_>,
    places: impl Iterator<Item = u64>,
    place_count: usize,
    count: u64,
) -> Result<Elements<'static>> {
    if values.dtype == DType::Bool {
        check_bools(&values.bytes)?;
    }
    let addition = addition(values);
    let value_len = match addition {
        Some((value_len, _)) => value_len,
        None if count == 0 => values.dtype.byte_len(),
        None => values.value_len(place_count as u64)?,
    };
    let mismatch = || SizeMismatch::partial(values.bytes.len(), value_len as u64).of_object();
    if value_len.checked_mul(place_count) != Some(values.bytes.len()) {
        return Err(mismatch());
    }
    let mut out = Buffer::try_zeroed_values(count, value_len as u64)?;
    let mut taken = Bits(Buffer::try_zeroed(count.div_ceil(8))?);
    for (place, value) in places.zip(values.bytes.chunks_exact(value_len)) {
        let start = usize::try_from(place).ok();
        let start = start.and_then(|place| place.checked_mul(value_len));
        let target = start.and_then(|start| out.get_mut(start..)?.get_mut(..value_len));
        let target = target.ok_or_else(mismatch)?;
        match addition {
            _ if taken.insert(place) => target.copy_from_slice(value),
            Some((_, add)) => add(target, value).ok_or_else(mismatch)?,
            None => {
                let name = Text::Owned(values.type_name().to_owned());
                return Err(Error::Unsupported(Unsupported::LogicalType(name)));
            }
        }
    }
    Ok(values.of_same_type(out))
}

/// Adds the second value to the first. Both are the bytes of one value, little-endian; `None` if they are not
/// as long as one.
type Add = fn(&mut [u8], &[u8]) -> Option<()>;

/// The length of one value and its addition; `None` for unknown logical types.
fn addition(values: &Elements<'_>) -> Option<(usize, Add)> {
    fn of<T: Sum>() -> Option<(usize, Add)> {
        Some((size_of::<T>(), add::<T>))
    }
    match (values.dtype, values.logical_type()) {
        (DType::F64, None) => of::<f64>(),
        (DType::F32, None) => of::<f32>(),
        (DType::F16, None) => of::<f16>(),
        (DType::BF16, None) => of::<bf16>(),
        // Two's complement: signed and unsigned integers have the same addition.
        (DType::I64 | DType::U64, None) => of::<u64>(),
        (DType::I32 | DType::U32, None) => of::<u32>(),
        (DType::I16 | DType::U16, None) => of::<u16>(),
        (DType::I8 | DType::U8, None) => of::<u8>(),
        (DType::Bool, None) => of::<Truth>(),
        (DType::U8, Some("f8_e4m3fn")) => of::<F8E4M3Fn>(),
        (DType::U8, Some("f8_e5m2")) => of::<F8E5M2>(),
        (DType::U8, Some("f8_e4m3fnuz")) => of::<F8E4M3FnUz>(),
        (DType::U8, Some("f8_e5m2fnuz")) => of::<F8E5M2FnUz>(),
        (DType::U8, Some("f8_e8m0fnu")) => of::<F8E8M0Fnu>(),
        (DType::F16, Some("complex32")) => of::<Complex<f16>>(),
        (DType::BF16, Some("bcomplex32")) => of::<Complex<bf16>>(),
        (DType::F32, Some("complex64")) => of::<Complex<f32>>(),
        (DType::F64, Some("complex128")) => of::<Complex<f64>>(),
        _ => None,
    }
}

fn add<T: Sum>(target: &mut [u8], value: &[u8]) -> Option<()> {
    let mut sum = read::<T>(target)?.plus(read(value)?);
    let bytes = bytemuck::bytes_of_mut(&mut sum);
    to_le(bytes, T::WIDTH);
    target.copy_from_slice(bytes); // `read` has compared the lengths.
    Some(())
}

fn read<T: Sum>(bytes: &[u8]) -> Option<T> {
    let mut value: T = bytemuck::try_pod_read_unaligned(bytes).ok()?;
    to_le(bytemuck::bytes_of_mut(&mut value), T::WIDTH);
    Some(value)
}

trait Sum: bytemuck::Pod {
    /// The bytes that a big-endian host swaps. The two parts of a complex value are swapped
    /// separately.
    const WIDTH: usize;

    fn plus(self, other: Self) -> Self;
}

/// The byte of a bool, which was checked.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Truth(u8);

macro_rules! sums {
    ($($type:ty, $width:literal: |$a:ident, $b:ident| $sum:expr;)*) => {$(
        impl Sum for $type {
            const WIDTH: usize = $width;

            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
        }
    )*};
}

sums! {
    f64, 8: |a, b| a + b;
    f32, 4: |a, b| a + b;
    f16, 2: |a, b| f16::from_f32(a.to_f32() + b.to_f32());
    bf16, 2: |a, b| bf16::from_f32(a.to_f32() + b.to_f32());
    u64, 8: |a, b| a.wrapping_add(b);
    u32, 4: |a, b| a.wrapping_add(b);
    u16, 2: |a, b| a.wrapping_add(b);
    u8, 1: |a, b| a.wrapping_add(b);
    Truth, 1: |a, b| Truth(a.0 | b.0);
    F8E4M3Fn, 1: |a, b| F8E4M3Fn::from_f32(a.to_f32() + b.to_f32());
    F8E5M2, 1: |a, b| F8E5M2::from_f32(a.to_f32() + b.to_f32());
    F8E4M3FnUz, 1: |a, b| F8E4M3FnUz::from_f32(a.to_f32() + b.to_f32());
    F8E5M2FnUz, 1: |a, b| F8E5M2FnUz::from_f32(a.to_f32() + b.to_f32());
    F8E8M0Fnu, 1: |a, b| F8E8M0Fnu::from_f32(a.to_f32() + b.to_f32());
    Complex<f16>, 2: |a, b| Complex::new(a.re.plus(b.re), a.im.plus(b.im));
    Complex<bf16>, 2: |a, b| Complex::new(a.re.plus(b.re), a.im.plus(b.im));
    Complex<f32>, 4: |a, b| Complex::new(a.re + b.re, a.im + b.im);
    Complex<f64>, 8: |a, b| Complex::new(a.re + b.re, a.im + b.im);
}

struct Bits(Buffer);

impl Bits {
    /// Adds `place`; false if it is there already.
    fn insert(&mut self, place: u64) -> bool {
        let byte = usize::try_from(place >> 3).ok();
        let Some(byte) = byte.and_then(|byte| self.0.get_mut(byte)) else {
            return false;
        };
        let bit = 1 << (place & 7);
        let is_new = *byte & bit == 0;
        *byte |= bit;
        is_new
    }
}
