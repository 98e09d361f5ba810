//! The rules of SQUIZD, and the numbers in a file that breaks one.

use zt::{Error, ErrorKind, Span};

/// Why a file or a part of it is refused, or refused by strict readers only.
#[derive(Debug, thiserror::Error)]
pub(super) enum Violation {
    #[error("the file is truncated: it ends after {byte_len} bytes, within {section}")]
    Truncated { section: Section, byte_len: u64 },
    #[error("the file begins with \"{}\", not with \"SQZD\"", .found.escape_ascii())]
    Magic { found: [u8; 4] },
    #[error("version {found} is unsupported; version 1 is read")]
    Version { found: u16 },
    #[error("flags {found:#x} have reserved bits{}", old_flags(*found))]
    Flags { found: u32 },
    #[error("the file has no layers")]
    NoLayers,
    #[error("{layer_count} layers, the limit is {limit}")]
    ManyLayers { layer_count: u16, limit: u16 },
    #[error("the header has fields of an earlier draft of the format")]
    OlderHeader,
    #[error("a reserved byte is not zero")]
    Reserved,
    #[error("{section} without its flag")]
    Unflagged { section: Section },
    #[error("{section}: missing, although the flag is set")]
    Missing { section: Section },
    #[error("the CRC of the sparsity metadata is {computed:#010x}, the header has {stored:#010x}")]
    SparsityCrc { stored: u32, computed: u32 },
    #[error("version {found} of the sparsity metadata is unsupported; version 1 is read")]
    SparsityVersion { found: u32 },
    #[error("{sparse} layers with masks, but {layers} layers")]
    SparseLayers { sparse: u32, layers: u16 },
    #[error("the sparsity block size is 0")]
    SparsityBlockSize,
    #[error("the mean sparsity {found} is out of range: 0 to 1")]
    MeanSparsity { found: f32 },
    #[error("the hash of the draft metadata is {computed:#018x}, the header has {stored:#018x}")]
    DraftHash { stored: u64, computed: u64 },
    #[error("layer {found} follows layer {previous}; layers must ascend")]
    LayerOrder { previous: u32, found: u32 },
    #[error("layer {found} at position {position}")]
    LayerGap { position: u32, found: u32 },
    #[error("{section}: {length} bytes at {offset} leave the file of {byte_len} bytes")]
    Range { section: Section, offset: u64, length: u64, byte_len: u64 },
    #[error("the weights begin at {offset}, before the layer index ends at {table_end}")]
    InHeader { offset: u64, table_end: u64 },
    #[error("the layer has no weights")]
    NoWeights,
    #[error("the weights of layers {first} and {second} overlap")]
    LayersOverlap { first: u32, second: u32 },
    #[error("{byte_len} bytes beginning with \"{}\" are no tensor", .found.escape_ascii())]
    NoBlock { found: [u8; 4], byte_len: u64 },
    #[error("{} without its flag", .magic.escape_ascii())]
    BlockWithoutFlag { magic: [u8; 4] },
    #[error("the tensor is truncated: {available} bytes are too few for its fields")]
    BlockCut { available: u64 },
    /// `needed` is `None` beyond 2^64.
    #[error("{} takes {}, {available} follow", .magic.escape_ascii(), bytes(*needed))]
    BlockTooLong { magic: [u8; 4], needed: Option<u64>, available: u64 },
    #[error("the file has more than {limit} tensors")]
    TooManyBlocks { limit: usize },
    #[error("unknown dtype code {code}; 0, 1 and 2 are known")]
    DType { code: u32 },
    #[error("{rank} dimensions, the limit is {limit}")]
    Rank { rank: u32, limit: u32 },
    #[error("the shape takes more than 2^64 bytes")]
    Overflow,
    #[error("the length of a sub-block is 0")]
    NoSubBlockLen,
    #[error("ASTC footprint {code:#04x} is unsupported; 0x05 and 0x08 are read")]
    Footprint { code: u32 },
    #[error("the bitmap takes {bitmap_len} bytes, {available} follow")]
    Bitmap { bitmap_len: u64, available: u64 },
    #[error("scale_offset {offset} is neither a mask nor a scale table")]
    ScaleOffset { offset: u64 },
    #[error("the scale table does not follow the weights, which end at {expected}")]
    TablePlace { expected: u64 },
    #[error("quantized tensors, but no scale table")]
    NoTable,
    #[error("the scale table is truncated: {entries} entries in {available} bytes")]
    TableCut { entries: u32, available: u64 },
    #[error("{section} overlaps another part of the file")]
    SectionOverlap { section: Section },
    #[error("{found} scale entries, but {main} quantized tensors and {draft} in the draft head")]
    TableCount { found: u64, main: u64, draft: u64 },
    #[error("a sub-block entry of the tensor {tensor_id:#018x}, which does not exist")]
    Orphan { tensor_id: u64 },
    #[error("a sub-block entry of {tensor_id:#018x}, the id of several tensors")]
    Ambiguous { tensor_id: u64 },
    #[error("{found} sub-block entries, but {expected} sub-blocks")]
    SubBlocks { expected: u64, found: u64 },
    #[error("{entries} sub-block entries do not divide {values} values")]
    Undivided { values: u64, entries: u64 },
    #[error("scale {scale} or zero {zero} is not finite")]
    NotFinite { scale: f32, zero: f32 },
    #[error("the tensor's scales are unknown, because an earlier tensor is broken")]
    Unpaired,
    #[error("{section} begins with \"{}\"{}", .found.escape_ascii(), old_tool(found))]
    SectionMagic { section: Section, found: [u8; 4] },
    #[error("{section} has only {length} bytes")]
    SectionTooShort { section: Section, length: u64 },
    #[error("{section} draft layers, the header has {header}")]
    DraftLayers { header: u32, section: u32 },
    #[error("{} is invalid in the draft head", .magic.escape_ascii())]
    DraftEncoding { magic: [u8; 4] },
    #[error("{section} cannot be found, because an earlier part of the file is broken")]
    Unplaced { section: Section },
    #[error("the archive declares {declared} bytes, {available} follow")]
    AppendixLength { declared: u64, available: u64 },
    #[error("the length of the archive includes the 12 bytes before it")]
    AppendixHeaderCounted,
    #[error("{byte_len} bytes follow the last part of the file")]
    Trailing { byte_len: u64 },
}

