//! The errors of this crate, by who is at fault.

use zt_manifest::{DType, Text};

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the bytes of an object are invalid, or cannot be interpreted.
///
/// The variant names who is at fault: the object ([`Error::Malformed`]), this build or registry
/// ([`Error::Unsupported`]), the machine ([`Error::Allocation`]) or the caller ([`Error::Misuse`],
/// never caused by a file). The crate `zt` adds names of objects and offsets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object breaks a rule of its format. Objects that a caller builds follow the same rules.
    #[error("{}{violation}", of_component(role.as_ref()))]
    Malformed {
        /// The component at fault, if it is a single one.
        role: Option<Text>,
        /// The rule.
        violation: FormatViolation,
    },
    /// The object may be valid, but nothing here can interpret it.
    #[error(transparent)]
    Unsupported(Unsupported),
    /// There is no memory for a result.
    #[error("no memory for {byte_len} bytes")]
    Allocation {
        /// Bytes asked for.
        byte_len: u64,
    },
    /// A wrong call. No file can cause it.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A [`ReadParts`](crate::base::read::ReadParts) could not read a component. It keeps the
    /// cause.
    #[error("a component could not be read")]
    Unread,
}

/// The rules of the object formats, each with the numbers that break it. Spec: §7 to §9.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatViolation {
    /// The shape and the lengths of the components contradict each other.
    #[error(transparent)]
    ShapeSizeMismatch(#[from] SizeMismatch),
    /// The object lacks a component that its format requires.
    #[error("is missing, and the format requires it")]
    MissingComponent,
    /// A component of indices has a dtype without integers. Strict readers require u64.
    #[error("indices are u64, not {}", name_of(*found))]
    IndexDType {
        /// The component's dtype; `None` if the file does not give it.
        found: Option<DType>,
    },
    /// An index, pointer or coordinate outside its bound.
    #[error("element {position} is {value}, {bound}")]
    IndexValue {
        /// The element's position in its component, counted from 0.
        position: u64,
        /// Its value.
        value: i128,
        /// The rule for it.
        bound: IndexBound,
    },
    /// A known logical type has a dtype other than its own, or the format takes no logical type
    /// here.
    #[error("{}", logical(expected, name, *found))]
    LogicalType {
        /// The logical type.
        name: Text,
        /// Its dtype; `None` if the role takes no logical type.
        expected: Option<DType>,
        /// The component's.
        found: DType,
    },
    /// An attribute that the format requires is missing or invalid.
    #[error("attribute `{name}`: {fault}")]
    Attribute {
        /// The attribute's key.
        name: &'static str,
        /// What is wrong with it.
        fault: AttributeFault,
    },
    /// A byte of a bool component is neither 0 nor 1.
    #[error("element {position} is {value}, not 0 or 1")]
    BoolValue {
        /// The element's position in its component, counted from 0.
        position: u64,
        /// The byte.
        value: u8,
    },
    /// The format does not take this dtype in this role.
    #[error("takes {expected}, not {}", name_of(*found))]
    DType {
        /// What the format takes.
        expected: &'static str,
        /// The component's dtype; `None` if the file does not give it.
        found: Option<DType>,
    },
    /// The code of a stretch of `zt.delta/1` is invalid.
    #[error("the code of stretch {stretch} {fault}")]
    Delta {
        /// The stretch, counted from 0.
        stretch: u64,
        /// What is wrong with it.
        fault: DeltaFault,
    },
    /// A chunk of `zt.planes/2` is invalid.
    #[error("a chunk {0}")]
    Huffman(HuffmanFault),
}

/// Why the code of a stretch of `zt.delta/1` is invalid, or does not fit its old values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaFault {
    /// The method is unknown, or the elements have no exponents.
    #[error("has an unknown method")]
    Method,
    /// A parameter is out of range.
    #[error("has a parameter that is out of range")]
    Parameter,
    /// The code ends too early or too late.
    #[error("has the wrong length")]
    Length,
    /// A class has more changes than elements.
    #[error("has more changes than elements")]
    Count,
    /// A change lies beyond the end of its class.
    #[error("has a gap that does not fit the stretch")]
    Gap,
    /// A change is too large for its type.
    #[error("has a change that is out of range")]
    Size,
}

