//! The header: the first 256 bytes.

use zt::{Attributes, Error, Result, Source};
use zt_foreign::{fields::Record, fnv1a};

use crate::violation::{Section, Violation};

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 4] = *b"SQZD";

/// Bytes of the header.
pub(super) const HEADER_LEN: usize = 256;

/// The most layers that the only known validator accepts.
pub(super) const LAYERS_MAX: u16 = 512;

/// The features that a file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags(pub(super) u32);

impl Flags {
    pub(super) const ASTC: Flags = Flags(1);
    pub(super) const TCA_TBE: Flags = Flags(1 << 1);
    pub(super) const INT4: Flags = Flags(1 << 2);
    pub(super) const SPARSE: Flags = Flags(1 << 3);
    pub(super) const EAGLE: Flags = Flags(1 << 4);
    pub(super) const INT2: Flags = Flags(1 << 5);
    pub(super) const ANE_COREML: Flags = Flags(1 << 6);
    const KNOWN: u32 = 0x7F;

    pub(super) const fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 == flag.0
    }
}

/// The checked header of a file.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) flags: Flags,
    pub(super) layer_count: u16,
    arch_id: u16,
    /// `None` if the flag is not set or the block is empty.
    pub(super) sparsity: Option<Sparsity>,
    /// `None` if the flag is not set.
    pub(super) draft: Option<DraftMetadata>,
}

/// Header bytes 128 to 159.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sparsity {
    block_size: u32,
    pub(super) layer_count: u32,
    mean: f32,
}

/// Header bytes 160 to 191.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftMetadata {
    pub(super) offset: u64,
    pub(super) byte_len: u64,
    pub(super) layer_count: u32,
    pub(super) vocab: u32,
    /// Whether all 32 bytes are zero.
    pub(super) is_empty: bool,
}

impl Header {
    /// Reads the header of the file in `source`. Faults that only strict readers refuse go to
    /// `tolerated`. A fault is an error if it leaves the rest of the file without a meaning.
    pub(super) fn read(source: &dyn Source, tolerated: &mut Vec<Error>) -> Result<Self> {
        let mut bytes = [0; HEADER_LEN];
        let byte_len = source.byte_len();
        if byte_len < HEADER_LEN as u64 {
            let section = Section::Header;
            return Err(Violation::Truncated { section, byte_len }.into());
        }
        source.read_at(0, &mut bytes)?;
        let record = Record(&bytes);
        let magic = record.bytes(0);
        if magic != MAGIC {
            return Err(Violation::Magic { found: magic }.at(0));
        }
        let version = record.u16(4);
        if version != 1 {
            return Err(Violation::Version { found: version }.at(4));
        }
        let flags = Flags(record.u32(6));
        if flags.0 & !Flags::KNOWN != 0 {
            return Err(Violation::Flags { found: flags.0 }.at(6));
        }
        let layer_count = record.u16(10);
        if layer_count == 0 {
            return Err(Violation::NoLayers.at(10));
        }
        if layer_count > LAYERS_MAX {
            let limit = LAYERS_MAX;
            tolerated.push(Violation::ManyLayers { layer_count, limit }.at(10));
        }
        reserved(&bytes, flags, tolerated);
        Ok(Header {
            flags,
            layer_count,
            arch_id: record.u16(12),
            sparsity: sparsity(record, flags, layer_count, tolerated)?,
            draft: draft(record, flags, tolerated)?,
        })
    }

    pub(super) fn to_attributes(&self) -> Attributes {
        let mut fields = Attributes::from([
            ("version", 1u64),
            ("flags", self.flags.0.into()),
            ("layer_count", self.layer_count.into()),
            ("arch_id", self.arch_id.into()),
        ]);
        // The names come from the project, not from the specification.
        let names = ["llama", "mistral", "qwen", "gemma", "deepseek", "phi"];
        let place = usize::from(self.arch_id).checked_sub(1);
        if let Some(name) = place.and_then(|place| names.get(place)) {
            fields.insert("arch", *name);
        }
        if let Some(sparsity) = &self.sparsity {
            let mut map = Attributes::from([
                ("block_size", u64::from(sparsity.block_size)),
                ("n_sparse_layers", sparsity.layer_count.into()),
            ]);
            map.insert("mean_sparsity", f64::from(sparsity.mean));
            fields.insert("sparsity", map);
        }
        if let Some(draft) = &self.draft {
            let map = Attributes::from([
                ("n_draft_layers", u64::from(draft.layer_count)),
                ("draft_vocab", draft.vocab.into()),
            ]);
            fields.insert("draft", map);
        }
        Attributes::from([("squizd", fields)])
    }
}

