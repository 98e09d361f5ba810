//! Types of `ml_dtypes`, whose arrays NumPy saves without their names.

use zt::formats::PackedType;
use zt::{DType, FloatType};

use crate::values::Meaning;

/// A type of the Python package `ml_dtypes`.
///
/// NumPy saves its arrays as opaque bytes (`V1`, `V2`) or as a float of one byte (`f1`), so only the
/// user knows the type. A value of less than a byte is in the lowest bits of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MlDtype {
    /// Its name in Python.
    pub name: &'static str,
    /// Its values, once those of less than a byte are packed.
    pub meaning: Meaning,
}

const fn f8(name: &'static str, logical_type: &'static str) -> MlDtype {
    let meaning = Meaning::Values(DType::U8, Some(logical_type));
    MlDtype { name, meaning }
}

const fn packed(name: &'static str, packed: PackedType) -> MlDtype {
    let meaning = Meaning::Packed(packed);
    MlDtype { name, meaning }
}

static TYPES: [MlDtype; 13] = [
    MlDtype::BFLOAT16,
    f8("float8_e4m3fn", "f8_e4m3fn"),
    f8("float8_e4m3fnuz", "f8_e4m3fnuz"),
    f8("float8_e5m2", "f8_e5m2"),
    f8("float8_e5m2fnuz", "f8_e5m2fnuz"),
    f8("float8_e8m0fnu", "f8_e8m0fnu"),
    packed("float6_e2m3fn", PackedType::F6E2M3Fn),
    packed("float6_e3m2fn", PackedType::F6E3M2Fn),
    packed("float4_e2m1fn", PackedType::F4E2M1Fn),
    packed("int4", PackedType::I4),
    packed("uint4", PackedType::U4),
    packed("int2", PackedType::I2),
    packed("uint2", PackedType::U2),
];

impl MlDtype {
    /// bf16, which is saved as `V2`.
    pub const BFLOAT16: MlDtype =
        MlDtype { name: "bfloat16", meaning: Meaning::Values(DType::BF16, None) };

    /// All types that zt supports.
    pub fn all() -> &'static [MlDtype] {
        &TYPES
    }

    /// The type of this name in Python, or of another name that users give a type of [`FloatType`].
    pub fn from_name(name: &str) -> Option<Self> {
        let typed = FloatType::from_typed(name);
        let is_typed = |it: &&MlDtype| typed.is_some() && it.float_type() == typed;
        let named = TYPES.iter().find(|it| it.name == name);
        named.or_else(|| TYPES.iter().find(is_typed)).copied()
    }

    /// Its other names.
    pub fn other_names(self) -> &'static [&'static str] {
        self.float_type().map_or(&[], FloatType::other_names)
    }

    fn float_type(self) -> Option<FloatType> {
        let Meaning::Values(dtype, logical_type) = self.meaning else {
            return None;
        };
        FloatType::from_name(logical_type.unwrap_or(dtype.as_str()))
    }

    /// Bytes of one element in a file of NumPy.
    pub const fn saved_len(self) -> u64 {
        self.meaning.dtype().byte_len() as u64
    }
}
