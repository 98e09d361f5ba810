//! What a target cannot represent.

use zt::foreign::Kind;
use zt::{DType, Value};

use crate::faults::Overflow;

/// The code of an error about a loss, and of the warning that takes its place.
pub const LOSSY: &str = "lossy";

/// The most keys that a message names. A checkpoint has hundreds.
const KEYS: usize = 16;

/// Something that a target cannot represent. A key is quoted and escaped by [`crate::display`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// A format other than dense.
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
        /// What they mean, if that differs.
        logical_type: Option<String>,
    },
    /// Elements of a type that the target does not have, in a type that represents each of them.
    Widened {
        /// The logical type, or the dtype.
        from: String,
        /// The dtype that they are written with.
        to: DType,
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
    /// A second object in a target that holds one.
    Objects,
    /// Attributes of the file that the target cannot represent.
    FileAttributes {
        /// Their keys.
        keys: Vec<String>,
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
    /// A second tensor of one name in an input, which was not read.
    Read {
        /// The warning of the reader.
        what: String,
    },
}

/// How much a loss weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// All values are kept: the loss is a warning.
    Metadata,
    /// Values are lost: [`drop_unsupported`](crate::ConvertOptions::drop_unsupported) allows it.
    Value,
    /// Values become infinite: [`allow_inf`](crate::ConvertOptions::allow_inf) allows it.
    Infinity,
}

impl Loss {
    pub(crate) const fn grade(&self) -> Grade {
        match self {
            Loss::Widened { .. }
            | Loss::ObjectAttribute { .. }
            | Loss::FileAttributes { .. }
            | Loss::Field { .. }
            | Loss::Renamed { .. }
            | Loss::Conflict { .. } => Grade::Metadata,
            Loss::Format { .. }
            | Loss::Type { .. }
            | Loss::Component { .. }
            | Loss::Objects
            | Loss::Name
            | Loss::Shape
            | Loss::LongName { .. }
            | Loss::Rank { .. }
            | Loss::BigEndian { .. }
            | Loss::Header { .. }
            | Loss::Read { .. } => Grade::Value,
            Loss::Overflow(_) => Grade::Infinity,
        }
    }

    /// The loss as one of `target`.
    pub(crate) fn text(&self, target: Kind) -> String {
        let cannot = |what: String| format!("{target} cannot represent {what}");
        // `.zt` itself has components and fields.
        let value_cannot = |what: String| match target {
            Kind::ZT => format!("a dense value cannot represent {what}"),
            _ => cannot(what),
        };
        match self {
            Loss::Format {
                format,
                has_dense_value,
            } => {
                let only = if *has_dense_value {
                    ", only its dense value"
                } else {
                    ""
                };
                cannot(format!("{}{only}", format.escape_debug()))
            }
            Loss::Type {
                dtype,
                logical_type,
            } => match logical_type {
                Some(name) => cannot(format!("{} over {dtype}", name.escape_debug())),
                None => cannot(dtype.to_string()),
            },
            Loss::Widened { from, to } => {
                let from = from.escape_debug();
                format!("{target} has no {from}: the values are written as {to}, without loss")
            }
            Loss::Component { role } => {
                value_cannot(format!("the component \"{}\"", role.escape_debug()))
            }
            Loss::ObjectAttribute { key } => cannot(format!("the object's attribute {key}")),
            Loss::FileAttributes { keys } => match &keys[..] {
                [key] => cannot(format!("the file's attribute {key}")),
                keys => {
                    let (first, rest) = keys.split_at(keys.len().min(KEYS));
                    let more = match rest.len() {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    let (all, first) = (keys.len(), first.join(", "));
                    cannot(format!("{all} attributes of the file: {first}{more}"))
                }
            },
            Loss::Field { key } => value_cannot(format!("the unknown field {key}")),
            Loss::Objects => cannot("a second object".to_owned()),
            Loss::Name => cannot("a tensor of this name".to_owned()),
            Loss::Renamed { becomes } => {
                format!("{target} stores no names: the object becomes \"{becomes}\"")
            }
            Loss::Shape => cannot("so large a shape".to_owned()),
            Loss::LongName { byte_len, limit } => {
                cannot(format!("a name of {byte_len} bytes, the limit is {limit}"))
            }
            Loss::Rank { rank, limit } => {
                cannot(format!("{rank} dimensions, the limit is {limit}"))
            }
            Loss::BigEndian { format } => {
                let format = format.escape_debug();
                cannot(format!(
                    "big-endian {format}: its little-endian bytes are unknown"
                ))
            }
            Loss::Header { byte_len, limit } => cannot(format!(
                "a header of {byte_len} bytes, the limit is {limit}"
            )),
            Loss::Conflict { key } => {
                format!("the inputs have different values of {key}: the first one is kept")
            }
            Loss::Overflow(overflow) => format!(
                "{} of {} values are out of range for {}: the cast makes them infinite",
                overflow.infinite, overflow.values, overflow.dtype
            ),
            Loss::Read { what } => what.clone(),
        }
    }
}

/// A key of attributes for messages: quoted and escaped.
#[must_use]
pub fn display(key: &Value) -> String {
    match key.as_str() {
        Some(text) => format!("{text:?}"),
        None => format!("{key:?}"),
    }
}
