//! What a target cannot represent.

use zt::foreign::Kind;
use zt::{DType, Value};

use crate::faults::Cast;

/// The code of an error about a loss, and of the warning that takes its place.
pub const LOSSY: &str = "lossy";

/// The most keys that a message names. A checkpoint has hundreds.
const KEYS: usize = 16;

/// Something that a target cannot represent. A key is quoted and escaped by [`crate::display`]. The text
/// of a loss does not name the target. [`Fault::Lossy`](crate::Fault::Lossy) does.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the docs and the texts of the variants explain the fields")]
pub enum Loss {
    /// A format other than dense. The target may be able to represent the object's dense value.
    #[error("{}{}", format.escape_debug(), limit_of(*has_dense_value))]
    Format { format: String, has_dense_value: bool },
    /// Elements of a type that the target does not have: how they are stored, and what they mean if that
    /// differs.
    #[error("{}", type_of(*dtype, logical_type.as_deref()))]
    Type { dtype: DType, logical_type: Option<String> },
    /// Elements of the logical type or the dtype `from`, which the target does not have. They are written
    /// with the dtype `to`, which represents each of them.
    #[error("{}: the values are written as {to}, without loss", from.escape_debug())]
    Widened { from: String, to: DType },
    /// A component beside the values.
    #[error("the component \"{}\"", role.escape_debug())]
    Component { role: String },
    /// An attribute of an object.
    #[error("the object's attribute {key}")]
    ObjectAttribute { key: String },
    /// A second object in a target that holds one.
    #[error("a second object")]
    Objects,
    /// Attributes of the file that the target cannot represent.
    #[error("{}", attributes(keys))]
    FileAttributes { keys: Vec<String> },
    /// A field that the specification of `.zt` does not know.
    #[error("the unknown field {key}")]
    Field { key: String },
    /// A name that means something else in the target.
    #[error("a tensor of this name")]
    Name,
    /// A name in a target that stores none: a reader will call the object `becomes`.
    #[error("the object becomes \"{becomes}\"")]
    Renamed { becomes: String },
    /// A shape that the target's readers refuse.
    #[error("so large a shape")]
    Shape,
    /// Elements of less than a byte whose number the target's readers refuse.
    #[error("elements that do not fill their last byte")]
    PartialByte,
    /// A name that the target's readers refuse.
    #[error("a name of {byte_len} bytes, the limit is {limit}")]
    LongName { byte_len: usize, limit: usize },
    /// More dimensions than the target has at most.
    #[error("{rank} dimensions, the limit is {limit}")]
    Rank { rank: usize, limit: usize },
    /// Big-endian bytes of a format whose little-endian bytes are unknown.
    #[error("big-endian {}: its little-endian bytes are unknown", format.escape_debug())]
    BigEndian { format: String },
    /// A set of more files than the target can number.
    #[error("a set of {count} files, the limit is {limit}")]
    Parts { count: u64, limit: u64 },
    /// A header that is longer than the target's readers accept.
    #[error("a header of {byte_len} bytes, the limit is {limit}")]
    Header { byte_len: u64, limit: u64 },
    /// One attribute, or one unknown field, with two values: in two inputs, or in an input and the
    /// file.
    #[error("the inputs have different values of {key}: the first one is kept")]
    Conflict { key: String },
    /// Values that are out of range for a cast.
    #[error(
        "{} of {} values are out of range for {}: the cast makes them {}",
        .0.out_of_range,
        .0.values,
        .0.to,
        .0.becomes()
    )]
    Overflow(Cast),
    /// Data that other parts of a set have, and that were not read. `what` is the warning of the reader.
    #[error("{what}")]
    Read { what: String },
}

/// How much a loss weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// All values are kept: the loss is a warning.
    Metadata,
    /// Values are lost: [`drop_unsupported`](crate::ConvertOptions::drop_unsupported) allows it.
    Value,
    /// Values are out of range for a cast: [`allow_inf`](crate::ConvertOptions::allow_inf) allows it.
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
            Loss::Overflow(_) => Grade::Infinity,
            // Of values, unless it is listed above.
            _ => Grade::Value,
        }
    }

    /// The option that allows the loss of values.
    pub(crate) const fn option(&self) -> &'static str {
        match self {
            Loss::Format { has_dense_value: true, .. } => "dense",
            Loss::Overflow(_) => "allow_inf",
            _ => "drop_unsupported",
        }
    }

    /// The loss as one of `target`.
    pub(crate) fn text(&self, target: Kind) -> String {
        match self {
            // `.zt` itself has components and fields.
            Loss::Component { .. } | Loss::Field { .. } if target == Kind::ZT => {
                format!("a dense value cannot represent {self}")
            }
            Loss::Widened { .. } => format!("{target} has no {self}"),
            Loss::Renamed { .. } => format!("{target} stores no names: {self}"),
            Loss::Conflict { .. } | Loss::Overflow(_) | Loss::Read { .. } => self.to_string(),
            _ => format!("{target} cannot represent {self}"),
        }
    }
}

const fn limit_of(has_dense_value: bool) -> &'static str {
    if has_dense_value { ", only its dense value" } else { "" }
}

fn type_of(dtype: DType, logical_type: Option<&str>) -> String {
    match logical_type {
        Some(name) => format!("{} over {dtype}", name.escape_debug()),
        None => dtype.to_string(),
    }
}

/// The first of the file's attributes, and how many there are.
fn attributes(keys: &[String]) -> String {
    if let [key] = keys {
        return format!("the file's attribute {key}");
    }
    let (first, rest) = keys.split_at(keys.len().min(KEYS));
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (all, first) = (keys.len(), first.join(", "));
    format!("{all} attributes of the file: {first}{more}")
}

/// A key of attributes for messages: quoted and escaped.
pub fn display(key: &Value) -> String {
    match key.as_str() {
        Some(text) => format!("{text:?}"),
        None => format!("{key:?}"),
    }
}
