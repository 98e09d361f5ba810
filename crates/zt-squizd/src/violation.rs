//! The rules of SQUIZD, each with the numbers that break it.

use std::fmt;

use zt::{Error, ErrorKind};
use zt_foreign::is_an_error;

/// Why a file or a part of it is refused, or minded by strict readers.
#[derive(Debug)]
pub(super) enum Violation {
    Truncated {
        section: Section,
        byte_len: u64,
    },
    Magic {
        found: [u8; 4],
    },
    Version {
        found: u16,
    },
    Flags {
        found: u32,
    },
    NoLayers,
    ManyLayers {
        layer_count: u16,
        limit: u16,
    },
    /// Fields of an earlier draft of the same magic and version.
    OlderHeader,
    /// A reserved byte that is not zero.
    Reserved,
    /// Something that is there although its flag is not set.
    Unflagged {
        section: Section,
    },
    /// The sparsity flag and an empty block.
    NoSparsity,
    SparsityCrc {
        stored: u32,
        computed: u32,
    },
    SparsityVersion {
        found: u32,
    },
    SparseLayers {
        sparse: u32,
        layers: u16,
    },
    SparsityBlockSize,
    MeanSparsity {
        found: f32,
    },
    DraftHash {
        stored: u64,
        computed: u64,
    },
    LayerOrder {
        previous: u32,
        found: u32,
    },
    LayerGap {
        position: u32,
        found: u32,
    },
    Range {
        section: Section,
        offset: u64,
        length: u64,
        byte_len: u64,
    },
    InHeader {
        offset: u64,
        table_end: u64,
    },
    NoWeights,
    LayersOverlap {
        first: u32,
        second: u32,
    },
    /// Bytes where a block has to begin.
    NoBlock {
        found: [u8; 4],
        byte_len: u64,
    },
    BlockWithoutFlag {
        magic: [u8; 4],
    },
    BlockCut {
        available: u64,
    },
    BlockTooLong {
        magic: [u8; 4],
        /// `None` past 2^64.
        needed: Option<u64>,
        available: u64,
    },
    TooManyBlocks {
        limit: usize,
    },
    DType {
        code: u32,
    },
    Rank {
        rank: u32,
        limit: u32,
    },
    Overflow,
    NoSubBlockLen,
    Footprint {
        code: u32,
    },
    Bitmap {
        bitmap_len: u64,
        available: u64,
    },
    /// A scale offset that leads to nothing.
    ScaleOffset {
        offset: u64,
    },
    /// A table that does not follow the weights.
    TablePlace {
        expected: u64,
    },
    NoTable,
    TableCut {
        entries: u32,
        available: u64,
    },
    /// A section that shares bytes with another.
    SectionOverlap {
        section: Section,
    },
    TableCount {
        found: u64,
        main: u64,
        draft: u64,
    },
    /// A sub-block entry that no tensor has.
    Orphan {
        tensor_id: u64,
    },
    /// A sub-block entry that several tensors could have.
    Ambiguous {
        tensor_id: u64,
    },
    SubBlocks {
        expected: u64,
        found: u64,
    },
    /// INT4 values that the entries do not divide.
    Undivided {
        values: u64,
        entries: u64,
    },
    NotFinite {
        scale: f32,
        zero: f32,
    },
    /// Entries behind a broken layer: nobody can tell whose they are.
    Unpaired,
    NoDraft,
    SectionMagic {
        section: Section,
        found: [u8; 4],
    },
    SectionTooShort {
        section: Section,
        length: u64,
    },
    DraftLayers {
        header: u32,
        section: u32,
    },
    DraftEncoding {
        magic: [u8; 4],
    },
    /// The section before could not be followed to its end.
    Unplaced {
        section: Section,
    },
    NoAppendix,
    AppendixLength {
        declared: u64,
        available: u64,
    },
    /// A length that counts the twelve bytes before the archive.
    AppendixHeaderCounted,
    Trailing {
        byte_len: u64,
    },
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Header,
    Index,
    Weights,
    Sparsity,
    DraftMetadata,
    DraftHash,
    Scales,
    Draft,
    Appendix,
}

