//! The data types of ONNX, and the dtypes of zt for them.

use zt::DType;

/// A data type that zt supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) dtype: DType,
    pub(super) logical_type: Option<&'static str>,
    pub(super) values: Values,
}

/// The number of the field with a tensor's values, if they are not in `raw_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// `float_data`: 4 bytes.
    Float = 4,
    /// `int32_data`: varints, for all types up to 32 bits, and for the bits of short floats.
    Int32 = 5,
    /// `int64_data`: varints.
    Int64 = 7,
    /// `double_data`: 8 bytes.
    Double = 10,
    /// `uint64_data`: varints.
    Uint64 = 11,
}

/// The meaning of a number of `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataType {
    Element(&'static str, Element),
    /// A type of ONNX that is not a number of 8 bits or more.
    Without(&'static str),
    Unknown,
}

type Row = (i64, &'static str, DType, Option<&'static str>, Values);

/// zTensor 1.2 has no logical type `f8_e8m0fnu`. The bytes are kept under that name, as from PyTorch,
/// and have no values.
const TABLE: [Row; 20] = [
    (1, "FLOAT", DType::F32, None, Values::Float),
    (2, "UINT8", DType::U8, None, Values::Int32),
    (3, "INT8", DType::I8, None, Values::Int32),
    (4, "UINT16", DType::U16, None, Values::Int32),
    (5, "INT16", DType::I16, None, Values::Int32),
    (6, "INT32", DType::I32, None, Values::Int32),
    (7, "INT64", DType::I64, None, Values::Int64),
    (9, "BOOL", DType::Bool, None, Values::Int32),
    (10, "FLOAT16", DType::F16, None, Values::Int32),
    (11, "DOUBLE", DType::F64, None, Values::Double),
    (12, "UINT32", DType::U32, None, Values::Uint64),
    (13, "UINT64", DType::U64, None, Values::Uint64),
    (
        14,
        "COMPLEX64",
        DType::F32,
        Some("complex64"),
        Values::Float,
    ),
    (
        15,
        "COMPLEX128",
        DType::F64,
        Some("complex128"),
        Values::Double,
    ),
    (16, "BFLOAT16", DType::BF16, None, Values::Int32),
    (
        17,
        "FLOAT8E4M3FN",
        DType::U8,
        Some("f8_e4m3fn"),
        Values::Int32,
    ),
    (
        18,
        "FLOAT8E4M3FNUZ",
        DType::U8,
        Some("f8_e4m3fnuz"),
        Values::Int32,
    ),
    (19, "FLOAT8E5M2", DType::U8, Some("f8_e5m2"), Values::Int32),
    (
        20,
        "FLOAT8E5M2FNUZ",
        DType::U8,
        Some("f8_e5m2fnuz"),
        Values::Int32,
    ),
    (
        24,
        "FLOAT8E8M0",
        DType::U8,
        Some("f8_e8m0fnu"),
        Values::Int32,
    ),
];

/// Types of ONNX for which zTensor 1.2 has no dtype.
const WITHOUT: [(i64, &str); 8] = [
    (8, "STRING"),
    (21, "UINT4"),
    (22, "INT4"),
    (23, "FLOAT4E2M1"),
    (25, "UINT2"),
    (26, "INT2"),
    (27, "FLOAT6E2M3"),
    (28, "FLOAT6E3M2"),
];

impl DataType {
    /// The type with that number.
    pub(super) fn from_number(number: i64) -> Self {
        let known = TABLE.iter().find(|(id, ..)| *id == number);
        if let Some((_, name, dtype, logical_type, values)) = known {
            let (dtype, logical_type, values) = (*dtype, *logical_type, *values);
            return DataType::Element(
                name,
                Element {
                    dtype,
                    logical_type,
                    values,
                },
            );
        }
        let known = WITHOUT.iter().find(|(id, _)| *id == number);
        known.map_or(DataType::Unknown, |(_, name)| DataType::Without(name))
    }

    /// The name in ONNX.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            DataType::Element(name, _) | DataType::Without(name) => Some(name),
            DataType::Unknown => None,
        }
    }
}

impl Element {
    /// Bytes of one element. A complex number has two values.
    pub(super) fn byte_len(self) -> u64 {
        let parts = if self.is_complex() { 2 } else { 1 };
        self.width().saturating_mul(parts)
    }

