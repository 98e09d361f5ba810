//! The rules of SLM1, and the numbers in a file that breaks one.

use zt::{Error, ErrorKind, Span};

/// Why a file or a tensor is refused, or refused by strict readers only.
#[derive(Debug, thiserror::Error)]
pub(super) enum Violation {
    #[error("the file is truncated: it ends after {byte_len} bytes, within the header")]
    TooShort { byte_len: u64 },
    #[error("the file begins with \"{}\", not with \"SLM1\"", .found.escape_ascii())]
    Magic { found: [u8; 4] },
    #[error("version {found} is unsupported; version 1 is read")]
    Version { found: u32 },
    #[error("the header length {found} is out of range: 108 to the file's {byte_len} bytes")]
    HeaderLength { found: u32, byte_len: u64 },
    #[error("flags {found:#x} have reserved bits; only bit 0 is defined")]
    Flags { found: u32 },
    #[error("{field} is zero")]
    Zero { field: &'static str },
    #[error("{field} is {found}, expected {expected}")]
    Field { field: &'static str, found: u32, expected: &'static str },
    #[error("{field} is {found}, not a finite positive number")]
    Number { field: &'static str, found: f32 },
    #[error("{heads} heads of size {head_dim}, but a hidden size of {hidden}")]
    HeadCount { heads: u32, head_dim: u32, hidden: u32 },
    #[error("{kv_heads} key-value heads do not divide {heads} heads")]
    KeyValueHeads { heads: u32, kv_heads: u32 },
    #[error("{field} is {offset}, not a multiple of 64")]
    Misaligned { field: &'static str, offset: u64 },
    /// `length` is `None` beyond 2^64.
    #[error("{what}: {} at {offset} leave the file of {byte_len} bytes", bytes(*length))]
    Range { what: What, offset: u64, length: Option<u64>, byte_len: u64 },
    #[error("the tokenizer is missing")]
    NoTokenizer,
    #[error("the tokenizer begins with \"{}\", which is unknown", .found.escape_ascii())]
    TokenizerMagic { found: [u8; 4] },
    #[error("the tokenizer has an invalid length of {length} bytes")]
    TokenizerShort { length: u64 },
    #[error("the tokenizer has {section} tokens, the header has {header}")]
    TokenizerVocabulary { header: u32, section: u32 },
    #[error("unknown dtype code {code}; 1, 2 and 3 are known")]
    DType { code: u32 },
    #[error("{rank} dimensions are out of range: 1 to 4")]
    Rank { rank: u32 },
    #[error("dimension {dim} is zero")]
    Dimension { dim: usize },
    #[error("the shape takes more than 2^64 bytes")]
    Overflow,
    #[error("the shape takes {expected} bytes, byte_length is {found}")]
    Length { expected: u64, found: u64 },
    #[error("block_size is {found}, expected the {columns} columns of a row")]
    RowLen { columns: u64, found: u32 },
    #[error("block_size is {found}, expected an even divisor of the {columns} columns of a row")]
    PartLen { columns: u64, found: u32 },
    #[error("the tensor is quantized, but scale_offset is zero")]
    NoScales,
    #[error("{field} is not zero, but has no meaning here")]
    Unused { field: &'static str },
    #[error("duplicate name hash {hash:#018x}")]
    SameHash { hash: u64 },
    #[error("overlaps {}", .other.escape_debug())]
    Overlap { other: String },
    #[error("overlaps the header or the directory")]
    InDirectory,
    #[error("begins at {offset}, before tensor_data_offset {data}")]
    BeforeData { offset: u64, data: u64 },
}

fn bytes(length: Option<u64>) -> String {
    length.map_or("more than 2^64 bytes".to_owned(), |length| format!("{length} bytes"))
}

/// A range of a file.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(super) enum What {
    #[error("the tokenizer")]
    Tokenizer,
    #[error("the directory")]
    Directory,
    #[error("the tensors' data")]
    Data,
    #[error("the values")]
    Payload,
    #[error("the scales")]
    Scales,
}

impl What {
    /// The range, if it is within the file. Its length is `None` beyond 2^64.
    pub(super) fn within(
        self,
        offset: u64,
        length: Option<u64>,
        byte_len: u64,
    ) -> Result<Span, Violation> {
        let span = length.and_then(|length| Span::new(offset, length));
        let span = span.filter(|span| span.end() <= byte_len);
        span.ok_or(Violation::Range { what: self, offset, length, byte_len })
    }
}

impl Violation {
    pub(super) fn at(self, offset: u64) -> Error {
        Error::from(self).with_offset(offset)
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        let code = match violation {
            Violation::TooShort { .. } => "truncated",
            Violation::Version { .. } => "version",
            Violation::Range { .. } => "bounds",
            Violation::Misaligned { .. } => "alignment",
            Violation::DType { .. } => "dtype",
            Violation::Rank { .. }
            | Violation::Dimension { .. }
            | Violation::Overflow
            | Violation::Length { .. } => "shape-size-mismatch",
            Violation::RowLen { .. } | Violation::PartLen { .. } => "attribute",
            Violation::NoScales => "missing-component",
            Violation::SameHash { .. } => "duplicate-name",
            Violation::Overlap { .. } | Violation::InDirectory => "overlap",
            Violation::Number { .. } => "value",
            _ => "header",
        };
        Error::new(ErrorKind::Malformed, code, violation)
    }
}
