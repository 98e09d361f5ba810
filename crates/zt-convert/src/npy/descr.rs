//! NumPy's names of dtypes, and what they are here.

use zt::{ByteOrder, DType};

/// A dtype that has a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementType {
    pub(super) dtype: DType,
    pub(super) logical_type: Option<&'static str>,
    /// Bytes of one element.
    pub(super) byte_len: u64,
    pub(super) byte_order: ByteOrder,
}

/// What a descr is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descr {
    Elements(ElementType),
    /// A dtype of NumPy's that is no number of ours: what it is.
    Opaque(&'static str),
    /// No dtype.
    Unknown,
}

/// The letter and the size of a descr, and the elements.
const TABLE: [(&str, DType, Option<&str>); 15] = [
    ("b1", DType::Bool, None),
    ("i1", DType::I8, None),
    ("u1", DType::U8, None),
    ("i2", DType::I16, None),
    ("u2", DType::U16, None),
    ("f2", DType::F16, None),
    ("i4", DType::I32, None),
    ("u4", DType::U32, None),
    ("f4", DType::F32, None),
    ("i8", DType::I64, None),
    ("u8", DType::U64, None),
    ("f8", DType::F64, None),
    ("c8", DType::F32, Some("complex64")),
    ("c16", DType::F64, Some("complex128")),
    VOID_2,
];

/// What ml_dtypes' bfloat16 is saved as, and any other two bytes that NumPy has no name for.
const VOID_2: (&str, DType, Option<&str>) = ("V2", DType::BF16, None);

impl Descr {
    /// The descr that `text` says. Two bytes without a meaning are bf16 where `void2_is_bf16`.
    pub(super) fn parse(text: &str, void2_is_bf16: bool) -> Self {
        let (byte_order, code) = match text.split_at_checked(1) {
            Some((">", code)) => (ByteOrder::Big, code),
            // `=` and nothing are the machine's: that of every reader there is.
            Some(("<" | "|" | "=", code)) => (ByteOrder::Little, code),
            _ => (ByteOrder::Little, text),
        };
        let known = TABLE.iter().find(|(known, ..)| *known == code);
        let Some((_, dtype, logical_type)) = known.filter(|row| void2_is_bf16 || **row != VOID_2)
        else {
            return Self::without_meaning(code);
        };
        Descr::Elements(ElementType {
            dtype: *dtype,
            logical_type: *logical_type,
            byte_len: byte_len(*dtype, *logical_type),
            byte_order,
        })
    }

    fn without_meaning(code: &str) -> Self {
        let Some((letter, rest)) = code.split_at_checked(1) else {
            return Descr::Unknown;
        };
        let is_size = rest.bytes().all(|byte| byte.is_ascii_digit());
        match (letter, rest) {
            ("O", "" | "4" | "8") => Descr::Opaque("Python objects, which are pickled"),
            ("S" | "a", _) if is_size => Descr::Opaque("byte strings"),
            ("U", _) if is_size => Descr::Opaque("strings"),
            ("T", _) if is_size => Descr::Opaque("strings of any length"),
            ("V", "2") => {
                Descr::Opaque("two bytes without a meaning (bf16 where that is asked for)")
            }
            ("V", _) if is_size => Descr::Opaque("bytes without a meaning"),
            ("M", _) if rest.starts_with('8') => Descr::Opaque("points in time"),
            ("m", _) if rest.starts_with('8') => Descr::Opaque("spans of time"),
            ("f", "10" | "12" | "16") => Descr::Opaque("long doubles"),
            ("c", "20" | "24" | "32") => Descr::Opaque("complex long doubles"),
            ("f" | "i" | "u", "1") => Descr::Opaque("elements of an extension of NumPy"),
            _ => Descr::Unknown,
        }
    }
}

/// The descr that little-endian elements have in NumPy; `None` where it has none.
pub(super) fn descr_of(dtype: DType, logical_type: Option<&str>) -> Option<String> {
    let mut rows = TABLE.iter().filter(|row| **row != VOID_2);
    let (code, ..) =
        rows.find(|(_, storage, logical)| (*storage, *logical) == (dtype, logical_type))?;
    let order = if dtype.byte_len() == 1 { '|' } else { '<' };
    Some(format!("{order}{code}"))
}

/// Bytes of one element of a row of the table.
fn byte_len(dtype: DType, logical_type: Option<&str>) -> u64 {
    let parts = if logical_type.is_some() { 2 } else { 1 };
    (dtype.byte_len() as u64).saturating_mul(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_says_how_long_its_elements_are() {
        for (code, dtype, logical_type) in TABLE {
            assert_eq!(byte_len(dtype, logical_type).to_string(), code[1..]);
            let Descr::Elements(elements) = Descr::parse(&format!(">{code}"), true) else {
                panic!("{code}");
            };
            assert_eq!(elements.byte_order, ByteOrder::Big);
            if (code, dtype, logical_type) != VOID_2 {
                let order = if elements.byte_len == 1 { '|' } else { '<' };
                let descr = descr_of(dtype, logical_type);
                assert_eq!(descr, Some(format!("{order}{code}")));
            }
        }
        assert_eq!(descr_of(DType::BF16, None), None);
        assert_eq!(descr_of(DType::U8, Some("f8_e5m2")), None);
    }

    #[test]
    fn what_numpy_knows_is_told_from_what_nobody_knows() {
        let opaque = [
            "|O", "|O8", "|S5", "|a3", "<U7", "|T16", "|V8", "|V2", "<M8[ns]", "<m8", "<f16",
            "<c32", "<f1",
        ];
        for text in opaque {
            assert!(
                matches!(Descr::parse(text, false), Descr::Opaque(_)),
                "{text}"
            );
        }
        for text in [
            "", "<", "f", "<f3", "<x4", "<f-4", "<f04", "float", "<U-1", ">>f4", "<f4 ",
        ] {
            assert_eq!(Descr::parse(text, true), Descr::Unknown, "{text}");
        }
    }
}
