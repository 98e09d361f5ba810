//! The rules of `.npy` files, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

/// Why an array is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The file, or the member of an archive, begins otherwise.
    Magic,
    /// The bytes end before the header does.
    Short,
    /// A version of the format that there is not.
    Version { major: u8, minor: u8 },
    /// The header is above the limit, which is NumPy's.
    TooLong { characters: usize },
    /// A header of version 3.0 that is not UTF-8.
    NotUtf8,
    /// Text that is no literal of Python, from this character of the header on.
    Literal { at: usize },
    /// Another value than a dict of `descr`, `fortran_order` and `shape`.
    Keys,
    /// A value that its key cannot have.
    Value { key: &'static str },
    /// A dtype that there is not.
    Descr { descr: String },
    /// A dtype of NumPy's that is no number.
    Opaque { descr: String, what: &'static str },
    /// The shape demands more bytes than can be counted.
    Overflow,
    /// The elements are not all there.
    Cut { expected: u64, found: u64 },
    /// Something lies behind the elements.
    Behind { bytes: u64 },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::Opaque { .. } => ErrorKind::Unsupported,
            Violation::TooLong { .. } => ErrorKind::Limit,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Opaque { .. } | Violation::Descr { .. } => "dtype",
            Violation::Overflow | Violation::Cut { .. } | Violation::Behind { .. } => {
                "shape-size-mismatch"
            }
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Magic => f.write_str("not an array of NumPy: it does not begin like one"),
            Violation::Short => f.write_str("the bytes end before the header does"),
            Violation::Version { major, minor } => {
                write!(
                    f,
                    "version {major}.{minor} of the format, and there are 1.0 to 3.0"
                )
            }
            Violation::TooLong { characters } => write!(
                f,
                "a header of {characters} characters, the limit is {}",
                super::header::LEN_MAX
            ),
            Violation::NotUtf8 => f.write_str("the header is not UTF-8"),
            Violation::Literal { at } => {
                write!(
                    f,
                    "the header is no dict of plain values from its character {at} on"
                )
            }
            Violation::Keys => {
                f.write_str("the header is no dict of descr, fortran_order and shape, once each")
            }
            Violation::Value { key } => write!(f, "the header's {key} is of another type or range"),
            Violation::Descr { descr } => {
                write!(f, "NumPy has no dtype \"{}\"", descr.escape_debug())
            }
            Violation::Opaque { descr, what } => {
                write!(
                    f,
                    "elements of \"{}\" are {what}: no tensor",
                    descr.escape_debug()
                )
            }
            Violation::Overflow => f.write_str("the shape demands more than 2^63 bytes"),
            Violation::Cut { expected, found } => {
                write!(
                    f,
                    "the shape demands {expected} bytes, {found} follow the header"
                )
            }
            Violation::Behind { bytes } => {
                write!(f, "{bytes} bytes behind the array are not read")
            }
        }
    }
}
