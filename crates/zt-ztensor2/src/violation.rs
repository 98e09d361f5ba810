//! The rules of zTensor 2, each with the numbers that break it.

use std::fmt;

use zt::{DType, ErrorKind};
use zt_foreign::is_an_error;

/// Why a file, or an object of it, is refused.
#[derive(Debug)]
pub(super) enum Violation {
    /// Shorter than a header and a footer.
    Short { byte_len: u64, minimum: u64 },
    /// The file does not begin with the magic.
    Magic { found: Vec<u8> },
    /// The file does not end with the magic.
    NoFooter,
    /// A version that is not read.
    Version { found: u32 },
    /// A manifest without length that has a place or a hash.
    NoManifest,
    /// The manifest is off the grid.
    ManifestPlace { offset: u64 },
    /// The manifest leaves the file or touches the footer.
    ManifestOutside { offset: u64, length: u64, end: u64 },
    /// The manifest is not the one that was written.
    ManifestHash { expected: u64, found: u64 },
    /// The manifest is not CBOR, or not in the one spelling that is allowed.
    Cbor(Rule),
    /// Bytes behind the root.
    Behind,
    /// A field of the wrong type.
    Type {
        field: &'static str,
        expected: &'static str,
    },
    /// A field that has to be there.
    Missing { field: &'static str },
    /// A key that has to be text.
    KeyNotText { field: &'static str },
    /// A name that is empty, too long, or has a NUL.
    Name { name: String },
    /// A shard's name that could be a path.
    ShardName { name: String },
    /// A digest that is not `algorithm:hex`.
    Digest { text: String },
    /// Too many dimensions.
    Rank { found: u64, limit: u64 },
    /// More elements than can be counted.
    Overflow,
    /// An object without bytes.
    NoParts,
    /// Other parts than the layout has.
    Parts {
        layout: &'static str,
        expected: &'static str,
    },
    /// A storage type that does not exist.
    DType { found: String },
    /// A logical type of bytes over another storage type.
    LogicalType { name: String, found: DType },
    /// Indices that are not plain u32 or u64, or not all of one of them.
    IndexType,
    /// A part that is not as long as its shape demands.
    Size { expected: u64, found: u64 },
    /// A sparse array without dimensions, or whose coordinates are not whole.
    Coords { rank: u64, byte_len: u64 },
    /// A blob off the grid.
    Alignment { offset: u64 },
    /// An encoding that is not known.
    Encoding { found: String },
    /// A decoded length without an encoding, or the reverse.
    DecodedLen { has_encoding: bool },
    /// A blob that shares some of its bytes with another, and not all.
    Overlap { other: u64 },
    /// The unused half of the last byte is not zero.
    Nibble { byte: u8 },
    /// A stream without the table of its frames, or whose table breaks a rule.
    SeekTable(&'static str),
    /// A shard that the table does not have.
    ShardUnknown { name: String },
    /// A shard of another size than the table says.
    ShardSize { expected: u64, found: u64 },
}

/// A rule of the CBOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The bytes end within an item, or cannot hold what a head declares.
    Cut,
    /// A text that is not UTF-8.
    Utf8,
    /// A tag.
    Tag,
    /// An item of indefinite length.
    Indefinite,
    /// A head without a meaning here.
    Reserved,
    /// A head or a float that could be shorter.
    Long,
    /// A key that is there twice.
    Repeated,
    /// A key that belongs before the one before it.
    Unsorted,
    /// Nesting.
    Depth { limit: u32 },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::Version { .. } | Violation::Encoding { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Short { .. } | Violation::NoFooter => "truncated",
            Violation::Magic { .. } | Violation::NoManifest => "header",
            Violation::Version { .. } => "version",
            Violation::ManifestPlace { .. } | Violation::Alignment { .. } => "alignment",
            Violation::ManifestOutside { .. } => "manifest-size",
            Violation::ManifestHash { .. } => "digest-mismatch",
            Violation::Cbor(_) | Violation::Behind => "cbor",
            Violation::Digest { .. } => "digest-format",
            Violation::Overflow | Violation::Size { .. } | Violation::Coords { .. } => {
                "shape-size-mismatch"
            }
            Violation::DType { .. } => "dtype",
            Violation::LogicalType { .. } => "logical-type",
            Violation::IndexType => "index-dtype",
            Violation::Encoding { .. } => "encoding",
            Violation::Overlap { .. } => "overlap",
            Violation::Nibble { .. } => "padding",
            Violation::SeekTable(_) => "zstd",
            Violation::ShardSize { .. } => "bounds",
            _ => "schema",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Short { byte_len, minimum } => write!(
                f,
                "the file ends after {byte_len} bytes, expected at least {minimum}"
            ),
            Violation::Magic { found } => {
                let found = found.escape_ascii();
                write!(f, "the file begins with \"{found}\", not as zTensor 2 does")
            }
            Violation::NoFooter => f.write_str(
                "the file does not end with the magic of zTensor 2: it was cut short, or an append \
                 was not finished",
            ),
            Violation::Version { found } => {
                write!(f, "the footer is of version {found}, version 2 is read")
            }
            Violation::NoManifest => {
                f.write_str("a manifest without bytes has a place or a hash, which have to be 0")
            }
            Violation::ManifestPlace { offset } => {
                write!(
                    f,
                    "the manifest begins at {offset}, not at a multiple of 4096"
                )
            }
            Violation::ManifestOutside {
                offset,
                length,
                end,
            } => write!(
                f,
                "{length} bytes of manifest at {offset} leave the data, which ends at {end}"
            ),
            Violation::ManifestHash { expected, found } => write!(
                f,
                "the footer records xxh3:{expected:016x} of the manifest, its bytes give \
                 xxh3:{found:016x}"
            ),
            Violation::Cbor(rule) => rule.fmt(f),
            Violation::Behind => f.write_str("bytes follow the manifest's root"),
            Violation::Type { field, expected } => write!(f, "{field} is not {expected}"),
            Violation::Missing { field } => write!(f, "{field} is missing"),
            Violation::KeyNotText { field } => write!(f, "a key of {field} is not text"),
            Violation::Name { name } => write!(
                f,
                "the name \"{}\" is empty, longer than 1024 bytes, or has a NUL",
                name.escape_debug()
            ),
            Violation::ShardName { name } => write!(
                f,
                "the shard \"{}\": 1 to 64 of A-Z a-z 0-9 . _ - are allowed, not first a dot",
                name.escape_debug()
            ),
            Violation::Digest { text } => write!(
                f,
                "\"{}\" is not an algorithm, a colon and all its digits in lower case",
                text.escape_debug()
            ),
            Violation::Rank { found, limit } => {
                write!(f, "{found} dimensions, at most {limit} are allowed")
            }
            Violation::Overflow => f.write_str("the shape has more than 2^64 elements"),
            Violation::NoParts => f.write_str("the object has no parts"),
            Violation::Parts { layout, expected } => {
                write!(f, "{layout} has the parts {expected}, and no others")
            }
            Violation::DType { found } => {
                write!(f, "there is no dtype \"{}\"", found.escape_debug())
            }
            Violation::LogicalType { name, found } => {
                write!(f, "the type {name} is stored as u8, not {found}")
            }
            Violation::IndexType => {
                f.write_str("indices are plain u32 or plain u64, all of an object alike")
            }
            Violation::Size { expected, found } => {
                write!(
                    f,
                    "the shape demands {expected} bytes, the part has {found}"
                )
            }
            Violation::Coords { rank, byte_len } => write!(
                f,
                "{byte_len} bytes of coordinates are not a whole number for each of {rank} dimensions"
            ),
            Violation::Alignment { offset } => {
                write!(f, "the blob begins at {offset}, not at a multiple of 4096")
            }
            Violation::Encoding { found } => {
                write!(f, "the encoding \"{}\" is not known", found.escape_debug())
            }
            Violation::DecodedLen { has_encoding: true } => {
                f.write_str("an encoded part has to say its decoded_length")
            }
            Violation::DecodedLen {
                has_encoding: false,
            } => f.write_str("a part without encoding has no decoded_length"),
            Violation::Overlap { other } => write!(
                f,
                "the blob shares some of its bytes with what begins at {other}, and not all"
            ),
            Violation::Nibble { byte } => write!(
                f,
                "the upper half of the last byte is unused and has to be 0, the byte is {byte:#04x}"
            ),
            Violation::SeekTable(rule) => write!(f, "a seekable stream {rule}"),
            Violation::ShardUnknown { name } => write!(
                f,
                "the shard \"{}\" is not in the table of shards",
                name.escape_debug()
            ),
            Violation::ShardSize { expected, found } => write!(
                f,
                "the shard has {found} bytes, the table of shards says {expected}"
            ),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Cut => f.write_str("the manifest ends within an item"),
            Rule::Utf8 => f.write_str("a text is not UTF-8"),
            Rule::Tag => f.write_str("a tag, which zTensor 2 does not allow"),
            Rule::Indefinite => {
                f.write_str("an item of indefinite length, which zTensor 2 does not allow")
            }
            Rule::Reserved => f.write_str("a head without a meaning in zTensor 2"),
            Rule::Long => f.write_str("a number that could be spelled in fewer bytes"),
            Rule::Repeated => f.write_str("a key is there twice"),
            Rule::Unsorted => f.write_str("a key belongs before the one before it"),
            Rule::Depth { limit } => write!(f, "nested deeper than {limit} levels"),
        }
    }
}
