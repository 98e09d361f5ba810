//! The rules of safetensors, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::{is_an_error, json::JsonFault};

use crate::dtype::Dtype;

/// Why a file is refused. Offsets of data count from the data's first byte, as
/// in the header.
#[derive(Debug)]
pub(super) enum Violation {
    /// No room for the header's length.
    TooShort { byte_len: u64 },
    /// The header is above the limit.
    HeaderTooLong { declared: u64, limit: u64 },
    /// The header ends after the file.
    HeaderPastEnd { declared: u64, available: u64 },
    /// The header is empty.
    NoHeader,
    /// The header does not begin with `{`.
    Start { found: u8 },
    /// Something other than spaces after the `}`.
    Padding { found: u8 },
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// JSON that is not well-formed, or not of this schema.
    Json(JsonFault),
    /// Two tensors of one name.
    RepeatedName,
    /// Two metadata of one key.
    RepeatedKey { key: String },
    /// A tensor ends before it begins.
    Backwards { start: u64, end: u64 },
    /// The shape demands more than 2^64 bits.
    Overflow { dtype: Dtype },
    /// The elements do not fill their last byte.
    PartialByte { dtype: Dtype },
    /// Offsets and shape disagree.
    Size { expected: u64, found: u64 },
    /// Bytes that belong to nobody before a tensor, or to two.
    Misplaced { expected: u64, found: u64 },
    /// The last tensor does not end where the file does.
    End { tensors: u64, data: u64 },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }

    fn code(&self) -> &'static str {
        "header"
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::TooShort { byte_len } => {
                write!(
                    f,
                    "the file ends after {byte_len} bytes, before the header's length"
                )
            }
            Violation::HeaderTooLong { declared, limit } => {
                write!(
                    f,
                    "the header is said to be {declared} bytes long, the limit is {limit}"
                )
            }
            Violation::HeaderPastEnd {
                declared,
                available,
            } => write!(
                f,
                "the header is said to be {declared} bytes long, {available} follow: the file \
                 was cut short"
            ),
            Violation::NoHeader => f.write_str("the header is empty"),
            Violation::Start { found } => {
                let found = found.escape_ascii();
                write!(f, "the header begins with '{found}', not with '{{'")
            }
            Violation::Padding { found } => {
                let found = found.escape_ascii();
                write!(
                    f,
                    "the header ends with '{found}': only spaces may follow its '}}'"
                )
            }
            Violation::NotUtf8 => f.write_str("the header is not UTF-8"),
            Violation::Json(fault) => f.write_str(&fault.message()),
            Violation::RepeatedName => f.write_str("two tensors have this name"),
            Violation::RepeatedKey { key } => write!(f, "the metadata {key:?} is there twice"),
            Violation::Backwards { start, end } => {
                write!(
                    f,
                    "the data begins at {start} and ends at {end}, before it begins"
                )
            }
            Violation::Overflow { dtype } => {
                write!(f, "so many elements of {dtype} pass 2^64 bits")
            }
            Violation::PartialByte { dtype } => {
                write!(f, "elements of {dtype} end within a byte")
            }
            Violation::Size { expected, found } => {
                write!(
                    f,
                    "dtype and shape demand {expected} bytes, the offsets hold {found}"
                )
            }
            Violation::Misplaced { expected, found } if found < expected => {
                write!(
                    f,
                    "the data begins at {found}, within a tensor that ends at {expected}"
                )
            }
            Violation::Misplaced { expected, found } => {
                write!(
                    f,
                    "the data begins at {found}, the tensor before it ends at {expected}"
                )
            }
            Violation::End { tensors, data } => {
                write!(
                    f,
                    "the tensors end at {tensors}, the file has {data} bytes of data"
                )
            }
        }
    }
}
