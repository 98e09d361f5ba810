//! Logical types: the meaning of storage elements.

use std::fmt;
use std::num::NonZero;

use half::{bf16, f16};
use num_complex::Complex;
use zt_manifest::{DType, Text};

use crate::base::e8m0::F8E8M0Fnu;
use crate::base::fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};

/// A logical type: a row of the registry's table. Spec: §7.2.
///
/// ```
/// use zt_formats::{Decode, Elements, LogicalType, Registry, Scalar};
/// use zt_formats::DType;
///
/// let percent = Decode::F32(|bytes| f32::from(bytes[0]) / 100.0);
/// let percent = LogicalType::new("acme.percent", DType::U8, percent);
/// let registry = Registry::builtin().with_logical_type(percent);
/// let elements = Elements::new(DType::U8, &[25u8][..]).with_logical_type("acme.percent");
/// assert_eq!(elements.scalars(&registry)?.next(), Some(Scalar::F32(0.25)));
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogicalType {
    /// The manifest's `type`.
    pub name: Text,
    /// Its only storage type.
    pub dtype: DType,
    /// The number of storage elements of one value.
    pub storage_elements: NonZero<u64>,
    /// The decoding of one value.
    pub decode: Decode,
}

/// A function from the bytes of one value, little-endian, to the value. The variant is a precision
/// in which all values of the type are exact.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Decode {
    /// Real values, exact in an f32.
    F32(fn(&[u8]) -> f32),
    /// Real values, exact in an f64.
    F64(fn(&[u8]) -> f64),
    /// Complex values, both parts exact in an f32.
    Complex64(fn(&[u8]) -> Complex<f32>),
    /// Complex values, both parts exact in an f64.
    Complex128(fn(&[u8]) -> Complex<f64>),
}

impl LogicalType {
    /// A type whose values are a storage element each. [`storage_elements`](field@Self::storage_elements) may be
    /// set to more.
    pub fn new(name: impl Into<Text>, dtype: DType, decode: Decode) -> Self {
        LogicalType { name: name.into(), dtype, storage_elements: ONE, decode }
    }

    /// The specification's logical type of this name.
    pub fn builtin(name: &str) -> Option<&'static LogicalType> {
        BUILTIN.iter().find(|logical| logical.name == name)
    }

    /// Bytes of one value.
    pub const fn value_len(&self) -> u64 {
        // Saturating: no length in a file is a multiple of a value that large.
        (self.dtype.byte_len() as u64).saturating_mul(self.storage_elements.get())
    }
}

impl fmt::Debug for Decode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decode::F32(_) => "F32",
            Decode::F64(_) => "F64",
            Decode::Complex64(_) => "Complex64",
            Decode::Complex128(_) => "Complex128",
        })
    }
}

const ONE: NonZero<u64> = NonZero::<u64>::MIN;
const TWO: NonZero<u64> = ONE.saturating_add(1);

macro_rules! f8 {
    ($type:ident) => {
        Decode::F32(|bytes| $type::from_bits(u8::from_le_bytes(part(bytes, 0))).to_f32())
    };
}

macro_rules! complex {
    ($variant:ident, $float:ident) => {
        Decode::$variant(|bytes| {
            let part = |at| $float::from_le_bytes(part(bytes, at)).into();
            Complex::new(part(0), part(1))
        })
    };
}

/// The tables of spec §7.2.
pub(crate) static BUILTIN: [LogicalType; 9] = [
    row("f8_e4m3fn", DType::U8, ONE, f8!(F8E4M3Fn)),
    row("f8_e5m2", DType::U8, ONE, f8!(F8E5M2)),
    row("f8_e4m3fnuz", DType::U8, ONE, f8!(F8E4M3FnUz)),
    row("f8_e5m2fnuz", DType::U8, ONE, f8!(F8E5M2FnUz)),
    row("f8_e8m0fnu", DType::U8, ONE, f8!(F8E8M0Fnu)),
    row("complex32", DType::F16, TWO, complex!(Complex64, f16)),
    row("bcomplex32", DType::BF16, TWO, complex!(Complex64, bf16)),
    row("complex64", DType::F32, TWO, complex!(Complex64, f32)),
    row("complex128", DType::F64, TWO, complex!(Complex128, f64)),
];

const fn row(
    name: &'static str,
    dtype: DType,
    storage_elements: NonZero<u64>,
    decode: Decode,
) -> LogicalType {
    LogicalType { name: Text::Borrowed(name), dtype, storage_elements, decode }
}

/// The `index`th `N` bytes. The length of a value ensures that they exist.
fn part<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    let (parts, _) = bytes.as_chunks();
    parts.get(index).copied().unwrap_or([0; N])
}
