//! What a target cannot represent.

use std::fmt;

use zt::DType;
use zt::foreign::Kind;

use super::Overflow;

/// Something that a target cannot represent. Keys are as [`crate::display`] gives them: quoted, and
/// safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// A layout other than a plain array.
    Format {
        /// The object's format.
        format: String,
        /// Whether the target can represent the object's dense value.
        has_dense_value: bool,
    },
    /// Elements of a type that the target does not have.
    Type {
        /// How they are stored.
        dtype: DType,
        /// What they mean, if that is something else.
        logical_type: Option<String>,
    },
    /// A component beside the values.
    Component {
        /// Its role.
        role: String,
    },
    /// An attribute of an object.
    ObjectAttribute {
        /// Its key.
        key: String,
    },
    /// An object beside the one that the target holds.
    Objects,
    /// An attribute of the file that the target cannot represent.
    FileAttribute {
        /// Its key.
        key: String,
    },
    /// A field that the specification of `.zt` does not know.
    Field {
        /// Its key.
        key: String,
    },
    /// A name that means something else in the target.
    Name,
    /// A name in a target that stores none.
    Renamed {
        /// The name that a reader will give the object.
        becomes: String,
    },
    /// A shape that the target's readers refuse.
    Shape,
    /// A name that the target's readers refuse.
    LongName {
        /// Bytes of the name.
        byte_len: usize,
        /// The most bytes that a name may have.
        limit: usize,
    },
    /// More dimensions than the target has.
    Rank {
        /// Dimensions of the object.
        rank: usize,
        /// The most dimensions of the target.
        limit: usize,
    },
    /// Big-endian bytes of a format whose little-endian bytes are unknown.
    BigEndian {
        /// The object's format.
        format: String,
    },
    /// A header that is longer than the target's readers accept.
    Header {
        /// Bytes of the header.
        byte_len: u64,
        /// The most bytes that readers accept.
        limit: u64,
    },
    /// One attribute, or one unknown field, with two values: in two inputs, or in an input and the
    /// file.
    Conflict {
        /// Its key.
        key: String,
    },
    /// Finite values that a cast has made infinite.
    Overflow(Overflow),
    /// A tensor or a value that an input has beside another of its name, and that was not read.
    Read {
        /// The warning of the reader.
        what: String,
    },
}

impl Loss {
    /// Writes the loss as one of `target`.
    pub(crate) fn describe(&self, target: Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `.zt` has components and fields; a dense value in it has not.
        let speaker = if target == Kind::ZT {
            "a dense value"
        } else {
            target.as_str()
        };
        match self {
            Loss::Format {
                format,
                has_dense_value,
            } => {
                write!(f, "{target} cannot say {}", format.escape_debug())?;
                f.write_str(if *has_dense_value {
                    ", only its dense value"
                } else {
                    ""
                })
            }
            Loss::Type {
                dtype,
                logical_type: Some(name),
            } => write!(
                f,
                "{target} cannot say {} over {dtype}",
                name.escape_debug()
            ),
            Loss::Type {
                dtype,
                logical_type: None,
            } => write!(f, "{target} cannot say {dtype}"),
            Loss::Component { role } => write!(
                f,
                "{speaker} cannot say the component \"{}\"",
                role.escape_debug()
            ),
            Loss::ObjectAttribute { key } => {
                write!(f, "{target} cannot say the object's attribute {key}")
            }
            Loss::FileAttribute { key } => {
                write!(f, "{target} cannot say the file's attribute {key}")
            }
            Loss::Field { key } => write!(f, "{speaker} cannot say the unknown field {key}"),
            Loss::Objects => write!(
                f,
                "{target} cannot say this object beside another: it holds one"
            ),
            Loss::Name => write!(f, "{target} cannot have a tensor of this name"),
            Loss::Renamed { becomes } => {
                write!(f, "{target} stores no names: it becomes \"{becomes}\"")
            }
            Loss::Shape => write!(f, "{target} cannot have this shape: it is too large"),
            Loss::LongName { byte_len, limit } => write!(
                f,
                "{target} has names of at most {limit} bytes, this one has {byte_len}"
            ),
            Loss::Rank { rank, limit } => write!(
                f,
                "{target} has at most {limit} dimensions, this shape has {rank}"
            ),
            Loss::BigEndian { format } => write!(
                f,
                "{target} is written in little-endian, which nobody knows of big-endian {}",
                format.escape_debug()
            ),
            Loss::Header { byte_len, limit } => write!(
                f,
                "{target} cannot have a header of {byte_len} bytes, the limit is {limit}"
            ),
            Loss::Conflict { key } => write!(f, "there are different values of {key}"),
            Loss::Overflow(Overflow {
                dtype,
                infinite,
                values,
            }) => write!(
                f,
                "{infinite} of {values} values are too large for {dtype}, and become infinite"
            ),
            Loss::Read { what } => f.write_str(what),
        }
    }
}
