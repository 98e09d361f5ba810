//! Storage types: how wide an element is, and nothing about what it means.

use std::fmt;

/// Each row: the variant, the bytes of an element, the short name and the long one.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $dtype:ident, $byte_len:literal, $name:literal, $long_name:literal;)*) => {
        /// The storage type of a component's elements: one of a closed set of thirteen. Spec: §7.1.
        ///
        /// It gives the width of an element. A component's logical type can give the bytes another
        /// meaning; logical types are an open set of names, which this crate does not interpret.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum DType {
            $($(#[$doc])* $dtype,)*
        }

        impl DType {
            /// Every storage type, in the specification's order.
            pub const ALL: [DType; 13] = [$(DType::$dtype),*];

            /// Bytes of one element.
            pub const fn byte_len(self) -> usize {
                match self {
                    $(DType::$dtype => $byte_len,)*
                }
            }

            /// The name that manifests of 1.1 and later use, such as `f32`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(DType::$dtype => $name,)*
                }
            }

            /// The name that manifests of 0.1 and 1.0 use, such as `float32`. Spec: 1.0 §4.2.
            pub const fn as_long_str(self) -> &'static str {
                match self {
                    $(DType::$dtype => $long_name,)*
                }
            }
        }
    };
}
dtypes! {
    /// IEEE 754 binary64.
    F64, 8, "f64", "float64";
    /// IEEE 754 binary32.
    F32, 4, "f32", "float32";
    /// IEEE 754 binary16.
    F16, 2, "f16", "float16";
    /// bfloat16: the upper half of a binary32.
    BF16, 2, "bf16", "bfloat16";
    /// Signed, 64 bits, two's complement.
    I64, 8, "i64", "int64";
    /// Signed, 32 bits, two's complement.
    I32, 4, "i32", "int32";
    /// Signed, 16 bits, two's complement.
    I16, 2, "i16", "int16";
    /// Signed, 8 bits, two's complement.
    I8, 1, "i8", "int8";
    /// Unsigned, 64 bits.
    U64, 8, "u64", "uint64";
    /// Unsigned, 32 bits.
    U32, 4, "u32", "uint32";
    /// Unsigned, 16 bits.
    U16, 2, "u16", "uint16";
    /// Unsigned, 8 bits.
    U8, 1, "u8", "uint8";
    /// One byte: 0 is false, 1 is true, anything else is not valid.
    Bool, 1, "bool", "bool";
}

impl DType {
    /// Whether elements are floating-point numbers: f64, f32, f16 or bf16.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// A logical type over elements of this type; `None` if it only repeats the dtype.
    /// Spec: §7.2.
    pub fn logical_type<N: AsRef<str>>(self, name: Option<N>) -> Option<N> {
        name.filter(|name| name.as_ref() != self.as_str())
    }

    /// The type with this name, spelled exactly as by [`DType::as_str`].
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.as_str() == name)
    }

    /// The type with this name, spelled exactly as by [`DType::as_long_str`].
    pub fn from_long_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.as_long_str() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
