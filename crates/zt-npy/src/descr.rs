//! NumPy's names of dtypes, and the dtypes of zt for them.
use zt::{ByteOrder, DType};
use zt_foreign::{Meaning, MlDtype};

/// A dtype that zt supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementType {
    /// Values of less than a byte have one each here, and are packed when they are read.
    pub(super) meaning: Meaning,
    /// Bytes of one element.
    pub(super) byte_len: u64,
    pub(super) byte_order: ByteOrder,
}

/// The meaning of a descr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descr {
    Elements(ElementType),
    /// A dtype of NumPy whose elements are no numbers, in words.
    Other(&'static str),
    /// A dtype of NumPy with numbers that zt does not support, in words. Opaque bytes may be numbers of an
    /// extension if they are one or two.
    Unsupported(&'static str),
    /// Not a dtype of NumPy.
    Unknown,
}

/// The letter and the size of a descr, and the elements.
const TABLE: [(&str, DType, Option<&str>); 14] = [
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
];

/// NumPy's other spellings of a code: letters for the types of C, and names, which have no byte
/// order. `long` has 64 bits, as everywhere except on Windows.
const SPELLINGS: [(&str, &str, &[&str]); 23] = [
    ("b1", "?", &["bool", "bool_"]),
    ("i1", "b", &["int8", "byte"]),
    ("u1", "B", &["uint8", "ubyte"]),
    ("i2", "h", &["int16", "short"]),
    ("u2", "H", &["uint16", "ushort"]),
    ("i4", "i", &["int32", "intc"]),
    ("u4", "I", &["uint32", "uintc"]),
    ("i8", "lqpn", &["int64", "int", "int_", "intp", "long", "longlong"]),
    ("u8", "LQPN", &["uint64", "uint", "uintp", "ulong", "ulonglong"]),
    ("f2", "e", &["float16", "half"]),
    ("f4", "f", &["float32", "single"]),
    ("f8", "d", &["float64", "double", "float"]),
    ("c8", "F", &["complex64", "csingle"]),
    ("c16", "D", &["complex128", "cdouble", "complex"]),
    ("f16", "g", &["float128", "longdouble"]),
    ("c32", "G", &["complex256", "clongdouble"]),
    ("O", "", &["object", "object_"]),
    ("U", "", &["str", "str_", "unicode"]),
    ("S", "", &["bytes", "bytes_"]),
    ("V", "", &["void"]),
    ("M8", "", &["datetime64"]),
    ("m8", "", &["timedelta64"]),
    ("S1", "c", &[]),
];

impl Descr {
    /// Parses a descr. Opaque bytes are of the first type of `ml_dtypes` that has as many.
    pub(super) fn parse(text: &str, ml_dtypes: &[MlDtype]) -> Self {
        let mut spellings = SPELLINGS.iter();
        if let Some((code, ..)) = spellings.find(|(.., names)| names.contains(&text)) {
            return Self::of_code(code, ByteOrder::Little, ml_dtypes);
        }
        let (byte_order, code) = match text.split_at_checked(1) {
            Some((">", code)) => (ByteOrder::Big, code),
            // `=` and no sign mean the machine's order, which is little-endian.
            Some(("<" | "|" | "=", code)) => (ByteOrder::Little, code),
            _ => (ByteOrder::Little, text),
        };
        let is_letter = |letters: &str| code.len() == 1 && letters.contains(code);
        let mut spellings = SPELLINGS.iter();
        if let Some((code, ..)) = spellings.find(|(_, letters, _)| is_letter(letters)) {
            return Self::of_code(code, byte_order, ml_dtypes);
        }
        match Code::of(code) {
            Some(Code(letter, Some(size))) => {
                Self::of_code(&format!("{letter}{size}"), byte_order, ml_dtypes)
            }
            _ => Self::of_code(code, byte_order, ml_dtypes),
        }
    }

    fn of_code(code: &str, byte_order: ByteOrder, ml_dtypes: &[MlDtype]) -> Self {
        let known = TABLE.iter().find(|(known, ..)| *known == code);
        let (meaning, byte_len) = match known {
            Some((_, dtype, logical_type)) => {
                (Meaning::Values(*dtype, *logical_type), byte_len(*dtype, *logical_type))
            }
            None => match ml_dtypes.iter().find(|it| is_saved_as(it, code)) {
                Some(ml_dtype) => (ml_dtype.meaning, ml_dtype.saved_len()),
                None => return Self::unsupported(code),
            },
        };
        Descr::Elements(ElementType { meaning, byte_len, byte_order })
    }

    fn unsupported(code: &str) -> Self {
        let is_compound = |c: char| matches!(c, ',' | '(') || c.is_ascii_digit();
        let Some(Code(letter, size)) = Code::of(code) else {
            return match code {
                _ if code.starts_with(['M', 'm']) && code.ends_with(']') => Descr::Other(TIMES),
                _ if code.starts_with("datetime64[") || code.starts_with("timedelta64[") => {
                    Descr::Other(TIMES)
                }
                _ if code.starts_with(is_compound) || code.contains(',') => Descr::Other(RECORDS),
                _ => Descr::Unknown,
            };
        };
        match (letter, size) {
            ('O', None | Some(4 | 8)) => Descr::Other(OBJECTS),
            ('S' | 'a', _) => Descr::Other("byte strings"),
            ('U', _) => Descr::Other("strings"),
            ('T', _) => Descr::Other("strings of any length"),
            ('V' | 'f', Some(1)) => Descr::Unsupported(
                "a byte of an unknown type; --ml-dtype TYPE names one of ml_dtypes, such as float8_e4m3fn or int4",
            ),
            ('V', Some(2)) => Descr::Unsupported(
                "two bytes of an unknown type; --ml-dtype bfloat16 reads them as bf16",
            ),
            ('V', _) => Descr::Other("opaque bytes"),
            ('M' | 'm', None | Some(8)) => Descr::Other(TIMES),
            ('f', Some(10 | 12 | 16)) => Descr::Unsupported("long doubles"),
            ('c', Some(20 | 24 | 32)) => Descr::Unsupported("complex long doubles"),
            _ => Descr::Unknown,
        }
    }
}

/// Elements with several fields, or elements that are arrays themselves.
pub(super) const RECORDS: &str = "records, or arrays as elements";
pub(super) const OBJECTS: &str = "pickled Python objects";
const TIMES: &str = "dates or time spans";

/// Whether NumPy saves elements of this type with this code.
fn is_saved_as(ml_dtype: &MlDtype, code: &str) -> bool {
    match ml_dtype.saved_len() {
        1 => matches!(code, "V1" | "f1"),
        _ => code == "V2",
    }
}

/// A letter and a size, parsed as by C's `strtoul`, which NumPy uses.
struct Code(char, Option<u32>);

impl Code {
    fn of(text: &str) -> Option<Self> {
        let mut rest = text.chars();
        let letter = rest.next().filter(char::is_ascii_alphabetic)?;
        let size = match rest.as_str() {
            "" => None,
            size => Some(size.trim_start().parse().ok()?),
        };
        Some(Code(letter, size))
    }
}

/// NumPy's descr for little-endian elements; `None` if NumPy has no such dtype.
pub(super) fn descr_of(dtype: DType, logical_type: Option<&str>) -> Option<String> {
    let mut rows = TABLE.iter();
    let (code, ..) =
        rows.find(|(_, storage, logical)| (*storage, *logical) == (dtype, logical_type))?;
    let order = if dtype.byte_len() == 1 { '|' } else { '<' };
    Some(format!("{order}{code}"))
}

/// Bytes of one element. Every logical type of the table is complex.
pub(super) fn byte_len(dtype: DType, logical_type: Option<&str>) -> u64 {
    let parts = if logical_type.is_some() { 2 } else { 1 };
    (dtype.byte_len() as u64).strict_mul(parts)
}
