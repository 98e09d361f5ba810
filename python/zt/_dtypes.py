"""The types of elements, by the names that files and libraries have for them."""

from __future__ import annotations

# In `.zt` files, in safetensors files, and in NumPy, `ml_dtypes` and torch; bytes of an element.
_TABLE: tuple[tuple[str | None, str, str, int], ...] = (
    ("f64", "F64", "float64", 8),
    ("f32", "F32", "float32", 4),
    ("f16", "F16", "float16", 2),
    ("bf16", "BF16", "bfloat16", 2),
    ("i64", "I64", "int64", 8),
    ("i32", "I32", "int32", 4),
    ("i16", "I16", "int16", 2),
    ("i8", "I8", "int8", 1),
    ("u64", "U64", "uint64", 8),
    ("u32", "U32", "uint32", 4),
    ("u16", "U16", "uint16", 2),
    ("u8", "U8", "uint8", 1),
    ("bool", "BOOL", "bool", 1),
    ("f8_e4m3fn", "F8_E4M3", "float8_e4m3fn", 1),
    ("f8_e4m3fnuz", "F8_E4M3FNUZ", "float8_e4m3fnuz", 1),
    ("f8_e5m2", "F8_E5M2", "float8_e5m2", 1),
    ("f8_e5m2fnuz", "F8_E5M2FNUZ", "float8_e5m2fnuz", 1),
    ("f8_e8m0fnu", "F8_E8M0", "float8_e8m0fnu", 1),
    # Two values in a byte.
    (None, "F4", "float4_e2m1fn_x2", 1),
    ("complex64", "C64", "complex64", 8),
    # safetensors files have no such type: other files have it.
    ("complex128", "C128", "complex128", 16),
)

#: The names in libraries, by the names in `.zt` files.
OF_ZT: dict[str, str] = {zt: name for zt, _, name, _ in _TABLE if zt is not None}

#: The names in libraries, by the names in safetensors files.
OF_SAFETENSORS: dict[str, str] = {official: name for _, official, name, _ in _TABLE}

#: The names in safetensors files, by the names in `.zt` files.
TO_SAFETENSORS: dict[str, str] = {
    zt: official for zt, official, _, _ in _TABLE if zt is not None and official != "C128"
}

#: The bytes of an element, by the names in safetensors files.
NBYTES: dict[str, int] = {official: nbytes for _, official, _, nbytes in _TABLE}
