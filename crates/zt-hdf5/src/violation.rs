//! The rules of HDF5, each with the numbers that break it, and what of it is no tensor.

use std::fmt;

use zt::ErrorKind;
use zt_foreign::is_an_error;

/// Why a file, or one object of it, is refused.
#[derive(Debug)]
pub(super) enum Violation {
    /// The file does not begin, nor go on behind a user block, with the signature.
    Signature,
    /// A version of a structure that does not exist, or is newer than this reader.
    Version { what: &'static str, found: u8 },
    /// A structure ends within something.
    Ends {
        what: &'static str,
        needed: u64,
        available: u64,
    },
    /// The file is shorter than its superblock says.
    Cut { expected: u64, found: u64 },
    /// A structure would lie outside the file.
    Outside {
        what: &'static str,
        address: u64,
        byte_len: u64,
        end: u64,
    },
    /// A structure does not begin with its signature.
    Magic { what: &'static str, found: [u8; 4] },
    /// A structure's checksum is not that of its bytes.
    Checksum {
        what: &'static str,
        expected: u32,
        found: u32,
    },
    /// The checksum of a chunk is not that of its bytes.
    ChunkChecksum { expected: u32, found: u32 },
    /// A field that cannot have its value.
    Field { what: &'static str, value: u64 },
    /// An object without something that it needs.
    Missing { what: &'static str },
    /// More is read for the structures than the whole file has: they are read again and again.
    Budget { limit: u64 },
    /// More paths than the file's length justifies: its groups hold each other.
    Paths { limit: u64 },
    /// Groups nest deeper than is allowed.
    Depth { limit: usize },
    /// Dimensions, one within the other: more than are allowed.
    Dimensions { levels: usize, limit: usize },
    /// Values of an attribute in more lists than the file's length justifies.
    Lists { count: u64 },
    /// A group has a link without a name, or two of one.
    LinkName { name: String },
    /// The shape demands other bytes than there are.
    Length { expected: u64, found: u64 },
    /// The shape demands more bytes than can be counted.
    Overflow,
    /// Values that take more bytes than the caller allows.
    Decoded { byte_len: u64, limit: u64 },
    /// Bytes that are made to read values that are not in the file, or stand for many times its length: of what
    /// all of them may take, so much is left.
    Sparse {
        byte_len: u64,
        left: u64,
        limit: u64,
    },
    /// A chunk that is larger than is allowed.
    ChunkSize { byte_len: u64, limit: u64 },
    /// A chunk that cannot be decoded.
    Chunk { filter: &'static str },
    /// Chunks so large, and across so many rows, that each would be decoded many times.
    Scattered { passes: u64, limit: u64 },
    /// Elements that are no numbers: what they are.
    Element { what: &'static str },
    /// Something that this reader does not have.
    Unsupported { what: &'static str },
    /// A filter that this reader does not have.
    Filter { id: u16, name: &'static str },
    /// A filter that is in the pipeline twice.
    RepeatedFilter { id: u16, name: &'static str },
    /// A soft link that leads to nothing.
    Dangling { path: String },
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        match self {
            Violation::Budget { .. }
            | Violation::Paths { .. }
            | Violation::Depth { .. }
            | Violation::Dimensions { .. }
            | Violation::Lists { .. }
            | Violation::Decoded { .. }
            | Violation::Sparse { .. }
            | Violation::ChunkSize { .. } => ErrorKind::Limit,
            Violation::Element { .. }
            | Violation::Unsupported { .. }
            | Violation::Filter { .. }
            | Violation::RepeatedFilter { .. }
            | Violation::Scattered { .. }
            | Violation::Dangling { .. } => ErrorKind::Unsupported,
            Violation::ChunkChecksum { .. } => ErrorKind::DigestMismatch,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Version { .. } => "version",
            Violation::Outside { .. } => "bounds",
            Violation::ChunkChecksum { .. } => "digest-mismatch",
            Violation::Length { .. } | Violation::Overflow => "shape-size-mismatch",
            Violation::Budget { .. }
            | Violation::Paths { .. }
            | Violation::Depth { .. }
            | Violation::Dimensions { .. }
            | Violation::Lists { .. } => "structure-limit",
            Violation::Decoded { .. } | Violation::Sparse { .. } | Violation::ChunkSize { .. } => {
                "decompression-limit"
            }
            Violation::Chunk { .. } => "deflate",
            Violation::Element { .. } => "dtype",
            Violation::Unsupported { .. }
            | Violation::Filter { .. }
            | Violation::RepeatedFilter { .. }
            | Violation::Scattered { .. }
            | Violation::Dangling { .. } => "unsupported",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Signature => f.write_str("no superblock: this is no HDF5 file"),
            Violation::Version { what, found } => write!(f, "{what} is of version {found}"),
            Violation::Ends {
                what,
                needed,
                available,
            } => write!(f, "{what} takes {needed} bytes, {available} are left"),
            Violation::Cut { expected, found } => write!(
                f,
                "the superblock says that the file has {expected} bytes, it has {found}"
            ),
            Violation::Outside {
                what,
                address,
                byte_len,
                end,
            } => write!(
                f,
                "{what} would be the {byte_len} bytes from {address} on, the file ends at {end}"
            ),
            Violation::Magic { what, found } => {
                write!(f, "{what} begins with \"{}\"", found.escape_ascii())
            }
            Violation::Checksum {
                what,
                expected,
                found,
            } => write!(
                f,
                "{what} has the checksum {found:08X}, and was written with {expected:08X}"
            ),
            Violation::ChunkChecksum { expected, found } => write!(
                f,
                "a chunk has the checksum {found:08X}, and was written with {expected:08X}"
            ),
            Violation::Field { what, value } => write!(f, "{what} cannot be {value}"),
            Violation::Missing { what } => write!(f, "there is no {what}"),
            Violation::Budget { limit } => write!(
                f,
                "the structures are read again and again, beyond {limit} bytes"
            ),
            Violation::Paths { limit } => write!(
                f,
                "links that lead to the same again give more paths and attributes than {limit} bytes \
                 hold"
            ),
            Violation::Depth { limit } => write!(f, "groups nest deeper than {limit}"),
            Violation::Dimensions { levels, limit } => write!(
                f,
                "{levels} dimensions one within the other, the limit is {limit}"
            ),
            Violation::Lists { count } => {
                write!(
                    f,
                    "its values are in {count} lists: more than the file's length justifies"
                )
            }
            Violation::LinkName { name } if name.is_empty() => {
                f.write_str("a group has a link without a name")
            }
            Violation::LinkName { name } => {
                let name = name.escape_debug();
                write!(f, "a group has two links of the name \"{name}\"")
            }
            Violation::Length { expected, found } => {
                write!(f, "the shape demands {expected} bytes, there are {found}")
            }
            Violation::Overflow => f.write_str("the shape or a chunk demands more bytes than 2^63"),
            Violation::Decoded { byte_len, limit } => {
                write!(f, "values of {byte_len} bytes, the limit is {limit}")
            }
            Violation::Sparse {
                byte_len,
                left,
                limit,
            } => write!(
                f,
                "{byte_len} bytes are made to read the values, which the file does not hold: its length \
                 justifies {limit}, of which {left} are left"
            ),
            Violation::ChunkSize { byte_len, limit } => {
                write!(f, "a chunk of {byte_len} bytes, the limit is {limit}")
            }
            Violation::Chunk { filter } => write!(f, "a chunk is no output of {filter}"),
            Violation::Scattered { passes, limit } => write!(
                f,
                "each chunk would be decoded {passes} times to put it in order, the limit is {limit}"
            ),
            Violation::Element { what } => write!(f, "the elements are {what}: no tensor"),
            Violation::Unsupported { what } => write!(f, "{what} is not supported"),
            Violation::Filter { id, name: "" } => write!(f, "the filter {id} is not supported"),
            Violation::Filter { id, name } => {
                write!(f, "the filter {name} ({id}) is not supported")
            }
            Violation::RepeatedFilter { id, name: "" } => {
                write!(f, "the filter {id} twice is not supported")
            }
            Violation::RepeatedFilter { id, name } => {
                write!(f, "the filter {name} ({id}) twice is not supported")
            }
            Violation::Dangling { path } => {
                write!(
                    f,
                    "a link to \"{}\", which is not there",
                    path.escape_debug()
                )
            }
        }
    }
}
