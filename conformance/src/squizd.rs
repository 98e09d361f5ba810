//! SQUIZD files put together from parts, by code that shares nothing with the reader.
//!
//! [`Squizd::to_bytes`] lays the parts out as the specification does and fills in what follows from
//! them; tests then change single bytes, or parts.

/// A file in parts.
#[derive(Debug, Clone, Default)]
pub struct Squizd {
    /// Bits of the header. The parts set the bits of sparsity, draft head and appendix.
    pub flags: u32,
    /// In the order of the index.
    pub layers: Vec<Layer>,
    /// Tables, each with entries of an id, a scale and a zero.
    pub tables: Vec<Vec<(u64, f32, f32)>>,
    /// Metadata of sparsity: version, block size, layers with masks, and the mean.
    pub sparsity: Option<(u32, u32, u32, f32)>,
    /// Layers and blocks of the draft head.
    pub draft: Option<(u32, Vec<Vec<u8>>)>,
    /// The archive of the CoreML model.
    pub appendix: Option<Vec<u8>>,
    /// What follows all else.
    pub trailing: Vec<u8>,
}

/// The weights of a layer.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    /// Its number.
    pub idx: u32,
    /// Blocks back to back.
    pub blocks: Vec<Vec<u8>>,
    /// What follows them; `scale_offset` leads there.
    pub mask: Option<Vec<u8>>,
    /// The stored `scale_offset`, instead of the offset of the mask or of the tables.
    pub scale_offset: Option<u64>,
}

/// The bits of the header's flags.
pub mod flag {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const ASTC: u32 = 1;
    pub const TCA_TBE: u32 = 2;
    pub const INT4: u32 = 4;
    pub const SPARSE: u32 = 8;
    pub const EAGLE: u32 = 16;
    pub const INT2: u32 = 32;
    pub const ANE_COREML: u32 = 64;
}

/// A block of any magic: its fields, then its values.
#[must_use]
pub fn block(magic: &[u8; 4], fields: &[u32], values: &[u8]) -> Vec<u8> {
    let fields: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    [magic, &*fields, values].concat()
}

/// A plain block of f32.
#[must_use]
pub fn plain(shape: &[u32], values: &[f32]) -> Vec<u8> {
    let rank = shape.len() as u32;
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    block(b"NPCL", &[&[0, rank], shape].concat(), &bytes)
}

impl Squizd {
    /// A file of one layer with these blocks.
    #[must_use]
    pub fn one(flags: u32, blocks: Vec<Vec<u8>>) -> Self {
        Squizd { flags, layers: vec![Layer { blocks, ..Layer::default() }], ..Squizd::default() }
    }

    /// The file: header, index, layers, tables, draft head, appendix.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let index_len = 32 * self.layers.len();
        let mut body = vec![0; 256 + index_len];
        let mut places = Vec::new();
        for layer in &self.layers {
            let start = body.len() as u64;
            body.extend(layer.blocks.concat());
            let mask = layer.mask.as_ref().map(|_| body.len() as u64);
            body.extend(layer.mask.iter().flatten());
            places.push((start, body.len() as u64 - start, mask));
        }
        let tables = if self.tables.is_empty() { 0 } else { body.len() as u64 };
        for table in &self.tables {
            body.extend(b"SCZT");
            body.extend((table.len() as u32).to_le_bytes());
            for (id, scale, zero) in table {
                body.extend(id.to_le_bytes());
                body.extend(scale.to_le_bytes());
                body.extend(zero.to_le_bytes());
            }
        }
        let draft = self.draft.as_ref().map(|(layers, blocks)| {
            let start = body.len() as u64;
            body.extend(block(b"EGDH", &[*layers], &blocks.concat()));
            (start, body.len() as u64 - start, *layers)
        });
        if let Some(archive) = &self.appendix {
            body.extend(b"ANLX");
            body.extend((archive.len() as u64).to_le_bytes());
            body.extend(archive);
        }
        body.extend(&self.trailing);

        let mut index = Vec::new();
        for (layer, (start, byte_len, mask)) in self.layers.iter().zip(places) {
            let scale_offset = layer.scale_offset.or(mask).unwrap_or(tables);
            index.extend(layer.idx.to_le_bytes());
            for number in [start, byte_len, scale_offset] {
                index.extend(number.to_le_bytes());
            }
            index.extend([0; 4]);
        }
        body[256..256 + index_len].copy_from_slice(&index);
        body[..256].copy_from_slice(&self.header(draft));
        body
    }

    fn header(&self, draft: Option<(u64, u64, u32)>) -> [u8; 256] {
        let mut header = [0; 256];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        let set = |is_there: bool, flag| if is_there { flag } else { 0 };
        let flags = self.flags
            | set(self.sparsity.is_some(), flag::SPARSE)
            | set(draft.is_some(), flag::EAGLE)
            | set(self.appendix.is_some(), flag::ANE_COREML);
        put(0, b"SQZD");
        put(4, &1u16.to_le_bytes());
        put(6, &flags.to_le_bytes());
        put(10, &(self.layers.len() as u16).to_le_bytes());
        if let Some((version, block_size, layers, mean)) = self.sparsity {
            let numbers = [version, block_size, layers, mean.to_bits()];
            let metadata = [numbers.map(u32::to_le_bytes).concat(), vec![0; 16]].concat();
            put(14, &crc32(&metadata).to_le_bytes());
            put(128, &metadata);
        }
        if let Some((start, byte_len, layers)) = draft {
            let mut metadata = [start, byte_len].map(u64::to_le_bytes).concat();
            metadata.extend(layers.to_le_bytes());
            metadata.extend(100u32.to_le_bytes());
            metadata.resize(32, 0);
            put(18, &fnv1a(&metadata).to_le_bytes());
            put(160, &metadata);
        }
        header
    }
}

/// CRC-32 as in zip.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0xEDB8_8320))
    })
}

/// FNV-1a of 64 bits.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    })
}