    /// Bytes of one stored value.
    pub(super) fn width(self) -> u64 {
        self.dtype.byte_len() as u64
    }

    fn is_complex(self) -> bool {
        matches!(self.values, Values::Float | Values::Double) && self.logical_type.is_some()
    }

    /// The little-endian bytes of a value that is stored as a varint.
    ///
    /// # Errors
    ///
    /// The value, if it is out of range for the element.
    pub(super) fn bytes_of(self, varint: u64) -> Result<[u8; 8], i128> {
        let unused = match self.dtype.byte_len() {
            1 => 56,
            2 => 48,
            4 => 32,
            _ => 0,
        };
        let narrow_signed = |value: i64| (value << unused) >> unused == value;
        let narrow_unsigned = |value: u64| (value << unused) >> unused == value;
        let value = match self.values {
            // Every reader takes the lower 32 bits.
            Values::Int32 => (varint.cast_signed() << 32) >> 32,
            _ => varint.cast_signed(),
        };
        // Writers fill this field from signed or unsigned values: 255 has the bits of the -1 of INT8.
        // The ONNX library takes the lowest bits of any number.
        let is_signed = self.values == Values::Int32 && narrow_signed(value);
        let fits = is_signed || narrow_unsigned(value.cast_unsigned());
        match (fits, self.values) {
            (true, _) => Ok(value.to_le_bytes()),
            (false, Values::Uint64) => Err(varint.into()),
            (false, _) => Err(value.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(number: i64) -> Element {
        match DataType::from_number(number) {
            DataType::Element(_, element) => element,
            other => panic!("{number}: {other:?}"),
        }
    }

    #[test]
    fn every_number_up_to_28_is_known_once() {
        let known = |number: &i64| DataType::from_number(*number) != DataType::Unknown;
        assert!((1..=28).all(|number| known(&number)));
        assert!([-1, 0, 29].iter().all(|number| !known(number)));
        assert_eq!(TABLE.len() + WITHOUT.len(), 28);
    }

    #[test]
    fn values_must_fit_their_elements() {
        /// The number of the type, a varint, and the stored bytes or the value out of range.
        type Case = (i64, u64, Result<&'static [u8], i128>);
        let minus = |value: i64| value.cast_unsigned();
        let cases: [Case; 21] = [
            (2, 255, Ok(&[255])),
            (2, 256, Err(256)),
            (2, minus(-1), Ok(&[255])),
            (2, minus(-129), Err(-129)),
            (3, minus(-128), Ok(&[0x80])),
            (3, 128, Ok(&[0x80])),
            (3, 255, Ok(&[255])),
            (3, 256, Err(256)),
            // Some encoders write 32 bits that are not extended to 64.
            (3, 0xFFFF_FF80, Ok(&[0x80])),
            (5, minus(-32768), Ok(&[0, 0x80])),
            (6, minus(-1), Ok(&[255; 4])),
            (6, 1 << 32, Ok(&[0; 4])),
            (7, minus(i64::MIN), Ok(&[0, 0, 0, 0, 0, 0, 0, 0x80])),
            (9, 1, Ok(&[1])),
            (10, 0xFC00, Ok(&[0, 0xFC])),
            (10, 0x1_0000, Err(0x1_0000)),
            (10, minus(-17408), Ok(&[0, 0xBC])),
            (12, 0xFFFF_FFFF, Ok(&[255; 4])),
            (12, 1 << 32, Err(1 << 32)),
            (12, u64::MAX, Err(u64::MAX.into())),
            (13, u64::MAX, Ok(&[255; 8])),
        ];
        for (number, varint, stored) in cases {
            let element = element(number);
            let bytes = element.bytes_of(varint);
            let width = element.dtype.byte_len();
            let bytes = bytes.as_ref().map(|bytes| bytes.get(..width).unwrap());
            assert_eq!(
                bytes.map_err(|value| *value),
                stored,
                "{number} {varint:#x}"
            );
        }
    }

    #[test]
    fn complex_numbers_have_two_values() {
        assert_eq!((element(14).byte_len(), element(14).width()), (8, 4));
        assert_eq!((element(15).byte_len(), element(15).width()), (16, 8));
        assert_eq!((element(17).byte_len(), element(17).width()), (1, 1));
    }
}
