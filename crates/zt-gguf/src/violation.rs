//! The rules of GGUF, and the numbers in a file that breaks one.

use zt::ErrorKind;
use zt_foreign::Fault;

/// Why a file is refused. Offsets of data count from the data's first byte, as in the header.
#[derive(Debug, thiserror::Error)]
pub(super) enum Violation {
    #[error("the file begins with \"{}\", not with \"GGUF\"", .found.escape_ascii())]
    Magic { found: Vec<u8> },
    #[error("version {found:#x} is not 1, 2 or 3 in either byte order")]
    Version { found: u32 },
    #[error("truncated: {available} of {needed} bytes of {what} are there")]
    Ends { what: &'static str, needed: u64, available: u64 },
    #[error(
        "truncated or invalid: {declared} {what} take more than the {available} bytes that follow"
    )]
    Count { what: &'static str, declared: u64, available: u64 },
    #[error("{declared} {what}, the limit is {limit}")]
    TooMany { what: &'static str, declared: u64, limit: u64 },
    #[error("unknown value type {id}")]
    ValueType { id: u32 },
    #[error("an array of arrays is invalid")]
    Nested,
    #[error("a bool is {value}, not 0 or 1")]
    Bool { value: u8 },
    #[error("{what} is not UTF-8")]
    NotUtf8 { what: &'static str },
    #[error("duplicate key \"{}\"", .key.escape_debug())]
    RepeatedKey { key: String },
    #[error("duplicate name")]
    RepeatedName,
    #[error("the key \"{key}\" is reserved for the types of all pairs")]
    ReservedKey { key: &'static str },
    #[error("general.alignment is {value}, not a power of two as uint32")]
    Alignment { value: String },
    #[error("{found} dimensions, the limit is {limit}")]
    Rank { found: u32, limit: u32 },
    #[error(
        "comfy.gguf.orig_shape is no shape with as many elements as the stored {}",
        written(stored)
    )]
    OriginalShape { stored: Vec<u64> },
    #[error(
        "comfy.gguf.orig_shape is {}, whose rows are no whole blocks; the shape is the stored {}",
        written(shape),
        written(stored)
    )]
    OriginalRows { shape: Vec<u64>, stored: Vec<u64> },
    #[error("the data begins at {found}, the previous tensor ends at {expected} with padding")]
    Misplaced { expected: u64, found: u64 },
    /// The length of the tensor before is unknown.
    #[error("the data begins at {found}, not at a multiple of the alignment from {least} on")]
    Unordered { least: u64, found: u64 },
    #[error("{len} bytes of data, but no tensors")]
    Unclaimed { len: u64 },
    #[error("the set has {found} tensors, split.tensors.count is {expected}")]
    SetTensors { expected: u64, found: u64 },
    #[error("{name:?} is missing, one of {count} files of this set: put it beside this one")]
    NoPart { name: String, count: u64 },
    #[error("the part {name:?} {what}")]
    PartPlace { name: String, what: Fault },
    #[error("{name:?} is no part of this set, by split.no and split.count")]
    OtherSet { name: String },
    #[error("the part {name:?} is not opened: {why}")]
    PartPath { name: String, why: &'static str },
    #[error("the data ends beyond 2^64")]
    Overflow,
}

/// A shape as listings show it.
fn written(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

impl From<Violation> for zt::Error {
    fn from(violation: Violation) -> Self {
        let (kind, code) = match violation {
            Violation::TooMany { .. } => (ErrorKind::Limit, "header"),
            Violation::ReservedKey { .. } => (ErrorKind::Unsupported, "unsupported"),
            Violation::Ends { .. } => (ErrorKind::Malformed, "truncated"),
            Violation::NoPart { .. } | Violation::PartPlace { .. } | Violation::PartPath { .. } => {
                (ErrorKind::Malformed, "path")
            }
            Violation::Version { .. } => (ErrorKind::Malformed, "version"),
            _ => (ErrorKind::Malformed, "header"),
        };
        zt::Error::new(kind, code, violation)
    }
}
