//! The errors of this crate, by who is at fault.

use zt_manifest::{DType, Text};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why bytes do not mean what their object says, or could not be interpreted.
///
/// The variant says who is at fault: the object ([`Error::Malformed`]), this build or registry
/// ([`Error::Unsupported`]), the machine ([`Error::Allocation`]) or the caller ([`Error::Misuse`],
/// never caused by a file's bytes). Names of objects and offsets are for the facade to add.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object breaks a rule of its format. Objects that a caller builds are held to the same
    /// rules, and get the same violations.
    #[error("{}{violation}", of_component(role.as_ref()))]
    Malformed {
        /// The component at fault, where it is one component's.
        role: Option<Text>,
        /// The rule.
        violation: Violation,
    },
    /// The object may be sound, and nothing here can interpret it.
    #[error(transparent)]
    Unsupported(Unsupported),
    /// Memory for a result could not be had.
    #[error("no memory for {byte_len} bytes")]
    Allocation {
        /// Bytes asked for.
        byte_len: u64,
    },
    /// A call that no file can cause.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A [`ReadParts`](crate::base::read::ReadParts) could not read a component, and has the cause.
    #[error("a component could not be read")]
    Unread,
}

/// The rules of the object formats, each with the numbers that break it. Spec: §7 to §9.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The shape and the lengths of the components contradict each other.
    #[error(transparent)]
    ShapeSizeMismatch(#[from] SizeMismatch),
    /// The object lacks a component that its format needs.
    #[error("is missing, and the format requires it")]
    MissingComponent,
    /// A component of indices whose dtype cannot hold them (or, to strict readers, is not u64).
    #[error("indices are u64, not {}", name_of(*found))]
    IndexDType {
        /// What the component has; `None` where the file does not say.
        found: Option<DType>,
    },
    /// An index, pointer or coordinate outside its bound.
    #[error("element {position} is {value}, {bound}")]
    IndexValue {
        /// Which of the component's elements, counted from 0.
        position: u64,
        /// What it is.
        value: i128,
        /// What it had to be.
        bound: IndexBound,
    },
    /// A known logical type over a dtype that it does not have, or where the format takes none.
    #[error("{}", logical(expected, name, *found))]
    LogicalType {
        /// The logical type.
        name: Text,
        /// Its dtype; `None` where no logical type fits the role.
        expected: Option<DType>,
        /// The component's.
        found: DType,
    },
    /// An attribute of the object that its format cannot use.
    #[error("attribute `{name}`: {fault}")]
    Attribute {
        /// The attribute's key.
        name: &'static str,
        /// What is wrong with it.
        fault: AttributeFault,
    },
    /// A byte of a bool component that is neither 0 nor 1.
    #[error("element {position} is {value}, not 0 or 1")]
    BoolValue {
        /// Which of the component's elements, counted from 0.
        position: u64,
        /// The byte.
        value: u8,
    },
    /// A component whose dtype its format does not take in this role.
    #[error("takes {expected}, not {}", name_of(*found))]
    DType {
        /// What the format takes.
        expected: &'static str,
        /// The component's; `None` where the file does not say.
        found: Option<DType>,
    },
}

/// How a length contradicts a shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeMismatch {
    /// The decoded length, in bytes.
    #[error("the shape takes {expected} bytes, there are {found}")]
    Bytes {
        /// What the shape demands.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The number of elements (of values, where a logical type takes several).
    #[error("takes {expected} elements, there are {found}")]
    Elements {
        /// What the shape, the attributes or the other components demand.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// The last element or value is not whole.
    #[error("{byte_len} bytes are not a multiple of {value_len}")]
    Partial {
        /// Decoded bytes.
        byte_len: u64,
        /// Bytes of one element or value.
        value_len: u64,
    },
    /// A row is no whole number of blocks.
    #[error("rows of {len} are not a multiple of the block, {multiple}")]
    Row {
        /// Values in a row.
        len: u64,
        /// Values in a block.
        multiple: u64,
    },
    /// The number of dimensions.
    #[error("takes {expected} dimensions, the shape has {found}")]
    Rank {
        /// What the format takes.
        expected: u64,
        /// What the shape has.
        found: u64,
    },
    /// No file could hold this many elements: the count passes 2^64.
    #[error("the size of shape {shape:?} is not representable")]
    Overflow {
        /// The shape.
        shape: Vec<u64>,
    },
}

/// What an index had to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexBound {
    /// Not negative and less than this: an index into a dimension.
    #[error("not in 0..{0}")]
    Below(u64),
    /// Not negative: a row pointer, whose bound is another pointer or the number of values.
    #[error("which is negative")]
    NotNegative,
    /// Not less than this: row pointers never fall.
    #[error("below the {0} before it")]
    AtLeast(u64),
    /// More than this: indices that rise, where none may be there twice.
    #[error("not above the {0} before it")]
    Above(u64),
    /// Exactly this: the first row pointer is 0, the last is the number of values.
    #[error("not {0}")]
    Exactly(u64),
}

