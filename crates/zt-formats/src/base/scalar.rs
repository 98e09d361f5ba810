//! Values of any type, one at a time.

use std::fmt;
use std::slice::ChunksExact;

use half::{bf16, f16};
use num_complex::Complex;
use zt_manifest::DType;

use crate::base::cast::narrow;
use crate::base::elements::Elements;
use crate::base::error::{Result, SizeMismatch};
use crate::base::logical::Decode;
use crate::base::registry::Registry;
use crate::base::typed::check_bools;

/// One value in its own precision.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Scalar {
    /// An f64.
    F64(f64),
    /// An f32, or a value of a logical type, such as FP8, that is exact as an f32.
    F32(f32),
    /// An f16.
    F16(f16),
    /// A bf16.
    BF16(bf16),
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    UInt(u64),
    /// A bool.
    Bool(bool),
    /// A `complex64`, or a complex value whose parts are exact as f32, such as a `complex32`.
    Complex64(Complex<f32>),
    /// A `complex128`.
    Complex128(Complex<f64>),
}

impl Scalar {
    /// The value as an f64; `None` if it is complex. Only 64-bit integers are rounded. False and
    /// true are 0 and 1.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Scalar::F64(value) => Some(value),
            Scalar::F32(value) => Some(value.into()),
            Scalar::F16(value) => Some(value.into()),
            Scalar::BF16(value) => Some(value.into()),
            Scalar::Int(value) => Some(value as f64),
            Scalar::UInt(value) => Some(value as f64),
            Scalar::Bool(value) => Some(f64::from(u8::from(value))),
            Scalar::Complex64(_) | Scalar::Complex128(_) => None,
        }
    }

    /// The value as an f32, rounded once; `None` if it is complex.
    pub fn as_f32(self) -> Option<f32> {
        match self {
            Scalar::F64(value) => Some(narrow(value)),
            Scalar::F32(value) => Some(value),
            Scalar::F16(value) => Some(value.into()),
            Scalar::BF16(value) => Some(value.into()),
            Scalar::Int(value) => Some(value as f32),
            Scalar::UInt(value) => Some(value as f32),
            Scalar::Bool(value) => Some(f32::from(u8::from(value))),
            Scalar::Complex64(_) | Scalar::Complex128(_) => None,
        }
    }
}

/// The shortest decimal that parses to the same value in the same precision: an f16 of 0.1 is
/// `0.1`. Very large and very small values have an exponent. A complex value is `1.5-2.0j`.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::F64(value) => write!(f, "{value:?}"),
            Scalar::F32(value) => write!(f, "{value:?}"),
            Scalar::F16(value) => {
                let short = shortest(value.into(), |short| f16::from_f32(short) == value);
                write!(f, "{short:?}")
            }
            Scalar::BF16(value) => {
                let short = shortest(value.into(), |short| bf16::from_f32(short) == value);
                write!(f, "{short:?}")
            }
            Scalar::Int(value) => value.fmt(f),
            Scalar::UInt(value) => value.fmt(f),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Complex64(value) => write!(f, "{:?}{:+?}j", value.re, value.im),
            Scalar::Complex128(value) => write!(f, "{:?}{:+?}j", value.re, value.im),
        }
    }
}

/// The f32 with the fewest decimal digits that is the `same` value in its own precision.
fn shortest(value: f32, same: impl Fn(f32) -> bool) -> f32 {
    // Five digits distinguish all f16, and four all bf16.
    (0..5)
        .filter_map(|digits| format!("{value:.digits$e}").parse().ok())
        .find(|short| same(*short))
        .unwrap_or(value)
}

/// The values of some elements in order; see [`Elements::scalars`]. Skipping with [`Iterator::nth`]
/// takes no time.
#[derive(Clone)]
pub struct Scalars<'a> {
    values: ChunksExact<'a, u8>,
    read: Read,
}

