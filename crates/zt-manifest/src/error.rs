//! The errors of this crate and their codes.

use std::borrow::Cow;
use std::fmt;

use zt_container::Digest;

use crate::dtype::DType;
use crate::text::Text;
use crate::version::Version;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a manifest, or one object of it, cannot be read or written.
///
/// Offsets are in bytes from the start of the manifest. An error without an offset is about a caller's
/// value. The caller adds the names of object and role.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The manifest is not one well-formed CBOR item. Spec: §3.1.
    Cbor {
        /// Where the rule is broken.
        offset: u64,
        /// The rule.
        rule: Rule,
    },
    /// A key occurs twice in one map. Spec: §3.1.
    DuplicateKey {
        /// Where one of the two is.
        offset: u64,
        /// The key, abridged; empty if it is not a text.
        key: String,
    },
    /// Two objects of a manifest of layout 0.1, which is an array, have one name. Spec: legacy.
    DuplicateName {
        /// Where one of the two names is.
        offset: u64,
        /// The name, abridged.
        name: String,
    },
    /// A value has the wrong type or is out of range. Spec: §3.2 to §3.4.
    Schema {
        /// Where the value is.
        offset: Option<u64>,
        /// The key it belongs to.
        field: Text,
        /// The value in the file, in words.
        found: Text,
        /// The value that the specification demands, in words.
        expected: &'static str,
    },
    /// A required key is missing. Spec: §3.2 to §3.4.
    Missing {
        /// Where the map begins that lacks it.
        offset: Option<u64>,
        /// The key.
        field: Text,
    },
    /// A root of 1.1 or later in a file framed like 1.0: the file is truncated, and has lost its footer
    /// magic, the last eight bytes. Spec: legacy, "Telling them apart".
    FooterMissing,
    /// The version is malformed, or its major version is not 1. Spec: §11.
    Version {
        /// Where the text is.
        offset: u64,
        /// The text, abridged.
        text: String,
    },
    /// Not one of the thirteen storage types. Spec: §7.1.
    DType {
        /// Where the component's map is.
        offset: Option<u64>,
        /// The name, abridged.
        name: String,
    },
    /// Neither `raw` nor `zstd`. Spec: §5.
    Encoding {
        /// Where the component's map is.
        offset: Option<u64>,
        /// The name, abridged.
        name: String,
    },
    /// The manifest's bytes do not have the digest that it carries. Spec: §3.6.
    Digest {
        /// The digest that it carries, as text.
        expected: String,
        /// The digest of its bytes.
        found: Digest,
    },
    /// More than [`crate::Limits`] grants.
    Limit(LimitExceeded),
    /// A blob, a digest or an allocation breaks a rule of the container. Its offsets are absolute.
    Container(Box<zt_container::Error>),
    /// A value cannot be converted to a caller's type.
    Convert {
        /// The message of that type.
        message: String,
    },
    /// A manifest that cannot be written. No file causes this.
    Misuse(Misuse),
}

/// The rules that make bytes one CBOR item. Spec: RFC 8949 §3 and §5.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The bytes end within the item.
    Truncated,
    /// Additional information 28 to 30.
    Reserved(u8),
    /// A break code where no indefinite-length item can end.
    Break,
    /// A chunk of a string that is not a definite-length string of the same type.
    Chunk,
    /// A simple value below 32 in two bytes.
    Simple(u8),
    /// A text, or one chunk of a text, that is not UTF-8.
    Utf8,
    /// A length or a number of items that the rest of the manifest cannot hold.
    Length {
        /// Bytes, items or pairs.
        declared: u64,
        /// The most that the rest of the manifest can hold.
        available: u64,
    },
    /// Bytes after the item.
    Trailing {
        /// How many.
        byte_len: u64,
    },
}

/// A limit and what exceeds it. See [`crate::Limits`] for the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// Arrays, maps and tags within each other.
    Nesting {
        /// Where the first item beyond the limit begins.
        offset: u64,
        /// The limit in force, at most [`crate::MAX_NESTING`].
        limit: usize,
    },
    /// Bytes of a key that is an array, a map or a tag.
    Key {
        /// Where it begins.
        offset: u64,
        /// [`crate::MAX_KEY_LEN`].
        limit: usize,
    },
    /// Dimensions of an object.
    Rank {
        /// The limit.
        limit: usize,
        /// What the file has.
        found: usize,
    },
    /// Components of an object.
    Components {
        /// The limit.
        limit: usize,
        /// What the file has.
        found: usize,
    },
    /// Bytes of an object's attributes and unknown fields, encoded.
    Attributes {
        /// The limit.
        limit: usize,
        /// The bytes found before reading stopped; the file may have more.
        found: usize,
    },
    /// Bytes of an object's name.
    Name {
        /// The limit.
        limit: usize,
        /// What the file has.
        found: usize,
    },
}

