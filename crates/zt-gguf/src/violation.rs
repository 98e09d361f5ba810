//! The rules of GGUF, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

/// Why a file is refused. Offsets of data count from the data's first byte, as in the header.
#[derive(Debug)]
pub(super) enum Violation {
    /// The file does not begin with the magic.
    Magic { found: Vec<u8> },
    /// A version that does not exist.
    Version { found: u32 },
    /// The file ends within something.
    Ends {
        what: &'static str,
        needed: u64,
        available: u64,
    },
    /// More things than the bytes that follow can hold.
    Count {
        what: &'static str,
        declared: u64,
        available: u64,
    },
    /// More things than are allowed.
    TooMany {
        what: &'static str,
        declared: u64,
        limit: u64,
    },
    /// A value of no known type.
    ValueType { id: u32 },
    /// An array of arrays.
    Nested,
    /// A bool that is neither 0 nor 1.
    Bool { value: u8 },
    /// A name or a key that is not UTF-8.
    NotUtf8 { what: &'static str },
    /// Two pairs of one key.
    RepeatedKey { key: String },
    /// Two tensors of one name.
    RepeatedName,
    /// A key that means something else in what this file becomes.
    ReservedKey { key: &'static str },
    /// The alignment is no `uint32`, or no power of two.
    Alignment { value: String },
    /// Too many dimensions.
    Rank { found: u32, limit: u32 },
    /// A tensor does not begin where the one before it ends, padding included.
    Misplaced { expected: u64, found: u64 },
    /// A tensor behind one of unknown length begins before it, or off the alignment.
    Unordered { least: u64, found: u64 },
    /// There are no tensors, and there is data.
    Unclaimed { len: u64 },
    /// Offsets that no file could have.
    Overflow,
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::TooMany { .. } => ErrorKind::Limit,
            Violation::ReservedKey { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Version { .. } => "version",
            Violation::ReservedKey { .. } => "unsupported",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Magic { found } => {
                let found = found.escape_ascii();
                write!(f, "the file begins with \"{found}\", not with \"GGUF\"")
            }
            Violation::Version { found } => {
                write!(
                    f,
                    "version {found:#x} in either byte order is not 1, 2 or 3"
                )
            }
            Violation::Ends {
                what,
                needed,
                available,
            } => write!(
                f,
                "{what} takes {needed} bytes, {available} follow: the file was cut short, or lies"
            ),
            Violation::Count {
                what,
                declared,
                available,
            } => write!(
                f,
                "{declared} {what} do not fit the {available} bytes that follow"
            ),
            Violation::TooMany {
                what,
                declared,
                limit,
            } => write!(f, "{declared} {what}, the limit is {limit}"),
            Violation::ValueType { id } => write!(f, "there is no value type {id}"),
            Violation::Nested => f.write_str("an array of arrays"),
            Violation::Bool { value } => write!(f, "a bool is {value}, not 0 or 1"),
            Violation::NotUtf8 { what } => write!(f, "{what} is not UTF-8"),
            Violation::RepeatedKey { key } => {
                write!(f, "the key \"{}\" is there twice", key.escape_debug())
            }
            Violation::RepeatedName => f.write_str("two tensors have this name"),
            Violation::ReservedKey { key } => {
                write!(
                    f,
                    "the key \"{key}\" is where the types of all pairs are kept here"
                )
            }
            Violation::Alignment { value } => {
                write!(
                    f,
                    "general.alignment is {value}, not a power of two as uint32"
                )
            }
            Violation::Rank { found, limit } => {
                write!(f, "{found} dimensions, at most {limit} are allowed")
            }
            Violation::Misplaced { expected, found } => write!(
                f,
                "the data begins at {found}, the tensor before it ends at {expected} with padding"
            ),
            Violation::Unordered { least, found } => write!(
                f,
                "the data begins at {found}, not at a multiple of the alignment from {least} on"
            ),
            Violation::Unclaimed { len } => {
                write!(f, "there are no tensors, and {len} bytes of data")
            }
            Violation::Overflow => f.write_str("the data ends beyond 2^64"),
        }
    }
}
