//! The element types of torch that have a dtype in zt.

use zt::DType::{self, BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use zt::formats::PackedType;
use zt_foreign::Meaning;

/// An element type of torch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its name in Python, without `torch.`.
    pub(crate) name: &'static str,
    /// The class of its storages, without `Storage`; `None` for a type that has bytes as storage.
    pub(crate) storage: Option<&'static str>,
    /// Packed values are two in each element, along the last dimension.
    pub(crate) meaning: Meaning,
    pub(crate) byte_len: u64,
}

/// A type that torch saves in a storage of its own class.
const fn plain(name: &'static str, storage: &'static str, dtype: DType) -> Element {
    Element {
        name,
        storage: Some(storage),
        meaning: Meaning::Values(dtype, None),
        byte_len: dtype.byte_len() as u64,
    }
}

/// A type that torch saves as bytes.
const fn newer(name: &'static str, dtype: DType, logical: Option<&'static str>) -> Element {
    Element {
        name,
        storage: None,
        meaning: Meaning::Values(dtype, logical),
        byte_len: dtype.byte_len() as u64,
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "twice a small constant")]
const fn complex(name: &'static str, storage: Option<&'static str>, part: DType) -> Element {
    Element {
        name,
        storage,
        meaning: Meaning::Values(part, Some(name)),
        byte_len: part.byte_len() as u64 * 2,
    }
}

static TABLE: &[Element] = &[
    plain("float64", "Double", F64),
    plain("float32", "Float", F32),
    plain("float16", "Half", F16),
    plain("bfloat16", "BFloat16", BF16),
    plain("int64", "Long", I64),
    plain("int32", "Int", I32),
    plain("int16", "Short", I16),
    plain("int8", "Char", I8),
    plain("uint8", "Byte", U8),
    plain("bool", "Bool", Bool),
    complex("complex64", Some("ComplexFloat"), F32),
    complex("complex128", Some("ComplexDouble"), F64),
    complex("complex32", None, F16),
    newer("uint16", U16, None),
    newer("uint32", U32, None),
    newer("uint64", U64, None),
    newer("float8_e4m3fn", U8, Some("f8_e4m3fn")),
    newer("float8_e5m2", U8, Some("f8_e5m2")),
    newer("float8_e4m3fnuz", U8, Some("f8_e4m3fnuz")),
    newer("float8_e5m2fnuz", U8, Some("f8_e5m2fnuz")),
    newer("float8_e8m0fnu", U8, Some("f8_e8m0fnu")),
    Element {
        name: "float4_e2m1fn_x2",
        storage: None,
        meaning: Meaning::Packed(PackedType::F4E2M1Fn),
        byte_len: 1,
    },
];

impl Element {
    /// The type of a name in Python, without `torch.`.
    pub(crate) fn from_name(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|element| element.name == name)
    }
}