fn old_flags(flags: u32) -> &'static str {
    match flags >> 7 & 3 {
        0 => "",
        1 => " (bit 7 once meant MXFP4)",
        2 => " (bit 8 once meant INT3)",
        _ => " (bits 7 and 8 once meant MXFP4 and INT3)",
    }
}

fn old_tool(magic: &[u8; 4]) -> &'static str {
    match magic {
        b"ANML" => ", a JSON manifest of an earlier tool without a model",
        b"EAGL" => ", a layout of an earlier tool",
        _ => "",
    }
}

fn bytes(needed: Option<u64>) -> String {
    needed.map_or("more than 2^64 bytes".to_owned(), |needed| format!("{needed} bytes"))
}

/// A part of a file.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(super) enum Section {
    #[error("the header")]
    Header,
    #[error("the layer index")]
    Index,
    #[error("the weights of a layer")]
    Weights,
    #[error("the sparsity metadata")]
    Sparsity,
    #[error("the draft head metadata")]
    DraftMetadata,
    #[error("the draft head hash")]
    DraftHash,
    #[error("the scale table")]
    Scales,
    #[error("the draft head")]
    Draft,
    #[error("the CoreML appendix")]
    Appendix,
}

impl Section {
    /// The range of a section, if it is within the file.
    pub(super) fn within(self, offset: u64, length: u64, byte_len: u64) -> Result<Span, Violation> {
        let span = Span::new(offset, length).filter(|span| span.end() <= byte_len);
        span.ok_or(Violation::Range { section: self, offset, length, byte_len })
    }
}

impl Violation {
    pub(super) fn at(self, offset: u64) -> Error {
        Error::from(self).with_offset(offset)
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        let (kind, code) = match violation {
            Violation::SparsityCrc { .. } | Violation::DraftHash { .. } => {
                (ErrorKind::DigestMismatch, "digest-mismatch")
            }
            Violation::Footprint { .. } => (ErrorKind::Unsupported, "unsupported"),
            Violation::TooManyBlocks { .. } => (ErrorKind::Limit, "header"),
            Violation::Truncated { .. } => (ErrorKind::Malformed, "truncated"),
            Violation::Version { .. } | Violation::SparsityVersion { .. } => {
                (ErrorKind::Malformed, "version")
            }
            Violation::Range { .. } | Violation::InHeader { .. } => {
                (ErrorKind::Malformed, "bounds")
            }
            Violation::LayersOverlap { .. } | Violation::SectionOverlap { .. } => {
                (ErrorKind::Malformed, "overlap")
            }
            Violation::BlockTooLong { .. }
            | Violation::Overflow
            | Violation::Bitmap { .. }
            | Violation::SubBlocks { .. }
            | Violation::Undivided { .. } => (ErrorKind::Malformed, "shape-size-mismatch"),
            Violation::DType { .. } => (ErrorKind::Malformed, "dtype"),
            Violation::NotFinite { .. } | Violation::MeanSparsity { .. } => {
                (ErrorKind::Malformed, "value")
            }
            Violation::NoTable => (ErrorKind::Malformed, "missing-component"),
            _ => (ErrorKind::Malformed, "header"),
        };
        Error::new(kind, code, violation)
    }
}