/// Why a chunk of `zt.planes/2` is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HuffmanFault {
    /// The first byte is no known kind.
    #[error("has an unknown kind")]
    Kind,
    /// It has more or fewer bytes than its kind and its symbols take.
    #[error("has the wrong length")]
    Length,
    /// The codes are longer than 11 bits, or there are bits that begin no code or several.
    #[error("has codes that are not complete or too long")]
    Code,
    /// A stream does not end with its last symbol.
    #[error("has a stream of the wrong length")]
    Stream,
    /// Bits that mean nothing are not zero.
    #[error("has padding that is not zero")]
    Padding,
}

/// How a length contradicts a shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeMismatch {
    /// The decoded length, in bytes.
    #[error("the shape takes {expected} bytes, there are {found}")]
    Bytes {
        /// The number that the shape requires.
        expected: u64,
        /// The actual number.
        found: u64,
    },
    /// The number of elements, or of values if a logical type has several elements each.
    #[error("takes {expected} elements, there are {found}")]
    Elements {
        /// The number that the shape, the attributes or the other components require.
        expected: u64,
        /// The actual number.
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
    /// A row is not a whole number of blocks.
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
    /// The number of elements or bytes is 2^64 or more.
    #[error("the size of shape {shape:?} is not representable")]
    Overflow {
        /// The shape.
        shape: Vec<u64>,
    },
}

/// The rule for an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexBound {
    /// Not negative and less than this: an index into a dimension.
    #[error("not in 0..{0}")]
    Below(u64),
    /// Not negative: a row pointer, whose bound is another pointer or the number of values.
    #[error("which is negative")]
    NotNegative,
    /// Not less than this: row pointers do not decrease.
    #[error("below the {0} before it")]
    AtLeast(u64),
    /// More than this: indices increase, without duplicates.
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
    /// The format requires it.
    #[error("is missing, and the format requires it")]
    Missing,
    /// Its CBOR type is not this one.
    #[error("is not {expected}")]
    Type {
        /// The type.
        expected: &'static str,
    },
    /// A number outside its range.
    #[error("is {found}, not in {min}..={max}")]
    Range {
        /// The number.
        found: u64,
        /// The least that is allowed.
        min: u64,
        /// The greatest that is allowed.
        max: u64,
    },
    /// A text that the format does not know.
    #[error("is {found:?}, not {expected}")]
    Text {
        /// The text, abridged.
        found: String,
        /// The texts that it knows.
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
    /// The values are needed, and no logical type of this name is registered.
    #[error("the logical type {0:?} is not known here")]
    LogicalType(Text),
    /// The format has no dense value.
    #[error("the format {0:?} has no dense value")]
    ToDense(Text),
    /// The object is a quantized weight. A crate above this one computes its values.
    #[error(
        "a quantized weight: its values are read with --logical, `InputOptions::logical` or `logical=True`"
    )]
    Logical,
    /// The decoder of a format from elsewhere gave up.
    #[error("the format {format:?} is not decoded: {reason}")]
    Decode {
        /// The format.
        format: Text,
        /// Why.
        reason: String,
    },
    /// The format does not define its big-endian form.
    #[error("the format {0:?} has no known big-endian form")]
    BigEndian(Text),
    /// This cast is not supported by [`Dense::to_f32`](crate::Dense::to_f32), which knows only the
    /// floating-point types of the specification.
    #[error("{from} is not cast to f32 here: `Tensor::to_f32` and `Elements::to_f32` cast it")]
    ToF32 {
        /// The logical type, or the dtype if there is none.
        from: Text,
    },
    /// This cast is not supported.
    #[error("{from} is not cast to {to}")]
    Cast {
        /// The logical type, or the dtype if there is none.
        from: Text,
        /// The dtype asked for.
        to: DType,
    },
    /// The file does not give the dtype, and it does not follow from the length.
    #[error("{}{UNTYPED}", of_component(Some(role)))]
    Untyped {
        /// The component.
        role: Text,
    },
}

/// A call that the caller should not have made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The elements have another type than the one asked for.
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
    /// A NaN or an infinite value, which cannot be quantized.
    #[error("value {position} is not finite and cannot be quantized")]
    NotFinite {
        /// The value's position, counted from 0.
        position: u64,
    },
}

