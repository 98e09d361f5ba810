//! The rules of zTensor 2, and the numbers in a file that breaks one.

use zt::{DType, ErrorKind};
use zt_foreign::LEADS_OUT;

/// Why a file, or an object in it, is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Violation {
    #[error("the file is truncated: it has {byte_len} bytes, the minimum is {minimum}")]
    Short { byte_len: u64, minimum: u64 },
    #[error("the file begins with \"{}\", not with the magic of zTensor 2", .found.escape_ascii())]
    Magic { found: Vec<u8> },
    #[error("the magic at the end is missing: the file is truncated, or an append is unfinished")]
    NoFooter,
    #[error("version {found} of the footer is unsupported; version 2 is read")]
    Version { found: u32 },
    #[error("the footer has a place or a hash for a manifest without bytes")]
    NoManifest,
    #[error("the manifest of {length} bytes at {offset} leaves the data, which ends at {end}")]
    ManifestOutside { offset: u64, length: u64, end: u64 },
    #[error("the manifest has the hash xxh3:{found:016x}, the footer has xxh3:{expected:016x}")]
    ManifestHash { expected: u64, found: u64 },
    #[error(transparent)]
    Cbor(Rule),
    #[error("bytes follow the manifest's root")]
    Behind,
    #[error("{field} is not {expected}")]
    Type { field: &'static str, expected: &'static str },
    #[error("{field} is missing")]
    Missing { field: &'static str },
    #[error("a key of {field} is not text")]
    KeyNotText { field: &'static str },
    #[error("the name \"{}\" is empty, longer than 1024 bytes, or has a NUL", .name.escape_debug())]
    Name { name: String },
    #[error(
        "the shard name \"{}\" is invalid: 1 to 64 of A-Z a-z 0-9 . _ -, the first not a dot",
        .name.escape_debug()
    )]
    ShardName { name: String },
    #[error("the shard is not opened: {LEADS_OUT}")]
    ShardLink,
    #[error(
        "the digest \"{}\" is not an algorithm, a colon and all its lower-case digits",
        .text.escape_debug()
    )]
    Digest { text: String },
    #[error("{found} dimensions, the limit is {limit}")]
    Rank { found: u64, limit: u64 },
    #[error("the shape has more than 2^64 elements")]
    Overflow,
    #[error("the object has no parts")]
    NoParts,
    #[error("the parts of {layout} are {expected}, without others")]
    Parts { layout: &'static str, expected: &'static str },
    #[error("unknown dtype \"{}\"", .found.escape_debug())]
    DType { found: String },
    #[error("the type {name} is stored as u8, not {found}")]
    LogicalType { name: String, found: DType },
    #[error("the indices of an object must be all plain u32 or all plain u64")]
    IndexType,
    #[error("the shape requires {expected} bytes, the part has {found}")]
    Size { expected: u64, found: u64 },
    #[error("{byte_len} bytes of coordinates cannot be divided among {rank} dimensions")]
    Coords { rank: u64, byte_len: u64 },
    #[error("{what} begins at {offset}, not at a multiple of 4096")]
    Alignment { what: &'static str, offset: u64 },
    #[error("the encoding \"{}\" is unsupported", .found.escape_debug())]
    Encoding { found: String },
    #[error("an encoded part requires a decoded_length")]
    NoDecodedLen,
    #[error("a part without an encoding has a decoded_length")]
    DecodedLen,
    #[error("the blob partly overlaps the range at {other}")]
    Overlap { other: u64 },
    #[error("the unused upper half of the last byte {byte:#04x} is not 0")]
    Nibble { byte: u8 },
    #[error("a seekable stream {0}")]
    SeekTable(&'static str),
    #[error("the shard \"{}\" is not in the table of shards", .name.escape_debug())]
    ShardUnknown { name: String },
    #[error("the shard has {found} bytes, the table of shards has {expected}")]
    ShardSize { expected: u64, found: u64 },
}

/// A rule of the CBOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rule {
    /// Also for a head that declares more than follows.
    #[error("the manifest is truncated within an item")]
    Cut,
    #[error("a text is not UTF-8")]
    Utf8,
    #[error("a tag, which zTensor 2 does not allow")]
    Tag,
    #[error("an item of indefinite length, which zTensor 2 does not allow")]
    Indefinite,
    #[error("a reserved head, which zTensor 2 does not allow")]
    Reserved,
    #[error("a number is not in its shortest form")]
    Long,
    #[error("duplicate key")]
    Repeated,
    #[error("a key is not in the order of keys")]
    Unsorted,
    #[error("nested deeper than {limit} levels")]
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
            Violation::Alignment { .. } => "alignment",
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
            Violation::ShardLink => "path",
            _ => "schema",
        }
    }
}

impl From<Violation> for zt::Error {
    fn from(violation: Violation) -> Self {
        zt::Error::new(violation.kind(), violation.code(), violation)
    }
}