impl Violation {
    /// The error, at a byte of the file.
    pub(super) fn at(self, offset: u64) -> Error {
        Error::from(self).with_offset(offset)
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Violation::SparsityCrc { .. } | Violation::DraftHash { .. } => {
                ErrorKind::DigestMismatch
            }
            Violation::Footprint { .. } => ErrorKind::Unsupported,
            Violation::TooManyBlocks { .. } => ErrorKind::Limit,
            _ => ErrorKind::Malformed,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Truncated { .. } => "truncated",
            Violation::Version { .. } | Violation::SparsityVersion { .. } => "version",
            Violation::SparsityCrc { .. } | Violation::DraftHash { .. } => "digest-mismatch",
            Violation::Range { .. } | Violation::InHeader { .. } => "bounds",
            Violation::LayersOverlap { .. } | Violation::SectionOverlap { .. } => "overlap",
            Violation::BlockTooLong { .. }
            | Violation::Overflow
            | Violation::Bitmap { .. }
            | Violation::SubBlocks { .. }
            | Violation::Undivided { .. } => "shape-size-mismatch",
            Violation::DType { .. } => "dtype",
            Violation::Footprint { .. } => "unsupported",
            Violation::NotFinite { .. } | Violation::MeanSparsity { .. } => "value",
            Violation::NoTable => "missing-component",
            _ => "header",
        }
    }
}

