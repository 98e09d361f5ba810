//! The types of elements, by their names in files and in frameworks.

use zt::DType;
use zt_safetensors::Dtype;

/// A type of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    /// One that safetensors files have.
    Of(Dtype),
    /// One that only other kinds of files have.
    Complex128,
}

/// The names in PyTorch, NumPy and `ml_dtypes`. F6 has none.
static NAMES: [(Dtype, &str); 20] = [
    (Dtype::Bool, "bool"),
    (Dtype::I8, "int8"),
    (Dtype::U8, "uint8"),
    (Dtype::I16, "int16"),
    (Dtype::U16, "uint16"),
    (Dtype::I32, "int32"),
    (Dtype::U32, "uint32"),
    (Dtype::I64, "int64"),
    (Dtype::U64, "uint64"),
    (Dtype::F16, "float16"),
    (Dtype::F32, "float32"),
    (Dtype::F64, "float64"),
    (Dtype::BF16, "bfloat16"),
    (Dtype::F8E4M3, "float8_e4m3fn"),
    (Dtype::F8E4M3FnUz, "float8_e4m3fnuz"),
    (Dtype::F8E5M2, "float8_e5m2"),
    (Dtype::F8E5M2FnUz, "float8_e5m2fnuz"),
    (Dtype::F8E8M0, "float8_e8m0fnu"),
    (Dtype::F4, "float4_e2m1fn_x2"),
    (Dtype::C64, "complex64"),
];

/// The types that can be written, for a message.
pub(crate) fn known() -> String {
    NAMES.map(|(_, name)| name).join(", ")
}

/// The type of this name in frameworks.
pub(crate) fn from_framework(name: &str) -> Option<Dtype> {
    let row = NAMES.iter().find(|(_, known)| *known == name);
    row.map(|(dtype, _)| *dtype)
}

impl Element {
    /// The type of dense values of a file.
    pub(crate) fn from_types(dtype: DType, logical_type: Option<&str>) -> Option<Self> {
        let logical_type = dtype.logical_type(logical_type);
        if (dtype, logical_type) == (DType::F64, Some("complex128")) {
            return Some(Element::Complex128);
        }
        Dtype::from_types(dtype, logical_type).map(Element::Of)
    }

    /// Its name in files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Element::Of(dtype) => dtype.as_str(),
            Element::Complex128 => "C128",
        }
    }

    /// Its name in frameworks.
    pub(crate) fn in_framework(self) -> Option<&'static str> {
        match self {
            Element::Of(dtype) => {
                let row = NAMES.iter().find(|(known, _)| *known == dtype);
                row.map(|(_, name)| *name)
            }
            Element::Complex128 => Some("complex128"),
        }
    }
}
