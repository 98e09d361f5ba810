//! The element types of torch 2.15, and their dtypes in zt.

use zt::DType;

/// An element type of torch.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ElementType {
    /// Its name in Python, without `torch.`.
    pub(super) name: &'static str,
    /// The class of its storages; `None` for bytes. Newer types have one only in TorchScript, where
    /// libtorch writes `toString(ScalarType)` and `Storage`.
    pub(super) storage: Option<&'static str>,
    /// Bytes of one element of a storage.
    pub(super) byte_len: u64,
    pub(super) meaning: Meaning,
}

/// The meaning of elements in zt.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// Values of a dtype and, if any, a logical type.
    Values(DType, Option<&'static str>),
    /// Quantized integers, with scales and zero-points.
    Quantized {
        bits: u32,
        per_word: u32,
        word: DType,
        is_signed: bool,
    },
}

const fn row(
    name: &'static str,
    storage: Option<&'static str>,
    byte_len: u64,
    meaning: Meaning,
) -> ElementType {
    ElementType {
        name,
        storage,
        byte_len,
        meaning,
    }
}

const fn plain(dtype: DType) -> Meaning {
    Meaning::Values(dtype, None)
}

const fn logical(dtype: DType, name: &'static str) -> Meaning {
    Meaning::Values(dtype, Some(name))
}

const fn quantized(bits: u32, per_word: u32, word: DType, is_signed: bool) -> Meaning {
    Meaning::Quantized {
        bits,
        per_word,
        word,
        is_signed,
    }
}

