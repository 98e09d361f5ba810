//! The rules of `.npy` files, and the numbers in a file that breaks one.

use zt::ErrorKind;

/// The most characters of a header: NumPy's `max_header_size`.
pub(super) const LEN_MAX: usize = 10_000;

/// Why an array is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NpyFault {
    #[error("not an array of NumPy: the magic is missing")]
    Magic,
    #[error("truncated: the file ends within its header")]
    Short,
    #[error("version {major}.{minor} of the format is unknown; 1.0 to 3.0 are supported")]
    Version { major: u8, minor: u8 },
    #[error("the header has {characters} characters, NumPy's limit is {LEN_MAX}")]
    TooLong { characters: usize },
    #[error("the header is not UTF-8")]
    NotUtf8,
    #[error("the header is not a dict of plain values; character {at} is invalid")]
    Literal { at: usize },
    #[error("the header is not a dict of descr, fortran_order and shape, once each")]
    Keys,
    #[error("the header's {key} has an invalid type or is out of range")]
    Value { key: &'static str },
    #[error("NumPy has no dtype \"{}\"", .descr.escape_debug())]
    Descr { descr: String },
    #[error("dtype \"{}\" is unsupported: {what}", .descr.escape_debug())]
    Unsupported { descr: String, what: &'static str },
    #[error("the shape requires more than 2^63 bytes")]
    Overflow,
    #[error("truncated: {found} of {expected} bytes of data are there")]
    Cut { expected: u64, found: u64 },
    #[error("the array \"{part}\" of a sparse matrix is missing")]
    Missing { part: &'static str },
    #[error("the array \"{part}\" of a sparse matrix has {what}")]
    PartDtype { part: &'static str, what: &'static str },
    #[error("the array \"{part}\" of a sparse matrix has {found} dimensions, expected {expected}")]
    PartRank { part: &'static str, expected: usize, found: usize },
    #[error("the shape of a sparse matrix is not its rows and columns")]
    Shape,
    #[error("{bytes} bytes after the array are ignored")]
    After { bytes: u64 },
}

impl From<NpyFault> for zt::Error {
    fn from(fault: NpyFault) -> Self {
        let (kind, code) = match fault {
            NpyFault::Unsupported { .. } => (ErrorKind::Unsupported, "dtype"),
            NpyFault::TooLong { .. } => (ErrorKind::Limit, "header"),
            NpyFault::Descr { .. } | NpyFault::PartDtype { .. } => (ErrorKind::Malformed, "dtype"),
            NpyFault::Overflow
            | NpyFault::Cut { .. }
            | NpyFault::PartRank { .. }
            | NpyFault::Shape
            | NpyFault::After { .. } => (ErrorKind::Malformed, "shape-size-mismatch"),
            _ => (ErrorKind::Malformed, "header"),
        };
        zt::Error::new(kind, code, fault)
    }
}
