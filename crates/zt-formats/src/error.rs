//! The errors of this crate, by who is at fault.

use std::fmt;

use zt_manifest::{DType, Text};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes do not mean what their object says, or could not be interpreted.
///
/// The variant says who is at fault: the object ([`Error::Malformed`]), this build or registry
/// ([`Error::Unsupported`]), the machine ([`Error::Allocation`]) or the caller ([`Error::Misuse`],
/// never caused by a file's bytes). Names of objects and offsets are for the facade to add.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The object breaks a rule of its format. Objects that a caller builds are held to the same
    /// rules, and get the same violations.
    Malformed {
        /// The component at fault, where it is one component's.
        role: Option<Text>,
        /// The rule.
        violation: Violation,
    },
    /// The object may be sound, and nothing here can interpret it.
    Unsupported(Unsupported),
    /// Memory for a result could not be had.
    Allocation {
        /// Bytes asked for.
        byte_len: u64,
    },
    /// A call that no file can cause.
    Misuse(Misuse),
    /// A [`ReadParts`](crate::ReadParts) could not read a component, and has the cause.
    Unread,
}

/// The rules of the object formats, each with the numbers that break it. Spec: §7 to §9.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The shape and the lengths of the components contradict each other.
    ShapeSizeMismatch(SizeMismatch),
    /// The object lacks a component that its format needs.
    MissingComponent,
    /// A component of indices whose dtype cannot hold them (or, to strict readers, is not u64).
    IndexDType {
        /// What the component has; `None` where the file does not say.
        found: Option<DType>,
    },
    /// An index, pointer or coordinate outside its bound.
    IndexValue {
        /// Which of the component's elements, counted from 0.
        position: u64,
        /// What it is.
        value: i128,
        /// What it had to be.
        bound: IndexBound,
    },
    /// A known logical type over a dtype that it does not have, or where the format takes none.
    LogicalType {
        /// The logical type.
        name: Text,
        /// Its dtype; `None` where no logical type fits the role.
        expected: Option<DType>,
        /// The component's.
        found: DType,
    },
    /// An attribute of the object that its format cannot use.
    Attribute {
        /// The attribute's key.
        name: &'static str,
        /// What is wrong with it.
        fault: AttributeFault,
    },
    /// A byte of a bool component that is neither 0 nor 1.
    BoolValue {
        /// Which of the component's elements, counted from 0.
        position: u64,
        /// The byte.
        value: u8,
    },
    /// A component whose dtype its format does not take in this role.
    DType {
        /// What the format takes.
        expected: &'static str,
        /// The component's; `None` where the file does not say.
        found: Option<DType>,
    },
}

/// How a length contradicts a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeMismatch {
    /// The decoded length, in bytes.
    Bytes {
        /// What the shape demands.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The number of elements (of values, where a logical type takes several).
    Elements {
        /// What the shape, the attributes or the other components demand.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The last element or value is not whole.
    Partial {
        /// Decoded bytes.
        byte_len: u64,
        /// Bytes of one element or value.
        value_len: u64,
    },
    /// A row is no whole number of blocks.
    Row {
        /// Values in a row.
        len: u64,
        /// Values in a block.
        multiple: u64,
    },
    /// The number of dimensions.
    Rank {
        /// What the format takes.
        expected: u64,
        /// What the shape has.
        found: u64,
    },
    /// No file could hold this many elements: the count passes 2^64.
    Overflow {
        /// The shape.
        shape: Vec<u64>,
    },
}

/// What an index had to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexBound {
    /// Not negative and less than this: an index into a dimension.
    Below(u64),
    /// Not negative: a row pointer, whose bound is another pointer or the number of values.
    NotNegative,
    /// Not less than this: row pointers never fall.
    AtLeast(u64),
    /// More than this: indices that rise, where none may be there twice.
    Above(u64),
    /// Exactly this: the first row pointer is 0, the last is the number of values.
    Exactly(u64),
}

/// What is wrong with an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttributeFault {
    /// The format needs it.
    Missing,
    /// It has another CBOR type than this.
    Type {
        /// The type it had to have.
        expected: &'static str,
    },
    /// A number outside its range.
    Range {
        /// The number.
        found: u64,
        /// The smallest it could be.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A text that says nothing to the format.
    Text {
        /// The text, abridged.
        found: String,
        /// What it could be.
        expected: &'static str,
    },
    /// It contradicts the dtype of a component.
    Component {
        /// The dtype that it names.
        expected: DType,
        /// The component's.
        found: DType,
    },
}

/// What cannot be interpreted here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// No format of this name is registered.
    Format(Text),
    /// No logical type of this name is known where its values are needed.
    LogicalType(Text),
    /// The format has no dense value.
    ToDense(Text),
    /// The format's values are not defined for big-endian files.
    BigEndian(Text),
    /// Values of this type are not cast.
    Cast {
        /// The logical type, or the dtype where there is none.
        from: Text,
        /// The dtype asked for.
        to: DType,
    },
    /// Values whose type the file does not say, and their length does not tell.
    Untyped {
        /// The component.
        role: Text,
    },
}

