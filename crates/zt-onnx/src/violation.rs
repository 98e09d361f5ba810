//! The rules of ONNX files, each with the numbers that break it.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

/// Why a model, or a tensor of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Violation {
    /// A message ends within a field.
    Ends,
    /// A varint of more than ten bytes.
    Varint,
    /// The beginning of a field that there is not.
    Tag { key: u64 },
    /// A field that is longer than its message.
    Field {
        number: u32,
        byte_len: u64,
        available: u64,
    },
    /// A field whose value is stored in another way than ONNX says.
    WireType { number: u32 },
    /// The file is not a model.
    NoGraph,
    /// Graphs within graphs.
    Nested { limit: usize },
    /// Two initializers of one name.
    RepeatedName,
    /// More tensors than allowed.
    TooMany { limit: u64 },
    /// A text that is longer than allowed.
    TooLong {
        what: &'static str,
        byte_len: u64,
        limit: u64,
    },
    /// A text that is not UTF-8.
    NotUtf8 { what: &'static str },

    /// A dimension below zero.
    Dimension { value: i64 },
    /// More dimensions than allowed.
    Rank { limit: usize },
    /// A data type that has no elements in zTensor.
    Without { name: &'static str },
    /// A data type that ONNX does not have.
    DataType { number: i64 },
    /// The tensor is a part of one.
    Segment,
    /// Values in two fields, or in one of another type's.
    Fields,
    /// Values that are scattered over more pieces than allowed.
    Scattered { limit: usize },
    /// The shape demands more bytes than can be counted.
    Overflow,
    /// Another number of bytes than the shape demands.
    Bytes { expected: u64, found: u64 },
    /// Another number of values than the shape demands.
    Count { expected: u64, is_more: bool },
    /// A value that its type has no room for.
    Range {
        at: u64,
        value: i128,
        data_type: &'static str,
    },
    /// Coordinates of a sparse tensor that are none.
    Indices,
    /// A coordinate that is outside the shape.
    Index { value: i64 },

    /// A pair of `external_data` that says nothing that could be.
    External { key: &'static str, value: String },
    /// The values lie in another file, and this one was not opened by a path.
    NeedsPath { location: String },
    /// A location that is not followed.
    Location { location: String, why: &'static str },
    /// There is no such file.
    Missing { location: String },
    /// The values leave the other file.
    Beyond {
        location: String,
        offset: u64,
        byte_len: u64,
        available: u64,
    },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::Nested { .. }
            | Violation::TooMany { .. }
            | Violation::TooLong { .. }
            | Violation::Rank { .. }
            | Violation::Scattered { .. } => ErrorKind::Limit,
            Violation::Without { .. }
            | Violation::DataType { .. }
            | Violation::Segment
            | Violation::NeedsPath { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Without { .. } | Violation::DataType { .. } => "dtype",
            Violation::Segment | Violation::NeedsPath { .. } => "unsupported",
            Violation::Overflow | Violation::Bytes { .. } | Violation::Count { .. } => {
                "shape-size-mismatch"
            }
            Violation::Index { .. } => "index-value",
            Violation::Location { .. } | Violation::Missing { .. } => "path",
            Violation::Beyond { .. } => "bounds",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Ends => f.write_str("the message ends within a field"),
            Violation::Varint => f.write_str("a varint of more than ten bytes"),
            Violation::Tag { key } => write!(f, "no field begins with the varint {key}"),
            Violation::Field {
                number,
                byte_len,
                available,
            } => write!(
                f,
                "the field {number} is said to be {byte_len} bytes long, its message has {available} more"
            ),
            Violation::WireType { number } => {
                write!(f, "the field {number} is stored in another way than ONNX says")
            }
            Violation::NoGraph => f.write_str("no model of ONNX: it has no graph"),
            Violation::Nested { limit } => {
                write!(f, "graphs within graphs, the limit is {limit} levels")
            }
            Violation::RepeatedName => f.write_str("two initializers have this name"),
            Violation::TooMany { limit } => write!(
                f,
                "more tensors than the limit for a file of that length, which is {limit}"
            ),
            Violation::TooLong {
                what,
                byte_len,
                limit,
            } => write!(f, "{what} of {byte_len} bytes, the limit is {limit}"),
            Violation::NotUtf8 { what } => write!(f, "{what} is not UTF-8"),
            Violation::Dimension { value } => write!(f, "a dimension of {value}"),
            Violation::Rank { limit } => {
                write!(f, "more dimensions than the limit, which is {limit}")
            }
            Violation::Without { name } => {
                write!(f, "elements of {name} have no dtype in zTensor 1.2")
            }
            Violation::DataType { number } => write!(f, "ONNX has no data type {number}"),
            Violation::Segment => f.write_str("a segment of a tensor, and nothing says of which"),
            Violation::Fields => {
                f.write_str("values in several fields, or in one that is another data type's")
            }
            Violation::Scattered { limit } => {
                write!(f, "values in more pieces than the limit, which is {limit}")
            }
            Violation::Overflow => f.write_str("the shape demands more than 2^64 bytes"),
            Violation::Bytes { expected, found } => {
                write!(f, "the shape demands {expected} bytes, there are {found}")
            }
            Violation::Count { expected, is_more } => {
                let found = if *is_more { "more" } else { "fewer" };
                write!(f, "the shape demands {expected} values, there are {found}")
            }
            Violation::Range {
                at,
                value,
                data_type,
            } => {
                write!(f, "element {at} is {value}, which no {data_type} is")
            }
            Violation::Indices => f.write_str(
                "the indices of a sparse tensor are one INT64 or one for each dimension, for every value",
            ),
            Violation::Index { value } => write!(f, "the index {value} leaves the shape"),
            Violation::External { key, value } => {
                write!(f, "external_data has no {key} \"{}\"", value.escape_debug())
            }
            Violation::NeedsPath { location } => write!(
                f,
                "its values are in \"{}\" beside the model: open the model by its path",
                location.escape_debug()
            ),
            Violation::Location { location, why } => write!(
                f,
                "the location \"{}\" is not followed: {why}",
                location.escape_debug()
            ),
            Violation::Missing { location } => {
                write!(f, "\"{}\" is not there", location.escape_debug())
            }
            Violation::Beyond {
                location,
                offset,
                byte_len,
                available,
            } => write!(
                f,
                "{byte_len} bytes at {offset} of \"{}\", which has {available}",
                location.escape_debug()
            ),
        }
    }
}