/// The types that `torch.load(weights_only=True)` accepts.
///
/// `complex32`, `bcomplex32`, `f8_e8m0fnu` and all from `f4_e2m1fn_x2` on are not logical types of
/// zTensor 1.2: their bytes keep their names, and have no values. torch stores an element of less
/// than a byte in a byte, or counts it by the byte.
static TABLE: &[ElementType] = &[
    row("float64", Some("DoubleStorage"), 8, plain(DType::F64)),
    row("float32", Some("FloatStorage"), 4, plain(DType::F32)),
    row("float16", Some("HalfStorage"), 2, plain(DType::F16)),
    row("bfloat16", Some("BFloat16Storage"), 2, plain(DType::BF16)),
    row("int64", Some("LongStorage"), 8, plain(DType::I64)),
    row("int32", Some("IntStorage"), 4, plain(DType::I32)),
    row("int16", Some("ShortStorage"), 2, plain(DType::I16)),
    row("int8", Some("CharStorage"), 1, plain(DType::I8)),
    row("uint8", Some("ByteStorage"), 1, plain(DType::U8)),
    row("bool", Some("BoolStorage"), 1, plain(DType::Bool)),
    row("uint16", Some("UInt16Storage"), 2, plain(DType::U16)),
    row("uint32", Some("UInt32Storage"), 4, plain(DType::U32)),
    row("uint64", Some("UInt64Storage"), 8, plain(DType::U64)),
    row(
        "complex64",
        Some("ComplexFloatStorage"),
        8,
        logical(DType::F32, "complex64"),
    ),
    row(
        "complex128",
        Some("ComplexDoubleStorage"),
        16,
        logical(DType::F64, "complex128"),
    ),
    row(
        "complex32",
        Some("ComplexHalfStorage"),
        4,
        logical(DType::F16, "complex32"),
    ),
    row(
        "bcomplex32",
        Some("BComplex32Storage"),
        4,
        logical(DType::BF16, "bcomplex32"),
    ),
    row(
        "float8_e4m3fn",
        Some("Float8_e4m3fnStorage"),
        1,
        logical(DType::U8, "f8_e4m3fn"),
    ),
    row(
        "float8_e5m2",
        Some("Float8_e5m2Storage"),
        1,
        logical(DType::U8, "f8_e5m2"),
    ),
    row(
        "float8_e4m3fnuz",
        Some("Float8_e4m3fnuzStorage"),
        1,
        logical(DType::U8, "f8_e4m3fnuz"),
    ),
    row(
        "float8_e5m2fnuz",
        Some("Float8_e5m2fnuzStorage"),
        1,
        logical(DType::U8, "f8_e5m2fnuz"),
    ),
    row(
        "float8_e8m0fnu",
        Some("Float8_e8m0fnuStorage"),
        1,
        logical(DType::U8, "f8_e8m0fnu"),
    ),
    row(
        "qint8",
        Some("QInt8Storage"),
        1,
        quantized(8, 1, DType::U8, true),
    ),
    row(
        "quint8",
        Some("QUInt8Storage"),
        1,
        quantized(8, 1, DType::U8, false),
    ),
    row(
        "qint32",
        Some("QInt32Storage"),
        4,
        quantized(32, 1, DType::U32, true),
    ),
    row(
        "quint4x2",
        Some("QUInt4x2Storage"),
        1,
        quantized(4, 2, DType::U8, false),
    ),
    row(
        "quint2x4",
        Some("QUInt2x4Storage"),
        1,
        quantized(2, 4, DType::U8, false),
    ),
    row(
        "float4_e2m1fn_x2",
        Some("Float4_e2m1fn_x2Storage"),
        1,
        logical(DType::U8, "f4_e2m1fn_x2"),
    ),
    row(
        "bits8",
        Some("Bits8Storage"),
        1,
        logical(DType::U8, "bits8"),
    ),
    row(
        "bits16",
        Some("Bits16Storage"),
        2,
        logical(DType::U16, "bits16"),
    ),
    row(
        "bits1x8",
        Some("Bits1x8Storage"),
        1,
        logical(DType::U8, "bits1x8"),
    ),
    row(
        "bits2x4",
        Some("Bits2x4Storage"),
        1,
        logical(DType::U8, "bits2x4"),
    ),
    row(
        "bits4x2",
        Some("Bits4x2Storage"),
        1,
        logical(DType::U8, "bits4x2"),
    ),
    row(
        "uint1",
        Some("UInt1Storage"),
        1,
        logical(DType::U8, "uint1"),
    ),
    row(
        "uint2",
        Some("UInt2Storage"),
        1,
        logical(DType::U8, "uint2"),
    ),
    row(
        "uint3",
        Some("UInt3Storage"),
        1,
        logical(DType::U8, "uint3"),
    ),
    row(
        "uint4",
        Some("UInt4Storage"),
        1,
        logical(DType::U8, "uint4"),
    ),
    row(
        "uint5",
        Some("UInt5Storage"),
        1,
        logical(DType::U8, "uint5"),
    ),
    row(
        "uint6",
        Some("UInt6Storage"),
        1,
        logical(DType::U8, "uint6"),
    ),
    row(
        "uint7",
        Some("UInt7Storage"),
        1,
        logical(DType::U8, "uint7"),
    ),
    row("int1", Some("Int1Storage"), 1, logical(DType::U8, "int1")),
    row("int2", Some("Int2Storage"), 1, logical(DType::U8, "int2")),
    row("int3", Some("Int3Storage"), 1, logical(DType::U8, "int3")),
    row("int4", Some("Int4Storage"), 1, logical(DType::U8, "int4")),
    row("int5", Some("Int5Storage"), 1, logical(DType::U8, "int5")),
    row("int6", Some("Int6Storage"), 1, logical(DType::U8, "int6")),
    row("int7", Some("Int7Storage"), 1, logical(DType::U8, "int7")),
];

/// The bytes of a storage without a type.
pub(super) static BYTES: ElementType = row("uint8", None, 1, plain(DType::U8));

impl ElementType {
    /// The type of a name in Python, without `torch.`.
    pub(super) fn from_name(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|element| element.name == name)
    }

    /// The type of a class of storages.
    pub(super) fn from_storage(class: &str) -> Option<&'static Self> {
        TABLE.iter().find(|element| element.storage == Some(class))
    }
}

#[cfg(test)]
mod tests {
    use super::{ElementType, Meaning, TABLE};

    #[test]
    fn an_element_has_the_length_of_its_dtype() {
        for element in TABLE {
            let storage_len = match element.meaning {
                Meaning::Values(dtype, None) => dtype.byte_len(),
                Meaning::Values(dtype, Some(name)) if name.contains("complex") => {
                    2 * dtype.byte_len()
                }
                Meaning::Values(dtype, Some(_)) => dtype.byte_len(),
                Meaning::Quantized { word, .. } => word.byte_len(),
            };
            assert_eq!(storage_len as u64, element.byte_len, "{}", element.name);
        }
    }

    #[test]
    fn every_name_is_unique() {
        for element in TABLE {
            assert_eq!(ElementType::from_name(element.name), Some(element));
            if let Some(class) = element.storage {
                assert_eq!(ElementType::from_storage(class), Some(element));
            }
        }
    }
}