/// A call that the caller should not have made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// Elements are asked for as another type than they have.
    ElementType {
        /// The type asked for.
        asked: &'static str,
        /// The elements' dtype.
        dtype: DType,
        /// Their logical type.
        logical_type: Option<Text>,
    },
    /// A slice that does not fit the shape.
    Slice(SliceFault),
    /// A value that cannot be quantized: NaN or infinite.
    NotFinite {
        /// Which of the values, counted from 0.
        position: u64,
    },
}

/// Why a slice does not fit a shape, or is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceFault {
    /// A part of the text is neither a number nor `start:stop:step` nor `...`.
    Syntax {
        /// The part, abridged.
        part: String,
    },
    /// A step of zero.
    ZeroStep,
    /// More indices than dimensions.
    TooMany {
        /// Indices, ellipsis not counted.
        found: usize,
        /// Dimensions.
        rank: usize,
    },
    /// More than one ellipsis.
    TwoEllipses,
    /// Places that were resolved against another shape.
    OtherShape,
    /// An index outside its dimension.
    OutOfRange {
        /// Which dimension, counted from 0.
        axis: usize,
        /// The index.
        index: i64,
        /// The dimension.
        dimension: u64,
    },
}

impl Error {
    /// The stable code, as `spec/errors.md` lists it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Error::Malformed { violation, .. } => violation.code(),
            Error::Unsupported(_) => "unsupported",
            Error::Allocation { .. } => "allocation",
            Error::Misuse(_) => "misuse",
            Error::Unread => "io",
        }
    }

    /// The role of the component at fault, where it is one component's.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        match self {
            Error::Malformed { role, .. } => role.as_deref(),
            Error::Unsupported(Unsupported::Untyped { role }) => Some(role),
            _ => None,
        }
    }

    /// The same error, blamed on `role` unless it names a component already: for callers that know
    /// which component the bytes came from.
    #[must_use]
    pub fn with_role(mut self, blamed: impl Into<Text>) -> Self {
        if let Error::Malformed { role, .. } = &mut self
            && role.is_none()
        {
            *role = Some(blamed.into());
        }
        self
    }
}

impl Violation {
    /// The stable code, as `spec/errors.md` lists it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Violation::ShapeSizeMismatch(_) => "shape-size-mismatch",
            Violation::MissingComponent => "missing-component",
            Violation::IndexDType { .. } => "index-dtype",
            Violation::IndexValue { .. } => "index-value",
            Violation::LogicalType { .. } => "logical-type",
            Violation::Attribute { .. } => "attribute",
            Violation::BoolValue { .. } => "bool-value",
            Violation::DType { .. } => "dtype",
        }
    }

    /// This violation as an error of the object as a whole.
    #[must_use]
    pub const fn of_object(self) -> Error {
        Error::Malformed {
            role: None,
            violation: self,
        }
    }

    /// This violation as an error of one component.
    #[must_use]
    pub fn of(self, role: impl Into<Text>) -> Error {
        self.of_object().with_role(role)
    }
}

impl From<SizeMismatch> for Violation {
    fn from(mismatch: SizeMismatch) -> Self {
        Violation::ShapeSizeMismatch(mismatch)
    }
}

impl SizeMismatch {
    /// This mismatch as an error of one component.
    #[must_use]
    pub fn of(self, role: impl Into<Text>) -> Error {
        Violation::from(self).of(role)
    }
}

impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Error::Misuse(misuse)
    }
}

impl From<SliceFault> for Error {
    fn from(fault: SliceFault) -> Self {
        Error::Misuse(Misuse::Slice(fault))
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed {
                role: Some(role),
                violation,
            } => write!(f, "component `{role}`: {violation}"),
            Error::Malformed {
                role: None,
                violation,
            } => violation.fmt(f),
            Error::Unsupported(unsupported) => unsupported.fmt(f),
            Error::Allocation { byte_len } => {
                write!(f, "no memory for {byte_len} bytes")
            }
            Error::Misuse(misuse) => misuse.fmt(f),
            Error::Unread => f.write_str("a component could not be read"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::ShapeSizeMismatch(mismatch) => mismatch.fmt(f),
            Violation::MissingComponent => f.write_str("is missing, and the format requires it"),
            Violation::IndexDType { found } => {
                write!(f, "indices are u64, not {}", name_of(*found))
            }
            Violation::IndexValue {
                position,
                value,
                bound,
            } => write!(f, "element {position} is {value}, {bound}"),
            Violation::LogicalType {
                name,
                expected: Some(expected),
                found,
            } => write!(
                f,
                "the logical type {name} is stored as {expected}, not {found}"
            ),
            Violation::LogicalType {
                name,
                expected: None,
                found,
            } => write!(f, "takes plain {found}, not the logical type {name}"),
            Violation::Attribute { name, fault } => write!(f, "attribute `{name}`: {fault}"),
            Violation::BoolValue { position, value } => {
                write!(f, "element {position} is {value}, not 0 or 1")
            }
            Violation::DType { expected, found } => {
                write!(f, "takes {expected}, not {}", name_of(*found))
            }
        }
    }
}

