//! The rules of SLM1, each with the numbers that break it.

use std::fmt;

use zt::{Error, ErrorKind};
use zt_foreign::is_an_error;

/// Why a file or a tensor is refused, or minded by strict readers.
#[derive(Debug)]
pub(super) enum Violation {
    TooShort {
        byte_len: u64,
    },
    Magic {
        found: [u8; 4],
    },
    Version {
        found: u32,
    },
    HeaderLength {
        found: u32,
        byte_len: u64,
    },
    Flags {
        found: u32,
    },
    Zero {
        field: &'static str,
    },
    NoChecksum,
    /// A header field that no model can have.
    Field {
        field: &'static str,
        found: u32,
        expected: &'static str,
    },
    Number {
        field: &'static str,
        found: f32,
    },
    HeadCount {
        heads: u32,
        head_dim: u32,
        hidden: u32,
    },
    KeyValueHeads {
        heads: u32,
        kv_heads: u32,
    },
    Misaligned {
        field: &'static str,
        offset: u64,
    },
    Range {
        what: What,
        offset: u64,
        length: u64,
        byte_len: u64,
    },
    /// More tensors than any file has bytes for.
    Directory {
        tensors: u32,
        offset: u64,
        byte_len: u64,
    },
    NoTokenizer,
    TokenizerMagic {
        found: [u8; 4],
    },
    TokenizerShort {
        length: u64,
    },
    TokenizerVocabulary {
        header: u32,
        section: u32,
    },
    DType {
        code: u32,
    },
    Rank {
        rank: u32,
    },
    Dimension {
        dim: usize,
    },
    Overflow,
    Length {
        expected: u64,
        found: u64,
    },
    BlockSize {
        expected: BlockSize,
        found: u32,
    },
    NoScales,
    /// A field that a tensor of this dtype does not have.
    Unused {
        field: &'static str,
    },
    SameHash {
        hash: u64,
    },
    Overlap {
        other: String,
    },
    /// A tensor over the header or the directory.
    InDirectory,
    /// A tensor before the offset at which tensors are said to begin.
    BeforeData {
        offset: u64,
        data: u64,
    },
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Tokenizer,
    Data,
    Payload,
    Scales,
}

/// What a block size has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockSize {
    /// The columns of a row.
    Row(u64),
    /// Even, and a divisor of the columns.
    EvenPartOf(u64),
}

impl Violation {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }

    /// The error, at a byte of the file.
    pub(super) fn at(self, offset: u64) -> Error {
        Error::from(self).with_offset(offset)
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::TooShort { .. } => "truncated",
            Violation::Version { .. } => "version",
            Violation::Range { .. } | Violation::Directory { .. } => "bounds",
            Violation::Misaligned { .. } => "alignment",
            Violation::DType { .. } => "dtype",
            Violation::Rank { .. }
            | Violation::Dimension { .. }
            | Violation::Overflow
            | Violation::Length { .. } => "shape-size-mismatch",
            Violation::BlockSize { .. } => "attribute",
            Violation::NoScales => "missing-component",
            Violation::SameHash { .. } => "duplicate-name",
            Violation::Overlap { .. } | Violation::InDirectory => "overlap",
            Violation::Number { .. } => "value",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Tokenizer => "the tokenizer",
            What::Data => "the tensors' data",
            What::Payload => "values",
            What::Scales => "scales",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::TooShort { byte_len } => {
                write!(f, "the file ends after {byte_len} bytes, within the header")
            }
            Violation::Magic { found } => {
                write!(f, "begins with \"{}\", not \"SLM1\"", found.escape_ascii())
            }
            Violation::Version { found } => {
                write!(f, "version {found}: this reader knows version 1")
            }
            Violation::HeaderLength { found, byte_len } => write!(
                f,
                "a header of {found} bytes, at least 108 and at most the file's {byte_len} are possible"
            ),
            Violation::Flags { found } => {
                write!(f, "flags {found:#x}: only bit 0 has a meaning")
            }
            Violation::Zero { field } => write!(f, "{field} is zero"),
            Violation::NoChecksum => f.write_str("the checksum is zero"),
            Violation::Field {
                field,
                found,
                expected,
            } => write!(f, "{field} is {found}, expected {expected}"),
            Violation::Number { field, found } => {
                write!(f, "{field} is {found}, and has to be finite and positive")
            }
            Violation::HeadCount {
                heads,
                head_dim,
                hidden,
            } => write!(
                f,
                "{heads} heads of {head_dim} for a hidden size of {hidden}"
            ),
            Violation::KeyValueHeads { heads, kv_heads } => {
                write!(f, "{kv_heads} key-value heads do not divide {heads} heads")
            }
            Violation::Misaligned { field, offset } => {
                write!(f, "{field} is {offset}, no multiple of 64")
            }
            Violation::Range {
                what,
                offset,
                length,
                byte_len,
            } => write!(
                f,
                "{what}: {length} bytes at {offset}, the file has {byte_len}"
            ),
            Violation::Directory {
                tensors,
                offset,
                byte_len,
            } => write!(
                f,
                "a directory of {tensors} tensors at {offset}, the file has {byte_len} bytes"
            ),
            Violation::NoTokenizer => f.write_str("there is no tokenizer"),
            Violation::TokenizerMagic { found } => {
                write!(f, "the tokenizer begins with \"{}\"", found.escape_ascii())
            }
            Violation::TokenizerShort { length } => write!(f, "a tokenizer of {length} bytes"),
            Violation::TokenizerVocabulary { header, section } => write!(
                f,
                "a tokenizer of {section} tokens, the header says {header}"
            ),
            Violation::DType { code } => write!(f, "dtype code {code} is none of 1, 2, 3"),
            Violation::Rank { rank } => write!(f, "{rank} dimensions, 1 to 4 are possible"),
            Violation::Dimension { dim } => write!(f, "dimension {dim} is zero"),
            Violation::Overflow => f.write_str("the shape takes more than 2^64 bytes"),
            Violation::Length { expected, found } => {
                write!(
                    f,
                    "the shape takes {expected} bytes, byte_length is {found}"
                )
            }
            Violation::BlockSize { expected, found } => {
                write!(f, "block_size is {found}, expected ")?;
                match expected {
                    BlockSize::Row(columns) => write!(f, "the {columns} columns of a row"),
                    BlockSize::EvenPartOf(columns) => {
                        write!(f, "an even divisor of the {columns} columns of a row")
                    }
                }
            }
            Violation::NoScales => f.write_str("quantized, and scale_offset is zero"),
            Violation::Unused { field } => {
                write!(f, "{field} is set, and has no meaning here")
            }
            Violation::SameHash { hash } => write!(f, "two tensors of name hash {hash:#018x}"),
            Violation::Overlap { other } => {
                write!(f, "shares some of its bytes with {}", other.escape_debug())
            }
            Violation::InDirectory => f.write_str("shares bytes with the header or the directory"),
            Violation::BeforeData { offset, data } => {
                write!(f, "lies at {offset}, tensors are said to begin at {data}")
            }
        }
    }
}
