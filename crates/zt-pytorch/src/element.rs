//! The element types of torch 2.15, and their dtypes in zt.

use zt::DType::{self, BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use zt::formats::PackedType;

/// An element type of torch.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ElementType {
    /// Its name in Python, without `torch.`.
    pub(super) name: &'static str,
    /// The class of its storages, without `Storage`. Newer types have one only in TorchScript, where
    /// libtorch writes `toString(ScalarType)` and `Storage`.
    pub(super) storage: &'static str,
    /// Bytes of one element of a storage.
    pub(super) byte_len: u64,
    pub(super) meaning: Meaning,
}

/// The meaning of elements in zt.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// Values of a dtype and, if any, a logical type.
    Values(DType, Option<&'static str>),
    /// Two values in each element, along the last dimension.
    Pairs(PackedType),
    /// Quantized integers, with scales and zero-points.
    Quantized { bits: u32, per_word: u32, word: DType, is_signed: bool },
}

const fn row(
    name: &'static str,
    storage: &'static str,
    (byte_len, meaning): (usize, Meaning),
) -> ElementType {
    ElementType { name, storage, byte_len: byte_len as u64, meaning }
}

const fn plain(dtype: DType) -> (usize, Meaning) {
    (dtype.byte_len(), Meaning::Values(dtype, None))
}

/// An element of one byte.
const fn byte(name: &'static str, storage: &'static str, meaning: &'static str) -> ElementType {
    row(name, storage, (1, Meaning::Values(U8, Some(meaning))))
}

const fn complex(part: DType, name: &'static str) -> (usize, Meaning) {
    (part.byte_len().strict_mul(2), Meaning::Values(part, Some(name)))
}

const fn quantized(bits: u32, per_word: u32, word: DType, is_signed: bool) -> (usize, Meaning) {
    let meaning = Meaning::Quantized { bits, per_word, word, is_signed };
    (word.byte_len(), meaning)
}

/// The types that `torch.load(weights_only=True)` accepts.
///
/// Those from `bits8` on are no logical types of zt: their bytes keep their names, and have no values.
/// torch stores an element of less than a byte in a byte.
static TABLE: &[ElementType] = &[
    row("float64", "Double", plain(F64)),
    row("float32", "Float", plain(F32)),
    row("float16", "Half", plain(F16)),
    row("bfloat16", "BFloat16", plain(BF16)),
    row("int64", "Long", plain(I64)),
    row("int32", "Int", plain(I32)),
    row("int16", "Short", plain(I16)),
    row("int8", "Char", plain(I8)),
    row("uint8", "Byte", plain(U8)),
    row("bool", "Bool", plain(Bool)),
    row("uint16", "UInt16", plain(U16)),
    row("uint32", "UInt32", plain(U32)),
    row("uint64", "UInt64", plain(U64)),
    row("complex64", "ComplexFloat", complex(F32, "complex64")),
    row("complex128", "ComplexDouble", complex(F64, "complex128")),
    row("complex32", "ComplexHalf", complex(F16, "complex32")),
    row("bcomplex32", "BComplex32", complex(BF16, "bcomplex32")),
    byte("float8_e4m3fn", "Float8_e4m3fn", "f8_e4m3fn"),
    byte("float8_e5m2", "Float8_e5m2", "f8_e5m2"),
    byte("float8_e4m3fnuz", "Float8_e4m3fnuz", "f8_e4m3fnuz"),
    byte("float8_e5m2fnuz", "Float8_e5m2fnuz", "f8_e5m2fnuz"),
    byte("float8_e8m0fnu", "Float8_e8m0fnu", "f8_e8m0fnu"),
    row("qint8", "QInt8", quantized(8, 1, U8, true)),
    row("quint8", "QUInt8", quantized(8, 1, U8, false)),
    row("qint32", "QInt32", quantized(32, 1, U32, true)),
    row("quint4x2", "QUInt4x2", quantized(4, 2, U8, false)),
    row("quint2x4", "QUInt2x4", quantized(2, 4, U8, false)),
    row("float4_e2m1fn_x2", "Float4_e2m1fn_x2", (1, Meaning::Pairs(PackedType::F4E2M1Fn))),
    byte("bits8", "Bits8", "bits8"),
    row("bits16", "Bits16", (2, Meaning::Values(U16, Some("bits16")))),
    byte("bits1x8", "Bits1x8", "bits1x8"),
    byte("bits2x4", "Bits2x4", "bits2x4"),
    byte("bits4x2", "Bits4x2", "bits4x2"),
    byte("uint1", "UInt1", "uint1"),
    byte("uint2", "UInt2", "uint2"),
    byte("uint3", "UInt3", "uint3"),
    byte("uint4", "UInt4", "uint4"),
    byte("uint5", "UInt5", "uint5"),
    byte("uint6", "UInt6", "uint6"),
    byte("uint7", "UInt7", "uint7"),
    byte("int1", "Int1", "int1"),
    byte("int2", "Int2", "int2"),
    byte("int3", "Int3", "int3"),
    byte("int4", "Int4", "int4"),
    byte("int5", "Int5", "int5"),
    byte("int6", "Int6", "int6"),
    byte("int7", "Int7", "int7"),
];

/// The bytes of a storage without a type.
pub(super) static BYTES: ElementType = row("uint8", "Untyped", plain(U8));

impl ElementType {
    /// The type of a name in Python, without `torch.`.
    pub(super) fn from_name(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|element| element.name == name)
    }

    /// The type of a class of storages.
    pub(super) fn from_storage(class: &str) -> Option<&'static Self> {
        let class = class.strip_suffix("Storage")?;
        TABLE.iter().find(|element| element.storage == class)
    }
}

#[cfg(test)]
mod tests {
    use super::{ElementType, TABLE};

    #[test]
    fn every_name_is_unique() {
        for element in TABLE {
            assert_eq!(ElementType::from_name(element.name), Some(element));
            let class = format!("{}Storage", element.storage);
            assert_eq!(ElementType::from_storage(&class), Some(element));
        }
    }

    #[test]
    fn elements_have_torchs_lengths() {
        for (name, byte_len) in [
            ("float64", 8),
            ("bfloat16", 2),
            ("complex128", 16),
            ("complex32", 4),
            ("float8_e5m2", 1),
            ("qint32", 4),
            ("quint4x2", 1),
            ("bits16", 2),
        ] {
            let element = ElementType::from_name(name).unwrap();
            assert_eq!(element.byte_len, byte_len, "{name}");
        }
    }
}
