//! The types that values are cast to.

use std::fmt;

use zt_manifest::{DType, Text};

/// A floating-point type that [`Elements::cast`](crate::Elements::cast) casts values to.
///
/// ```
/// use zt_formats::{DType, FloatType};
///
/// let fp8 = FloatType::from_name("f8_e4m3fn").unwrap();
/// assert_eq!((fp8.dtype(), fp8.logical_type()), (DType::U8, Some("f8_e4m3fn")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FloatType {
    /// 64 bits.
    F64,
    /// 32 bits.
    F32,
    /// 16 bits, of IEEE 754.
    F16,
    /// The upper half of an f32.
    BF16,
    /// [`F8E4M3Fn`](crate::F8E4M3Fn), which has no infinities. A cast saturates.
    F8E4M3Fn,
    /// [`F8E5M2`](crate::F8E5M2).
    F8E5M2,
}

impl FloatType {
    /// All types, the widest first.
    pub const ALL: [Self; 6] =
        [Self::F64, Self::F32, Self::F16, Self::BF16, Self::F8E4M3Fn, Self::F8E5M2];

    /// The type with this name, such as `bf16` or `f8_e4m3fn`. For a name of a file, which has one spelling.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|float| float.as_str() == name)
    }

    /// The type that a user means: its name, or one of its [other names](Self::other_names), in upper or lower case.
    pub fn from_typed(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Self::ALL.into_iter().find(|it| it.as_str() == name || it.other_names().contains(&&*name))
    }

    /// What NumPy, torch, ml_dtypes, safetensors and users call it.
    ///
    /// ```
    /// use zt_formats::FloatType;
    ///
    /// assert_eq!(FloatType::from_typed("torch.bfloat16"), Some(FloatType::BF16));
    /// assert_eq!(FloatType::from_typed("F8_E4M3"), Some(FloatType::F8E4M3Fn));
    /// ```
    pub const fn other_names(self) -> &'static [&'static str] {
        match self {
            Self::F64 => &["float64", "double", "fp64", "torch.float64"],
            Self::F32 => &["float32", "float", "single", "fp32", "torch.float32"],
            Self::F16 => &["float16", "half", "fp16", "torch.float16"],
            Self::BF16 => &["bfloat16", "bfloat", "torch.bfloat16"],
            Self::F8E4M3Fn => &[
                "float8_e4m3fn",
                "f8_e4m3",
                "fp8_e4m3",
                "fp8_e4m3fn",
                "float8_e4m3",
                "e4m3",
                "e4m3fn",
                "torch.float8_e4m3fn",
            ],
            Self::F8E5M2 => &["float8_e5m2", "fp8_e5m2", "e5m2", "torch.float8_e5m2"],
        }
    }

    /// The type whose values are of a dtype without a logical type.
    pub fn of_dtype(dtype: DType) -> Option<Self> {
        Self::from_name(dtype.as_str())
    }

    /// Its name: the logical type if there is one, else the dtype.
    pub const fn as_str(self) -> &'static str {
        match self.logical_type() {
            Some(name) => name,
            None => self.dtype().as_str(),
        }
    }

    /// How its values are stored. Spec: §7.1.
    pub const fn dtype(self) -> DType {
        match self {
            Self::F64 => DType::F64,
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::BF16 => DType::BF16,
            Self::F8E4M3Fn | Self::F8E5M2 => DType::U8,
        }
    }

    /// The logical type of FP8. Spec: §7.2.
    pub const fn logical_type(self) -> Option<&'static str> {
        match self {
            Self::F8E4M3Fn => Some("f8_e4m3fn"),
            Self::F8E5M2 => Some("f8_e5m2"),
            _ => None,
        }
    }

    /// The dtype and the logical type, as formats have them.
    pub fn value_type(self) -> (DType, Option<Text>) {
        (self.dtype(), self.logical_type().map(Text::Borrowed))
    }
}

impl fmt::Display for FloatType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