is_an_error!(Violation);

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Section::Header => "the header",
            Section::Index => "the layer index",
            Section::Weights => "the weights of a layer",
            Section::Sparsity => "sparsity metadata",
            Section::DraftMetadata => "draft head metadata",
            Section::DraftHash => "a draft head hash",
            Section::Scales => "the scale table",
            Section::Draft => "the draft head",
            Section::Appendix => "the CoreML appendix",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Truncated { section, byte_len } => {
                write!(f, "the file ends after {byte_len} bytes, within {section}")
            }
            Violation::Magic { found } => {
                write!(f, "begins with \"{}\", not \"SQZD\"", found.escape_ascii())
            }
            Violation::Version { found } => {
                write!(f, "version {found}: this reader knows version 1")
            }
            Violation::Flags { found } => {
                write!(f, "flags {found:#x} have reserved bits")?;
                f.write_str(match found >> 7 & 3 {
                    0 => "",
                    1 => " (bit 7 once meant MXFP4)",
                    2 => " (bit 8 once meant INT3)",
                    _ => " (bits 7 and 8 once meant MXFP4 and INT3)",
                })
            }
            Violation::NoLayers => f.write_str("there are no layers"),
            Violation::ManyLayers { layer_count, limit } => {
                write!(f, "{layer_count} layers, more than {limit}")
            }
            Violation::OlderHeader => {
                f.write_str("the header carries fields of an earlier draft of the format")
            }
            Violation::Reserved => f.write_str("a reserved byte is not zero"),
            Violation::Unflagged { section } => write!(f, "{section} without its flag"),
            Violation::NoSparsity => f.write_str("the sparsity flag is set, its metadata are not"),
            Violation::SparsityCrc { stored, computed } => write!(
                f,
                "the header has {stored:#010x} for the sparsity metadata, they give {computed:#010x}"
            ),
            Violation::SparsityVersion { found } => {
                write!(
                    f,
                    "sparsity metadata of version {found}: this reader knows 1"
                )
            }
            Violation::SparseLayers { sparse, layers } => {
                write!(f, "{sparse} layers with masks of {layers} layers")
            }
            Violation::SparsityBlockSize => f.write_str("sparsity blocks of no size"),
            Violation::MeanSparsity { found } => {
                write!(f, "the mean sparsity is {found}, not from 0 to 1")
            }
            Violation::DraftHash { stored, computed } => write!(
                f,
                "the header has {stored:#018x} for the draft metadata, they give {computed:#018x}"
            ),
            Violation::LayerOrder { previous, found } => {
                write!(f, "layer {found} after layer {previous}: the index ascends")
            }
            Violation::LayerGap { position, found } => {
                write!(f, "layer {found} where layer {position} was to be")
            }
            Violation::Range {
                section,
                offset,
                length,
                byte_len,
            } => write!(
                f,
                "{section}: {length} bytes at {offset}, the file has {byte_len}"
            ),
            Violation::InHeader { offset, table_end } => {
                write!(
                    f,
                    "weights at {offset}, the layer index ends at {table_end}"
                )
            }
            Violation::NoWeights => f.write_str("a layer without weights"),
            Violation::LayersOverlap { first, second } => {
                write!(f, "the weights of layers {first} and {second} overlap")
            }
            Violation::NoBlock { found, byte_len } => write!(
                f,
                "{byte_len} bytes beginning with \"{}\" are no tensor",
                found.escape_ascii()
            ),
            Violation::BlockWithoutFlag { magic } => {
                write!(f, "{} without its flag", magic.escape_ascii())
            }
            Violation::BlockCut { available } => {
                write!(
                    f,
                    "a tensor of {available} bytes, too few for its own fields"
                )
            }
            Violation::BlockTooLong {
                magic,
                needed,
                available,
            } => {
                write!(f, "{} takes ", magic.escape_ascii())?;
                match needed {
                    Some(needed) => write!(f, "{needed} bytes")?,
                    None => f.write_str("more than 2^64 bytes")?,
                }
                write!(f, ", there are {available}")
            }
            Violation::TooManyBlocks { limit } => write!(f, "more than {limit} tensors"),
            Violation::DType { code } => write!(f, "dtype code {code} is none of 0, 1, 2"),
            Violation::Rank { rank, limit } => {
                write!(f, "{rank} dimensions, the limit is {limit}")
            }
            Violation::Overflow => f.write_str("the shape takes more than 2^64 bytes"),
            Violation::NoSubBlockLen => f.write_str("sub-blocks of no values"),
            Violation::Footprint { code } => {
                write!(f, "ASTC footprint {code:#04x} is neither 0x05 nor 0x08")
            }
            Violation::Bitmap {
                bitmap_len,
                available,
            } => write!(
                f,
                "the bitmap takes {bitmap_len} bytes, there are {available}"
            ),
            Violation::ScaleOffset { offset } => {
                write!(
                    f,
                    "scale_offset {offset} leads to no mask and no scale table"
                )
            }
            Violation::TablePlace { expected } => {
                write!(
                    f,
                    "a scale table that does not follow the weights, which end at {expected}"
                )
            }
            Violation::NoTable => f.write_str("quantized tensors, and no scale table"),
            Violation::TableCut { entries, available } => {
                write!(f, "a scale table of {entries} entries in {available} bytes")
            }
            Violation::SectionOverlap { section } => {
                write!(f, "{section} shares bytes with another part of the file")
            }
            Violation::TableCount { found, main, draft } => write!(
                f,
                "{found} scale entries for {main} quantized tensors and {draft} of the draft head"
            ),
            Violation::Orphan { tensor_id } => {
                write!(f, "a sub-block of {tensor_id:#018x}, and no such tensor")
            }
            Violation::Ambiguous { tensor_id } => {
                write!(
                    f,
                    "a sub-block of {tensor_id:#018x}, which several tensors are"
                )
            }
            Violation::SubBlocks { expected, found } => {
                write!(f, "{found} sub-block entries for {expected} sub-blocks")
            }
            Violation::Undivided { values, entries } => {
                write!(
                    f,
                    "{entries} sub-block entries do not divide {values} values"
                )
            }
            Violation::NotFinite { scale, zero } => {
                write!(f, "scale {scale} and zero {zero} have to be finite")
            }
            Violation::Unpaired => {
                f.write_str("its scales cannot be told from others: a tensor before it is broken")
            }
            Violation::NoDraft => f.write_str("the draft flag is set, its metadata are not"),
            Violation::SectionMagic { section, found } => {
                write!(f, "{section} begins with \"{}\"", found.escape_ascii())?;
                f.write_str(match found {
                    b"ANML" => ": a JSON manifest of an earlier tool, without a model",
                    b"EAGL" => ": a layout of an earlier tool",
                    _ => "",
                })
            }
            Violation::SectionTooShort { section, length } => {
                write!(f, "{section} of {length} bytes")
            }
            Violation::DraftLayers { header, section } => {
                write!(f, "{section} draft layers, the header says {header}")
            }
            Violation::DraftEncoding { magic } => {
                write!(f, "{} in the draft head", magic.escape_ascii())
            }
            Violation::Unplaced { section } => write!(
                f,
                "{section} cannot be found: the part of the file before it is broken"
            ),
            Violation::NoAppendix => f.write_str("the CoreML flag is set, and nothing is there"),
            Violation::AppendixLength {
                declared,
                available,
            } => write!(f, "an archive of {declared} bytes in {available}"),
            Violation::AppendixHeaderCounted => {
                f.write_str("the length of the archive counts the 12 bytes before it")
            }
            Violation::Trailing { byte_len } => {
                write!(f, "{byte_len} bytes after the last part of the file")
            }
        }
    }
}
