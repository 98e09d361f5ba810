//! The rules of safetensors, and the numbers in a file that breaks one.

use zt::ErrorKind;
use zt_foreign::json::JsonFault;

use crate::dtype::Dtype;

/// Why a file is refused. Offsets of data count from the data's first byte, as in the header.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each is")]
pub enum SafetensorsViolation {
    #[error("truncated: the file has {byte_len} bytes, and the length of its header takes 8")]
    TooShort { byte_len: u64 },
    #[error("the header declares {declared} bytes, the limit is {limit}")]
    HeaderTooLong { declared: u64, limit: u64 },
    #[error("truncated: {available} of {declared} bytes of the header are there")]
    HeaderPastEnd { declared: u64, available: u64 },
    #[error("the header is empty")]
    NoHeader,
    #[error("the header begins with '{}', not with '{{'", .found.escape_ascii())]
    Start { found: u8 },
    #[error("the header ends with '{}'; only spaces may follow its '}}'", .found.escape_ascii())]
    Padding { found: u8 },
    #[error("the header is not UTF-8")]
    NotUtf8,
    #[error("{}", .0.message())]
    Json(JsonFault),
    #[error("duplicate name")]
    RepeatedName,
    #[error("duplicate metadata key {key:?}")]
    RepeatedKey { key: String },
    #[error("the data ends at {end}, before its start at {start}")]
    Backwards { start: u64, end: u64 },
    #[error("the size of the {dtype} elements overflows 2^64 bits")]
    Overflow { dtype: Dtype },
    #[error("the {dtype} elements do not fill their last byte")]
    PartialByte { dtype: Dtype },
    #[error("dtype and shape require {expected} bytes, the offsets span {found}")]
    Size { expected: u64, found: u64 },
    #[error("the data begins at {found}, the previous tensor ends at {expected}")]
    Misplaced { expected: u64, found: u64 },
    #[error("truncated: {data} of {tensors} bytes of data are there")]
    Cut { tensors: u64, data: u64 },
    #[error("the tensors end at {tensors}, the file has {data} bytes of data")]
    End { tensors: u64, data: u64 },
}

impl From<SafetensorsViolation> for zt::Error {
    fn from(violation: SafetensorsViolation) -> Self {
        let code = match violation {
            SafetensorsViolation::TooShort { .. }
            | SafetensorsViolation::HeaderPastEnd { .. }
            | SafetensorsViolation::Cut { .. } => "truncated",
            _ => "header",
        };
        zt::Error::new(ErrorKind::Malformed, code, violation)
    }
}
