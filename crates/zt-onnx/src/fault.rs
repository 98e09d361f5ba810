//! The rules of ONNX files, and the numbers in a file that breaks one.

use zt::ErrorKind;

/// Why a model or one of its tensors is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OnnxFault {
    #[error("truncated: a message ends within a field")]
    Ends,
    #[error("a varint has more than ten bytes")]
    Varint,
    #[error("the varint {key} is not a valid tag of a field")]
    Tag { key: u64 },
    #[error("truncated: {available} of {byte_len} bytes of field {number} are there")]
    Field { number: u32, byte_len: u64, available: u64 },
    #[error("field {number} has another wire type than in ONNX")]
    WireType { number: u32 },
    #[error("not a model of ONNX: it has no graph")]
    NoGraph,
    #[error("graphs are nested deeper than the limit, {limit} levels")]
    Nested { limit: usize },
    #[error("duplicate initializer")]
    RepeatedName,
    #[error("the model has more tensors than the limit for a file of its length, {limit}")]
    TooMany { limit: u64 },
    #[error("{what} has {byte_len} bytes, the limit is {limit}")]
    TooLong { what: &'static str, byte_len: u64, limit: u64 },
    #[error("{what} is not UTF-8")]
    NotUtf8 { what: &'static str },

    #[error("the dimension {value} is negative")]
    Dimension { value: i64 },
    #[error("the tensor has more dimensions than the limit, {limit}")]
    Rank { limit: usize },
    #[error("zTensor 1.2 has no dtype for elements of {name}")]
    Without { name: &'static str },
    #[error("sparse tensors of {name} are unsupported")]
    PackedValues { name: &'static str },
    #[error("ONNX has no data type {number}")]
    DataType { number: i64 },
    #[error("the tensor is a segment of a larger one, which is unsupported")]
    Segment,
    #[error("the values are in several fields, or in the field of another data type")]
    Fields,
    #[error("the values are in more pieces than the limit, {limit}")]
    Scattered { limit: usize },
    #[error("the shape requires more than 2^64 bytes")]
    Overflow,
    #[error("the shape requires {expected} bytes, the values have {found}")]
    Bytes { expected: u64, found: u64 },
    #[error("the shape requires {expected} values, there are {}", if *is_more { "more" } else { "fewer" })]
    Count { expected: u64, is_more: bool },
    #[error("element {at} is {value}, which is out of range for {data_type}")]
    Range { at: u64, value: i128, data_type: &'static str },
    #[error(
        "the indices of a sparse tensor must be INT64, and for every value one or one per dimension"
    )]
    Indices,
    #[error("the index {value} is outside the shape")]
    Index { value: i64 },

    #[error("the {key} \"{}\" of external_data is not a number", .value.escape_debug())]
    External { key: &'static str, value: String },
    #[error(
        "the values are in \"{}\" beside the model; open the model by its path",
        .location.escape_debug()
    )]
    NeedsPath { location: String },
    #[error("the location \"{}\" is refused: {why}", .location.escape_debug())]
    Location { location: String, why: &'static str },
    #[error("the file \"{}\" is missing; put it beside the model", .location.escape_debug())]
    Missing { location: String },
    #[error(
        "the values have {byte_len} bytes at {offset} of \"{}\", which has only {available}",
        .location.escape_debug()
    )]
    Beyond { location: String, offset: u64, byte_len: u64, available: u64 },
}

impl From<OnnxFault> for zt::Error {
    fn from(fault: OnnxFault) -> Self {
        let (kind, code) = match fault {
            OnnxFault::Nested { .. }
            | OnnxFault::TooMany { .. }
            | OnnxFault::TooLong { .. }
            | OnnxFault::Rank { .. }
            | OnnxFault::Scattered { .. } => (ErrorKind::Limit, "header"),
            OnnxFault::Without { .. }
            | OnnxFault::PackedValues { .. }
            | OnnxFault::DataType { .. } => (ErrorKind::Unsupported, "dtype"),
            OnnxFault::Segment | OnnxFault::NeedsPath { .. } => {
                (ErrorKind::Unsupported, "unsupported")
            }
            OnnxFault::Overflow | OnnxFault::Bytes { .. } | OnnxFault::Count { .. } => {
                (ErrorKind::Malformed, "shape-size-mismatch")
            }
            OnnxFault::Index { .. } => (ErrorKind::Malformed, "index-value"),
            OnnxFault::Location { .. } | OnnxFault::Missing { .. } => {
                (ErrorKind::Malformed, "path")
            }
            OnnxFault::Beyond { .. } => (ErrorKind::Malformed, "bounds"),
            _ => (ErrorKind::Malformed, "header"),
        };
        zt::Error::new(kind, code, fault)
    }
}