impl fmt::Display for SizeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeMismatch::Bytes { expected, found } => {
                write!(f, "the shape takes {expected} bytes, there are {found}")
            }
            SizeMismatch::Elements { expected, found } => {
                write!(f, "takes {expected} elements, there are {found}")
            }
            SizeMismatch::Partial {
                byte_len,
                value_len,
            } => write!(f, "{byte_len} bytes are not a multiple of {value_len}"),
            SizeMismatch::Row { len, multiple } => {
                write!(
                    f,
                    "rows of {len} are not a multiple of the block, {multiple}"
                )
            }
            SizeMismatch::Rank { expected, found } => {
                write!(f, "takes {expected} dimensions, the shape has {found}")
            }
            SizeMismatch::Overflow { shape } => {
                write!(f, "the size of shape {shape:?} is not representable")
            }
        }
    }
}

impl fmt::Display for IndexBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexBound::Below(bound) => write!(f, "not in 0..{bound}"),
            IndexBound::NotNegative => f.write_str("which is negative"),
            IndexBound::Above(bound) => write!(f, "not above the {bound} before it"),
            IndexBound::AtLeast(bound) => write!(f, "below the {bound} before it"),
            IndexBound::Exactly(value) => write!(f, "not {value}"),
        }
    }
}

impl fmt::Display for AttributeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeFault::Missing => f.write_str("is missing, and the format requires it"),
            AttributeFault::Type { expected } => write!(f, "is not {expected}"),
            AttributeFault::Range { found, min, max } => {
                write!(f, "is {found}, not in {min}..={max}")
            }
            AttributeFault::Text { found, expected } => write!(f, "is {found:?}, not {expected}"),
            AttributeFault::Component { expected, found } => {
                write!(f, "says {expected}, the component is {found}")
            }
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Format(id) => write!(f, "the format {id:?} is not known here"),
            Unsupported::LogicalType(name) => {
                write!(f, "the logical type {name:?} is not known here")
            }
            Unsupported::ToDense(id) => write!(f, "the format {id:?} has no dense value"),
            Unsupported::BigEndian(id) => {
                write!(f, "the format {id:?} has no known big-endian form")
            }
            Unsupported::Cast { from, to } => {
                write!(f, "{from} is not cast to {to}")
            }
            Unsupported::Untyped { role } => {
                write!(f, "the file does not say the dtype of component `{role}`")
            }
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::ElementType {
                asked,
                dtype,
                logical_type,
            } => {
                write!(f, "asked for {asked}, the elements are {dtype}")?;
                if let Some(name) = logical_type {
                    write!(f, " of type {name}")?;
                }
                let is_real = match logical_type {
                    Some(name) => name.starts_with("f8_"),
                    None => dtype.is_float(),
                };
                match *asked {
                    _ if !is_real => Ok(()),
                    "f32" => f.write_str("; `to_dense()?.to_f32()` converts them"),
                    "f64" | "f16" | "bf16" => {
                        f.write_str("; `to_dense()?.to_dtype(..)` converts them")
                    }
                    _ => Ok(()),
                }
            }
            Misuse::Slice(fault) => fault.fmt(f),
            Misuse::NotFinite { position } => {
                write!(f, "value {position} is not finite and cannot be quantized")
            }
        }
    }
}

impl fmt::Display for SliceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SliceFault::Syntax { part } => {
                write!(f, "{part:?} is not an index, start:stop:step or ...")
            }
            SliceFault::ZeroStep => f.write_str("a slice's step is zero"),
            SliceFault::TooMany { found, rank } => {
                write!(f, "{found} indices for {rank} dimensions")
            }
            SliceFault::TwoEllipses => f.write_str("a slice has more than one ellipsis"),
            SliceFault::OtherShape => f.write_str("the places are those of another shape"),
            SliceFault::OutOfRange {
                axis,
                index,
                dimension,
            } => write!(
                f,
                "index {index} is outside dimension {axis} of {dimension}"
            ),
        }
    }
}

fn name_of(dtype: Option<DType>) -> &'static str {
    dtype.map_or("an unsaid dtype", DType::as_str)
}

/// The beginning of a text from a file, short enough for a message.
pub(crate) fn abridged(text: &str) -> String {
    const KEPT: usize = 40;
    let mut chars = text.chars();
    let mut kept: String = chars.by_ref().take(KEPT).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}