/// Reports reserved bytes that are not zero, and blocks without their flag.
fn reserved(bytes: &[u8; HEADER_LEN], flags: Flags, tolerated: &mut Vec<Error>) {
    let first = |start: usize, end: usize| {
        let mut bytes = bytes.iter().enumerate().take(end).skip(start);
        bytes.find_map(|(at, byte)| (*byte != 0).then_some(at))
    };
    // An earlier header with this magic and version had its fields here, and zeros after them.
    if first(26, 52).is_some() && first(52, 256).is_none() {
        tolerated.push(Violation::OlderHeader.at(26));
        return;
    }
    for (start, end) in [(26, 128), (192, 256)] {
        if let Some(at) = first(start, end) {
            tolerated.push(Violation::Reserved.at(at as u64));
        }
    }
    let blocks = [
        (128, 160, Flags::SPARSE, Section::Sparsity),
        (160, 192, Flags::EAGLE, Section::DraftMetadata),
        (18, 26, Flags::EAGLE, Section::DraftHash),
    ];
    for (start, end, flag, section) in blocks {
        if !flags.has(flag) && first(start, end).is_some() {
            tolerated.push(Violation::Unflagged { section }.at(start as u64));
        }
    }
}

fn sparsity(
    record: Record<'_>,
    flags: Flags,
    layer_count: u16,
    tolerated: &mut Vec<Error>,
) -> Result<Option<Sparsity>> {
    if !flags.has(Flags::SPARSE) {
        return Ok(None);
    }
    let block: [u8; 32] = record.bytes(128);
    let (stored, computed) = (record.u32(14), crc32fast::hash(&block));
    if stored == 0 && block == [0; 32] {
        let section = Section::Sparsity;
        tolerated.push(Violation::Missing { section }.at(128));
        return Ok(None);
    }
    if stored != computed {
        return Err(Violation::SparsityCrc { stored, computed }.at(14));
    }
    let block = Record(&block);
    let version = block.u32(0);
    if version != 1 {
        return Err(Violation::SparsityVersion { found: version }.at(128));
    }
    let sparsity =
        Sparsity { block_size: block.u32(4), layer_count: block.u32(8), mean: block.f32(12) };
    if sparsity.layer_count > layer_count.into() {
        let (sparse, layers) = (sparsity.layer_count, layer_count);
        return Err(Violation::SparseLayers { sparse, layers }.at(136));
    }
    if sparsity.block_size == 0 {
        tolerated.push(Violation::SparsityBlockSize.at(132));
    }
    if !(0.0..=1.0).contains(&sparsity.mean) {
        let found = sparsity.mean;
        tolerated.push(Violation::MeanSparsity { found }.at(140));
    }
    if block.bytes(16) != [0; 16] {
        tolerated.push(Violation::Reserved.at(144));
    }
    Ok(Some(sparsity))
}

fn draft(
    record: Record<'_>,
    flags: Flags,
    tolerated: &mut Vec<Error>,
) -> Result<Option<DraftMetadata>> {
    if !flags.has(Flags::EAGLE) {
        return Ok(None);
    }
    let block: [u8; 32] = record.bytes(160);
    // The hash covers the metadata and not the draft head, as in the project's code.
    let (stored, computed) = (record.u64(18), fnv1a(block));
    if stored != 0 && stored != computed {
        return Err(Violation::DraftHash { stored, computed }.at(18));
    }
    let block = Record(&block);
    if block.bytes(24) != [0; 8] {
        tolerated.push(Violation::Reserved.at(184));
    }
    Ok(Some(DraftMetadata {
        offset: block.u64(0),
        byte_len: block.u64(8),
        layer_count: block.u32(16),
        vocab: block.u32(20),
        is_empty: block.bytes(0) == [0; 32],
    }))
}
