//! Storage types: how wide an element is, and nothing about what it means.

use std::fmt;

/// The storage type of a component's elements: one of a closed set of thirteen. Spec: §7.1.
///
/// It gives the width of an element. A component's logical type can give the bytes another meaning;
/// logical types are an open set of names, which this crate does not interpret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// Signed, 64 bits, two's complement.
    I64,
    /// Signed, 32 bits, two's complement.
    I32,
    /// Signed, 16 bits, two's complement.
    I16,
    /// Signed, 8 bits, two's complement.
    I8,
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 8 bits.
    U8,
    /// One byte: 0 is false, 1 is true, anything else is not valid.
    Bool,
}

impl DType {
    /// Every storage type, in the specification's order.
    pub const ALL: [DType; 13] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes of one element.
    #[must_use]
    pub const fn byte_len(self) -> usize {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// The name that manifests of 1.1 and later use, such as `f32`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U64 => "u64",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// The name that manifests of 0.1 and 1.0 use, such as `float32`. Spec: 1.0 §4.2.
    #[must_use]
    pub const fn as_long_str(self) -> &'static str {
        match self {
            DType::F64 => "float64",
            DType::F32 => "float32",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::I64 => "int64",
            DType::I32 => "int32",
            DType::I16 => "int16",
            DType::I8 => "int8",
            DType::U64 => "uint64",
            DType::U32 => "uint32",
            DType::U16 => "uint16",
            DType::U8 => "uint8",
            DType::Bool => "bool",
        }
    }

    /// Whether elements are floating-point numbers: f64, f32, f16 or bf16.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// A logical type over elements of this type; `None` if it only repeats the dtype.
    /// Spec: §7.2.
    #[must_use]
    pub fn logical_type<N: AsRef<str>>(self, name: Option<N>) -> Option<N> {
        name.filter(|name| name.as_ref() != self.as_str())
    }

    /// The type with this name, spelled exactly as by [`DType::as_str`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.as_str() == name)
    }

    /// The type with this name, spelled exactly as by [`DType::as_long_str`].
    #[must_use]
    pub fn from_long_name(name: &str) -> Option<DType> {
        DType::ALL
            .into_iter()
            .find(|dtype| dtype.as_long_str() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