/// What is wrong with an attribute.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttributeFault {
    /// The format needs it.
    #[error("is missing, and the format requires it")]
    Missing,
    /// It has another CBOR type than this.
    #[error("is not {expected}")]
    Type {
        /// The type it had to have.
        expected: &'static str,
    },
    /// A number outside its range.
    #[error("is {found}, not in {min}..={max}")]
    Range {
        /// The number.
        found: u64,
        /// The smallest it could be.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A text that says nothing to the format.
    #[error("is {found:?}, not {expected}")]
    Text {
        /// The text, abridged.
        found: String,
        /// What it could be.
        expected: &'static str,
    },
    /// It contradicts the dtype of a component.
    #[error("says {expected}, the component is {found}")]
    Component {
        /// The dtype that it names.
        expected: DType,
        /// The component's.
        found: DType,
    },
}

/// What cannot be interpreted here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// No format of this name is registered.
    #[error("the format {0:?} is not known here")]
    Format(Text),
    /// No logical type of this name is known where its values are needed.
    #[error("the logical type {0:?} is not known here")]
    LogicalType(Text),
    /// The format has no dense value.
    #[error("the format {0:?} has no dense value")]
    ToDense(Text),
    /// The format's values are not defined for big-endian files.
    #[error("the format {0:?} has no known big-endian form")]
    BigEndian(Text),
    /// Values of this type are not cast.
    #[error("{from} is not cast to {to}")]
    Cast {
        /// The logical type, or the dtype where there is none.
        from: Text,
        /// The dtype asked for.
        to: DType,
    },
    /// Values whose type the file does not say, and their length does not tell.
    #[error("the file does not say the dtype of component `{role}`")]
    Untyped {
        /// The component.
        role: Text,
    },
}

/// A call that the caller should not have made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// Elements are asked for as another type than they have.
    #[error("asked for {asked}, the elements are {dtype}{}", instead(asked, *dtype, logical_type.as_ref()))]
    ElementType {
        /// The type asked for.
        asked: &'static str,
        /// The elements' dtype.
        dtype: DType,
        /// Their logical type.
        logical_type: Option<Text>,
    },
    /// A slice that does not fit the shape.
    #[error(transparent)]
    Slice(SliceFault),
    /// A value that cannot be quantized: NaN or infinite.
    #[error("value {position} is not finite and cannot be quantized")]
    NotFinite {
        /// Which of the values, counted from 0.
        position: u64,
    },
}

/// Why a slice does not fit a shape, or is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SliceFault {
    /// A part of the text is neither a number nor `start:stop:step` nor `...`.
    #[error("{part:?} is not an index, start:stop:step or ...")]
    Syntax {
        /// The part, abridged.
        part: String,
    },
    /// A step of zero.
    #[error("a slice's step is zero")]
    ZeroStep,
    /// More indices than dimensions.
    #[error("{found} indices for {rank} dimensions")]
    TooMany {
        /// Indices, ellipsis not counted.
        found: usize,
        /// Dimensions.
        rank: usize,
    },
    /// More than one ellipsis.
    #[error("a slice has more than one ellipsis")]
    TwoEllipses,
    /// Places that were resolved against another shape.
    #[error("the places are those of another shape")]
    OtherShape,
    /// An index outside its dimension.
    #[error("index {index} is outside dimension {axis} of {dimension}")]
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

impl SizeMismatch {
    /// Bytes that are no whole number of values.
    pub(crate) const fn partial(byte_len: usize, value_len: u64) -> Self {
        let byte_len = byte_len as u64;
        SizeMismatch::Partial {
            byte_len,
            value_len,
        }
    }

    /// This mismatch as an error of the object as a whole.
    #[must_use]
    pub const fn of_object(self) -> Error {
        Violation::ShapeSizeMismatch(self).of_object()
    }

    /// This mismatch as an error of one component.
    #[must_use]
    pub fn of(self, role: impl Into<Text>) -> Error {
        Violation::from(self).of(role)
    }
}

impl From<SliceFault> for Error {
    fn from(fault: SliceFault) -> Self {
        Error::Misuse(Misuse::Slice(fault))
    }
}

/// `component \`data\`: `, where the error is one component's.
fn of_component(role: Option<&Text>) -> String {
    role.map_or_else(String::new, |role| format!("component `{role}`: "))
}

fn logical(violation: &Option<DType>, name: &Text, found: DType) -> String {
    match violation {
        Some(expected) => format!("the logical type {name} is stored as {expected}, not {found}"),
        None => format!("takes plain {found}, not the logical type {name}"),
    }
}

/// What follows the type that was asked for: the elements' type, and how they are converted.
fn instead(asked: &str, dtype: DType, logical_type: Option<&Text>) -> String {
    let (of_type, is_real) = match logical_type {
        Some(name) => (format!(" of type {name}"), name.starts_with("f8_")),
        None => (String::new(), dtype.is_float()),
    };
    let way = match asked {
        "f32" if is_real => "; `to_dense()?.to_f32()` converts them",
        "f64" | "f16" | "bf16" if is_real => "; `to_dense()?.to_dtype(..)` converts them",
        _ => "",
    };
    of_type + way
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