#[derive(Clone, Copy)]
enum Read {
    Storage(DType),
    Logical(Decode),
}

impl<'a> Scalars<'a> {
    pub(crate) fn new(elements: &'a Elements<'_>, registry: &Registry) -> Result<Self> {
        let (read, value_len) = match registry.logical_type_of(elements)? {
            Some(logical) => (Read::Logical(logical.decode), logical.value_len()),
            None => {
                let dtype = elements.dtype;
                (Read::Storage(dtype), dtype.byte_len() as u64)
            }
        };
        if elements.dtype == DType::Bool {
            check_bools(&elements.bytes)?;
        }
        let values = usize::try_from(value_len).map(|len| elements.bytes.chunks_exact(len));
        match values {
            Ok(values) if values.remainder().is_empty() => Ok(Scalars { values, read }),
            _ => Err(SizeMismatch::partial(elements.bytes.len(), value_len).of_object()),
        }
    }
}

impl Iterator for Scalars<'_> {
    type Item = Scalar;

    fn next(&mut self) -> Option<Scalar> {
        self.values.next().map(|value| self.read.one(value))
    }

    fn nth(&mut self, n: usize) -> Option<Scalar> {
        self.values.nth(n).map(|value| self.read.one(value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.values.size_hint()
    }

    /// Matches the type once and not for each value: sums are several times as fast.
    fn fold<B, F: FnMut(B, Scalar) -> B>(self, init: B, mut f: F) -> B {
        macro_rules! by_dtype {
            ($dtype:expr; $($known:ident)*) => {
                match $dtype {
                    $(DType::$known => self.values.fold(init, |acc, value| {
                        f(acc, stored(DType::$known, value))
                    }),)*
                }
            };
        }
        match self.read {
            Read::Storage(dtype) => {
                by_dtype!(dtype; F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 Bool)
            }
            read @ Read::Logical(_) => self.values.fold(init, |acc, value| f(acc, read.one(value))),
        }
    }
}

impl ExactSizeIterator for Scalars<'_> {}

impl Read {
    fn one(self, bytes: &[u8]) -> Scalar {
        match self {
            Read::Storage(dtype) => stored(dtype, bytes),
            Read::Logical(Decode::F32(decode)) => Scalar::F32(decode(bytes)),
            Read::Logical(Decode::F64(decode)) => Scalar::F64(decode(bytes)),
            Read::Logical(Decode::Complex64(decode)) => Scalar::Complex64(decode(bytes)),
            Read::Logical(Decode::Complex128(decode)) => Scalar::Complex128(decode(bytes)),
        }
    }
}

/// The value of exactly one element's bytes.
#[inline]
fn stored(dtype: DType, bytes: &[u8]) -> Scalar {
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match dtype {
        DType::F64 => Scalar::F64(f64::from_le_bytes(array(bytes))),
        DType::F32 => Scalar::F32(f32::from_le_bytes(array(bytes))),
        DType::F16 => Scalar::F16(f16::from_le_bytes(array(bytes))),
        DType::BF16 => Scalar::BF16(bf16::from_le_bytes(array(bytes))),
        DType::I64 => Scalar::Int(i64::from_le_bytes(array(bytes))),
        DType::I32 => Scalar::Int(i32::from_le_bytes(array(bytes)).into()),
        DType::I16 => Scalar::Int(i16::from_le_bytes(array(bytes)).into()),
        DType::I8 => Scalar::Int(i8::from_le_bytes(array(bytes)).into()),
        DType::U64 => Scalar::UInt(u64::from_le_bytes(array(bytes))),
        DType::U32 => Scalar::UInt(u32::from_le_bytes(array(bytes)).into()),
        DType::U16 => Scalar::UInt(u16::from_le_bytes(array(bytes)).into()),
        DType::U8 => Scalar::UInt(u8::from_le_bytes(array(bytes)).into()),
        DType::Bool => Scalar::Bool(array(bytes) != [0]),
    }
}