/// Why a manifest cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// Two objects of one name.
    DuplicateName(String),
    /// Two components of one role.
    DuplicateRole {
        /// The object.
        name: String,
        /// The role.
        role: String,
    },
    /// An unknown field with the key of a known one.
    ReservedKey(String),
    /// A simple value from 20 to 31: a bool, null or undefined, or a reserved number.
    Simple(u8),
    /// A value of a caller's type that CBOR cannot represent, or with a duplicate key in a map.
    Value {
        /// The reason.
        message: String,
    },
    /// Values nested deeper than readers accept by default.
    Nesting {
        /// [`crate::Limits::nesting`] by default.
        limit: usize,
    },
    /// A key that is an array, a map or a tag, and longer than readers accept.
    Key {
        /// [`crate::MAX_KEY_LEN`].
        limit: usize,
    },
    /// A value of an attribute or of an unknown field that cannot be written.
    Field {
        /// Its key, abridged.
        key: String,
        /// What is wrong with the key or the value.
        fault: Box<Misuse>,
    },
    /// A component that is not stored little-endian, or has no dtype: 1.2 cannot represent either.
    Legacy {
        /// The object.
        name: String,
        /// The role.
        role: String,
    },
    /// A zstd blob without a decoded length, which 1.2 demands.
    UnknownLength {
        /// The object.
        name: String,
        /// The role.
        role: String,
    },
}