/// Why a slice is invalid, or does not fit a shape.
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
    /// The places were resolved against another shape.
    #[error("the places are those of another shape")]
    OtherShape,
    /// An index outside its dimension.
    #[error("index {index} is outside dimension {axis} of {dimension}")]
    OutOfRange {
        /// The dimension's position, counted from 0.
        axis: usize,
        /// The index.
        index: i64,
        /// The dimension.
        dimension: u64,
    },
}

impl Error {
    /// The stable code, as `spec/errors.md` lists it.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::Malformed { violation, .. } => violation.code(),
            Error::Unsupported(_) => "unsupported",
            Error::Allocation { .. } => "allocation",
            Error::Misuse(_) => "misuse",
            Error::Unread => "io",
        }
    }

    /// The role of the component at fault, if it is a single one.
    pub fn role(&self) -> Option<&str> {
        match self {
            Error::Malformed { role, .. } => role.as_deref(),
            Error::Unsupported(Unsupported::Untyped { role }) => Some(role),
            _ => None,
        }
    }

    /// The text without the role, for a caller that names the component itself.
    pub fn message(&self) -> String {
        match self {
            Error::Malformed { violation, .. } => violation.to_string(),
            Error::Unsupported(Unsupported::Untyped { .. }) => UNTYPED.to_owned(),
            error => error.to_string(),
        }
    }

    /// The same error, blamed on the component `blamed` unless it names one already.
    pub fn with_role(mut self, blamed: impl Into<Text>) -> Self {
        if let Error::Malformed { role, .. } = &mut self
            && role.is_none()
        {
            *role = Some(blamed.into());
        }
        self
    }
}

impl FormatViolation {
    /// The stable code, as `spec/errors.md` lists it.
    pub const fn code(&self) -> &'static str {
        match self {
            FormatViolation::ShapeSizeMismatch(_) => "shape-size-mismatch",
            FormatViolation::MissingComponent => "missing-component",
            FormatViolation::IndexDType { .. } => "index-dtype",
            FormatViolation::IndexValue { .. } => "index-value",
            FormatViolation::LogicalType { .. } => "logical-type",
            FormatViolation::Attribute { .. } => "attribute",
            FormatViolation::BoolValue { .. } => "bool-value",
            FormatViolation::DType { .. } => "dtype",
            FormatViolation::Delta { .. } => "delta",
            FormatViolation::Huffman(_) => "huffman",
        }
    }

    /// This violation as an error of the object as a whole.
    pub const fn of_object(self) -> Error {
        Error::Malformed { role: None, violation: self }
    }

    /// This violation as an error of one component.
    pub fn of(self, role: impl Into<Text>) -> Error {
        self.of_object().with_role(role)
    }
}

impl SizeMismatch {
    /// Bytes that are not a whole number of values.
    pub(crate) const fn partial(byte_len: usize, value_len: u64) -> Self {
        let byte_len = byte_len as u64;
        SizeMismatch::Partial { byte_len, value_len }
    }

    /// This mismatch as an error of the object as a whole.
    pub const fn of_object(self) -> Error {
        FormatViolation::ShapeSizeMismatch(self).of_object()
    }

    /// This mismatch as an error of one component.
    pub fn of(self, role: impl Into<Text>) -> Error {
        FormatViolation::from(self).of(role)
    }
}

impl From<SliceFault> for Error {
    fn from(fault: SliceFault) -> Self {
        Error::Misuse(Misuse::Slice(fault))
    }
}

const UNTYPED: &str = "the file does not say its dtype";

/// `component \`data\`: `, if the error names one.
fn of_component(role: Option<&Text>) -> String {
    role.map_or_else(String::new, |role| format!("component `{role}`: "))
}

fn logical(violation: &Option<DType>, name: &Text, found: DType) -> String {
    match violation {
        Some(expected) => format!("the logical type {name} is stored as {expected}, not {found}"),
        None => format!("takes plain {found}, not the logical type {name}"),
    }
}

/// The rest of the message: the elements' logical type, and the call that converts them.
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

/// The first characters of a text from a file, for a message.
pub(crate) fn abridged(text: &str) -> String {
    const KEPT: usize = 40;
    let mut chars = text.chars();
    let mut kept: String = chars.by_ref().take(KEPT).collect();
    if chars.next().is_some() {
        kept.push('…');
    }
    kept
}
