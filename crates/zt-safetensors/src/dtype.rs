//! The 22 element types of safetensors 0.8, and the dtypes and logical types that they become.

use std::fmt;

use zt::DType;
use zt::formats::PackedType;
use zt_foreign::Meaning::{self, Packed, Values};

use crate::violation::SafetensorsViolation;

/// An element type of safetensors 0.8. The order is the one by which its writer sorts tensors: by
/// alignment, then by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the format's own names")]
pub enum Dtype {
    Bool,
    F4,
    F6E2M3,
    F6E3M2,
    U8,
    I8,
    F8E5M2,
    F8E4M3,
    F8E8M0,
    F8E4M3FnUz,
    F8E5M2FnUz,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    C64,
    F64,
    I64,
    U64,
}

/// A dtype, its spelling, its width in bits, and its meaning.
type Row = (Dtype, &'static str, u64, Meaning);

/// In the order of the enum, which a test checks.
static TABLE: [Row; 22] = [
    (Dtype::Bool, "BOOL", 8, plain(DType::Bool)),
    (Dtype::F4, "F4", 4, Packed(PackedType::F4E2M1Fn)),
    (Dtype::F6E2M3, "F6_E2M3", 6, Packed(PackedType::F6E2M3Fn)),
    (Dtype::F6E3M2, "F6_E3M2", 6, Packed(PackedType::F6E3M2Fn)),
    (Dtype::U8, "U8", 8, plain(DType::U8)),
    (Dtype::I8, "I8", 8, plain(DType::I8)),
    (Dtype::F8E5M2, "F8_E5M2", 8, f8("f8_e5m2")),
    (Dtype::F8E4M3, "F8_E4M3", 8, f8("f8_e4m3fn")),
    (Dtype::F8E8M0, "F8_E8M0", 8, f8("f8_e8m0fnu")),
    (Dtype::F8E4M3FnUz, "F8_E4M3FNUZ", 8, f8("f8_e4m3fnuz")),
    (Dtype::F8E5M2FnUz, "F8_E5M2FNUZ", 8, f8("f8_e5m2fnuz")),
    (Dtype::I16, "I16", 16, plain(DType::I16)),
    (Dtype::U16, "U16", 16, plain(DType::U16)),
    (Dtype::F16, "F16", 16, plain(DType::F16)),
    (Dtype::BF16, "BF16", 16, plain(DType::BF16)),
    (Dtype::I32, "I32", 32, plain(DType::I32)),
    (Dtype::U32, "U32", 32, plain(DType::U32)),
    (Dtype::F32, "F32", 32, plain(DType::F32)),
    (Dtype::C64, "C64", 64, Values(DType::F32, Some("complex64"))),
    (Dtype::F64, "F64", 64, plain(DType::F64)),
    (Dtype::I64, "I64", 64, plain(DType::I64)),
    (Dtype::U64, "U64", 64, plain(DType::U64)),
];

const fn plain(dtype: DType) -> Meaning {
    Values(dtype, None)
}

const fn f8(logical_type: &'static str) -> Meaning {
    Values(DType::U8, Some(logical_type))
}

impl Dtype {
    /// The dtype with exactly this spelling, such as `F32`.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find_map(|(dtype, known, ..)| (*known == name).then_some(*dtype))
    }

    /// The dtype with this storage and logical type, if there is one.
    pub fn from_types(dtype: DType, logical_type: Option<&str>) -> Option<Self> {
        let wanted = (dtype, logical_type);
        let mut rows = TABLE.iter();
        rows.find_map(|(this, .., meaning)| match *meaning {
            Values(dtype, logical_type) => ((dtype, logical_type) == wanted).then_some(*this),
            Packed(_) => None,
        })
    }

    /// The dtype of these values of less than a byte, if there is one.
    pub fn from_packed(packed: PackedType) -> Option<Self> {
        let mut rows = TABLE.iter();
        rows.find_map(|(this, .., meaning)| (*meaning == Packed(packed)).then_some(*this))
    }

    /// Its spelling in headers.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The meaning of its elements.
    pub(super) fn meaning(self) -> Meaning {
        self.row().3
    }

    /// The bytes of an array of `shape`.
    ///
    /// The product is computed in order and in bits, as in the official library: both refuse a shape
    /// that overflows before it reaches a dimension of zero.
    ///
    /// # Errors
    ///
    /// [`SafetensorsViolation::Overflow`]; [`SafetensorsViolation::PartialByte`].
    pub fn byte_len(self, shape: &[u64]) -> Result<u64, SafetensorsViolation> {
        let elements =
            shape.iter().try_fold(1u64, |count, dimension| count.checked_mul(*dimension));
        let bits = elements.and_then(|elements| elements.checked_mul(self.row().2));
        match bits {
            Some(bits) if bits.is_multiple_of(8) => Ok(bits / 8),
            Some(_) => Err(SafetensorsViolation::PartialByte { dtype: self }),
            None => Err(SafetensorsViolation::Overflow { dtype: self }),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "one row for each variant")]
    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
