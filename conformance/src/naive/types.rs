//! Storage types and logical types (§7).

/// The bytes of an element; `None` for what is no dtype.
pub(super) fn width(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "f64" | "i64" | "u64" => 8,
        "f32" | "i32" | "u32" => 4,
        "f16" | "bf16" | "i16" | "u16" => 2,
        "i8" | "u8" | "bool" => 1,
        _ => return None,
    })
}

/// How the dtype of a long spelling is spelled from 1.1 on.
pub(super) fn of_long(name: &str) -> Option<&'static str> {
    Some(match name {
        "float64" => "f64",
        "float32" => "f32",
        "float16" => "f16",
        "bfloat16" => "bf16",
        "int64" => "i64",
        "int32" => "i32",
        "int16" => "i16",
        "int8" => "i8",
        "uint64" => "u64",
        "uint32" => "u32",
        "uint16" => "u16",
        "uint8" => "u8",
        "bool" => "bool",
        _ => return None,
    })
}

/// The dtype that a logical type lies over and its elements per value; `None` for one that is not
/// known.
pub(super) fn logical(name: &str) -> Option<(&'static str, u64)> {
    Some(match name {
        "f8_e4m3fn" | "f8_e5m2" | "f8_e4m3fnuz" | "f8_e5m2fnuz" => ("u8", 1),
        "f8_e8m0fnu" => ("u8", 1),
        "complex32" => ("f16", 2),
        "bcomplex32" => ("bf16", 2),
        "complex64" => ("f32", 2),
        "complex128" => ("f64", 2),
        _ => return None,
    })
}

pub(super) fn is_fp8(name: &str) -> bool {
    name.starts_with("f8_") && logical(name).is_some()
}

pub(super) fn is_integer(dtype: &str) -> bool {
    dtype.starts_with(['i', 'u']) && width(dtype).is_some()
}

pub(super) fn is_float(dtype: &str) -> bool {
    matches!(dtype, "f64" | "f32" | "f16" | "bf16")
}