impl Error {
    /// The stable code, as `spec/errors.md` lists it.
    pub const fn code(&self) -> &'static str {
        match self {
            Error::Cbor { .. }
            | Error::DuplicateKey { .. }
            | Error::DuplicateName { .. }
            | Error::Limit(LimitExceeded::Nesting { .. } | LimitExceeded::Key { .. }) => "cbor",
            Error::Schema { .. } | Error::Missing { .. } | Error::Limit(_) => "schema",
            Error::FooterMissing => "truncated",
            Error::Version { .. } => "version",
            Error::DType { .. } => "dtype",
            Error::Encoding { .. } => "encoding",
            Error::Digest { .. } => "digest-mismatch",
            Error::Container(error) => error.code(),
            Error::Convert { .. } => "attribute",
            Error::Misuse(Misuse::DuplicateName(_) | Misuse::DuplicateRole { .. }) => {
                "duplicate-name"
            }
            Error::Misuse(_) => "misuse",
        }
    }

    /// The offset of the fault in the manifest, in bytes, if it is known. [`Error::Container`] has absolute
    /// offsets of its own, and none here.
    pub const fn offset(&self) -> Option<u64> {
        match self {
            Error::Cbor { offset, .. }
            | Error::DuplicateKey { offset, .. }
            | Error::DuplicateName { offset, .. }
            | Error::Version { offset, .. }
            | Error::Limit(
                LimitExceeded::Nesting { offset, .. } | LimitExceeded::Key { offset, .. },
            ) => Some(*offset),
            Error::Digest { .. } => Some(0),
            Error::Schema { offset, .. }
            | Error::Missing { offset, .. }
            | Error::DType { offset, .. }
            | Error::Encoding { offset, .. } => *offset,
            _ => None,
        }
    }

    pub(crate) fn schema(
        offset: u64,
        field: impl Into<Text>,
        found: impl Into<Text>,
        expected: &'static str,
    ) -> Error {
        Error::Schema { offset: Some(offset), field: field.into(), found: found.into(), expected }
    }

    pub(crate) const fn missing(offset: Option<u64>, field: &'static str) -> Error {
        Error::Missing { offset, field: Cow::Borrowed(field) }
    }

    pub(crate) fn allocation(byte_len: u64) -> Error {
        zt_container::Error::Limit(zt_container::LimitExceeded::Allocation { byte_len }).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::Cbor { offset, rule } => {
                format!("the manifest is not CBOR at {offset}: {rule}")
            }
            Error::DuplicateKey { offset, key } => {
                let key = match key.as_str() {
                    "" => "a key".to_owned(),
                    key => format!("the key {key:?}"),
                };
                format!("the manifest is not CBOR at {offset}: {key} occurs twice in one map")
            }
            Error::DuplicateName { offset, name } => {
                format!("two objects are named {name:?}, one of them at {offset}")
            }
            Error::Schema { field, found, expected, .. } => {
                format!("`{field}` is {found}, expected {expected}")
            }
            Error::Missing { field, .. } => format!("`{field}` is missing"),
            Error::FooterMissing => {
                "the manifest has `objects`, as from 1.1 on, but the file does not \
                 end in \"ZTEN1000\": its last eight bytes were cut off"
                    .to_owned()
            }
            Error::Version { text, .. } if Version::parse(text).is_none() => {
                format!("{text:?} is not a version such as 1.2.0")
            }
            Error::Version { text, .. } => {
                format!("version {text:?}: this reader knows major version 1")
            }
            Error::DType { name, .. } => {
                let known = DType::ALL.map(DType::as_str).join(" ");
                format!("dtype {name:?} is none of {known}")
            }
            Error::Encoding { name, .. } => {
                format!("encoding {name:?} is neither raw nor zstd")
            }
            Error::Digest { expected, found } => {
                format!(
                    "the manifest was changed: it records {expected}, and its bytes have {found}"
                )
            }
            Error::Limit(limit) => limit.to_string(),
            Error::Container(error) => error.to_string(),
            Error::Convert { message } => message.clone(),
            Error::Misuse(misuse) => misuse.to_string(),
        };
        f.write_str(&text)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Truncated => f.write_str("it ends within an item"),
            Rule::Reserved(info) => write!(f, "additional information {info} is reserved"),
            Rule::Break => f.write_str("a break code where nothing can end"),
            Rule::Chunk => f.write_str("a chunk of a string has another type"),
            Rule::Simple(value) => write!(f, "simple value {value} is spelled in two bytes"),
            Rule::Utf8 => f.write_str("a text is not UTF-8"),
            Rule::Length { declared, available: room } => {
                write!(f, "a length of {declared}, where there is room for {room}")
            }
            Rule::Trailing { byte_len } => write!(f, "{byte_len} bytes follow the item"),
        }
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, limit) = match self {
            LimitExceeded::Nesting { offset, limit } => {
                let what = "the manifest is nested deeper than the limit of";
                return write!(f, "{what} {limit} at {offset}");
            }
            LimitExceeded::Key { offset, limit } => {
                let what = format!("the key at {offset} is an array, a map or a tag");
                return write!(f, "{what} of more than {limit} bytes");
            }
            LimitExceeded::Rank { limit, found } => (format!("{found} dimensions"), limit),
            LimitExceeded::Components { limit, found } => (format!("{found} components"), limit),
            LimitExceeded::Attributes { limit, found } => {
                (format!("{found} bytes of attributes"), limit)
            }
            LimitExceeded::Name { limit, found } => (format!("a name of {found} bytes"), limit),
        };
        write!(f, "{what}, above the limit of {limit}")
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Misuse::DuplicateName(name) => format!("two objects are named {name:?}"),
            Misuse::DuplicateRole { name, role } => {
                format!("two components of {name:?} have the role {role:?}")
            }
            Misuse::ReservedKey(key) => format!("the extra key {key:?} is reserved by the format"),
            Misuse::Simple(value) => format!("{value} is not a simple value"),
            Misuse::Value { message } => message.clone(),
            Misuse::Nesting { limit } => format!("values are nested deeper than {limit}"),
            Misuse::Key { limit } => {
                format!("a key is an array, a map or a tag of more than {limit} bytes")
            }
            Misuse::Field { key, fault } => format!("{key} cannot be written: {fault}"),
            Misuse::Legacy { name, role } => format!(
                "{role:?} of {name:?} is not little-endian or has no dtype, which 1.2 cannot represent"
            ),
            Misuse::UnknownLength { name, role } => {
                format!("{role:?} of {name:?} is zstd without a decoded length, which 1.2 demands")
            }
        };
        f.write_str(&text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Container(error) => error.source(),
            _ => None,
        }
    }
}

impl From<zt_container::Error> for Error {
    fn from(error: zt_container::Error) -> Self {
        Error::Container(Box::new(error))
    }
}

impl From<LimitExceeded> for Error {
    fn from(limit: LimitExceeded) -> Self {
        Error::Limit(limit)
    }
}

impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Error::Misuse(misuse)
    }
}

/// The first 80 characters: a text in a file may be as long as the manifest, an error message may not.
pub(crate) fn abridged(text: &str) -> String {
    text.chars().take(80).collect()
}
