//! The data types of ONNX, and the dtypes of zt for them.

use zt::DType;
use zt::formats::PackedType;
use zt_foreign::Meaning::{self, Packed};

use crate::fault::OnnxFault;

/// A data type that zt supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    /// The name in ONNX.
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
}

/// The field with a tensor's values, if they are not in `raw_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// `float_data`: 4 bytes.
    Float,
    /// `int32_data`: varints, for all types up to 32 bits, and for the bits of short floats.
    Int32,
    /// `int64_data`: varints.
    Int64,
    /// `double_data`: 8 bytes.
    Double,
    /// `uint64_data`: varints.
    Uint64,
}

/// By number of `TensorProto.DataType`.
const TABLE: [(i64, &str, Meaning); 27] = [
    (1, "FLOAT", plain(DType::F32)),
    (2, "UINT8", plain(DType::U8)),
    (3, "INT8", plain(DType::I8)),
    (4, "UINT16", plain(DType::U16)),
    (5, "INT16", plain(DType::I16)),
    (6, "INT32", plain(DType::I32)),
    (7, "INT64", plain(DType::I64)),
    (9, "BOOL", plain(DType::Bool)),
    (10, "FLOAT16", plain(DType::F16)),
    (11, "DOUBLE", plain(DType::F64)),
    (12, "UINT32", plain(DType::U32)),
    (13, "UINT64", plain(DType::U64)),
    (14, "COMPLEX64", logical(DType::F32, "complex64")),
    (15, "COMPLEX128", logical(DType::F64, "complex128")),
    (16, "BFLOAT16", plain(DType::BF16)),
    (17, "FLOAT8E4M3FN", logical(DType::U8, "f8_e4m3fn")),
    (18, "FLOAT8E4M3FNUZ", logical(DType::U8, "f8_e4m3fnuz")),
    (19, "FLOAT8E5M2", logical(DType::U8, "f8_e5m2")),
    (20, "FLOAT8E5M2FNUZ", logical(DType::U8, "f8_e5m2fnuz")),
    (21, "UINT4", Packed(PackedType::U4)),
    (22, "INT4", Packed(PackedType::I4)),
    (23, "FLOAT4E2M1", Packed(PackedType::F4E2M1Fn)),
    (24, "FLOAT8E8M0", logical(DType::U8, "f8_e8m0fnu")),
    (25, "UINT2", Packed(PackedType::U2)),
    (26, "INT2", Packed(PackedType::I2)),
    (27, "FLOAT6E2M3", Packed(PackedType::F6E2M3Fn)),
    (28, "FLOAT6E3M2", Packed(PackedType::F6E3M2Fn)),
];

/// The type of texts.
pub(super) const STRING: i64 = 8;

const fn plain(dtype: DType) -> Meaning {
    Meaning::Values(dtype, None)
}

const fn logical(dtype: DType, logical_type: &'static str) -> Meaning {
    Meaning::Values(dtype, Some(logical_type))
}

/// Types of ONNX that are no numbers.
const WITHOUT: [(i64, &str); 1] = [(STRING, "STRING")];

/// The name of the data type with that number; `None` if ONNX has none.
pub(super) fn name_of(number: i64) -> Option<&'static str> {
    match Element::from_number(number) {
        Ok(Element { name, .. }) | Err(OnnxFault::Without { name }) => Some(name),
        Err(_) => None,
    }
}

impl Element {
    pub(super) fn from_number(number: i64) -> Result<Self, OnnxFault> {
        if let Some((_, name, meaning)) = TABLE.iter().find(|row| row.0 == number) {
            let meaning = *meaning;
            return Ok(Element { name, meaning });
        }
        let without = WITHOUT.iter().find(|(id, _)| *id == number);
        Err(match without {
            Some((_, name)) => OnnxFault::Without { name },
            None => OnnxFault::DataType { number },
        })
    }

    /// The field with values of this type.
    pub(super) const fn values(self) -> Values {
        match self.meaning.dtype() {
            DType::F32 => Values::Float,
            DType::F64 => Values::Double,
            DType::I64 => Values::Int64,
            DType::U32 | DType::U64 => Values::Uint64,
            _ => Values::Int32,
        }
    }

    /// Bytes of one stored value. A complex number has two values.
    pub(super) fn width(self) -> u64 {
        self.meaning.dtype().byte_len() as u64
    }

    /// The type of values that have a byte each where they are stored as varints. A byte of any other
    /// type is packed there as in `raw_data`.
    pub(super) fn packed_from_bytes(self) -> Option<PackedType> {
        match self.meaning {
            Packed(packed) if packed.bits() == 6 => Some(packed),
            _ => None,
        }
    }

    /// The little-endian bytes of a value that is stored as a varint. The error is the value, if it
    /// is out of range for the element.
    #[expect(clippy::arithmetic_side_effects, reason = "an element has at most 8 bytes")]
    pub(super) fn bytes_of(self, varint: u64) -> Result<[u8; 8], i128> {
        let unused = 64 - 8 * self.meaning.dtype().byte_len();
        let narrow_signed = |value: i64| (value << unused) >> unused == value;
        let narrow_unsigned = |value: u64| (value << unused) >> unused == value;
        let value = match self.values() {
            // Every reader takes the lower 32 bits.
            Values::Int32 => (varint.cast_signed() << 32) >> 32,
            _ => varint.cast_signed(),
        };
        // Writers fill this field from signed or unsigned values: 255 has the bits of the -1 of INT8.
        // The ONNX library takes the lowest bits of any number.
        let is_signed = self.values() == Values::Int32 && narrow_signed(value);
        let fits = is_signed || narrow_unsigned(value.cast_unsigned());
        match (fits, self.values()) {
            (true, _) => Ok(value.to_le_bytes()),
            (false, Values::Uint64) => Err(varint.into()),
            (false, _) => Err(value.into()),
        }
    }
}
