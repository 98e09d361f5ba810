//! An array in quantized blocks.

use std::borrow::Cow;

use zt_formats::{
    Buffer, Bytes, Dense, Elements, Error, NewObject, ObjectFormat, Parts, Registry, Result,
    ToObject, Unsupported,
};
use zt_manifest::memory::in_memory;
use zt_manifest::{Attributes, ByteOrder, DType, Text};

use crate::format::{BYTE_ORDER, BlockFormat, DATA, byte_order};
use crate::types::BlockType;

/// An array whose rows are quantized blocks of one [`BlockType`]. Always well-formed.
///
/// ```
/// use zt_ggml::{BlockType, Blocks};
///
/// // One block of Q8_0: the scale 0.5 as f16, then 32 values of 8 bits.
/// let mut block = vec![0x00, 0x38];
/// block.extend(0..32);
/// let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
/// let blocks = Blocks::new(q8_0, [1, 32], &block[..])?;
/// assert_eq!(blocks.to_dense()?.as_slice::<f32>()?[31], 15.5);
/// # Ok::<(), zt_formats::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks<'a> {
    block_type: &'static BlockType,
    shape: Vec<u64>,
    count: u64,
    order: ByteOrder,
    bytes: Bytes<'a>,
}

impl<'a> Blocks<'a> {
    /// An array of `shape` in little-endian blocks, row after row.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`BlockFormat`].
    pub fn new(
        block_type: &'static BlockType,
        shape: impl Into<Vec<u64>>,
        bytes: impl Into<Bytes<'a>>,
    ) -> Result<Self> {
        let elements = Elements::new(DType::U8, bytes);
        let parts = Parts {
            shape: Cow::Owned(shape.into()),
            attributes: Cow::Owned(Attributes::new()),
            elements: vec![(Text::Borrowed(DATA), elements)],
        };
        Self::from_parts(block_type, parts)
    }

    /// The view of an object of this type's format. Bytes stay borrowed.
    ///
    /// # Errors
    ///
    /// Malformed: a rule of [`BlockFormat`].
    pub fn from_parts(block_type: &'static BlockType, mut parts: Parts<'a>) -> Result<Self> {
        BlockFormat(block_type).check(&parts.signature(), &Registry::builtin())?;
        Ok(Blocks {
            block_type,
            count: parts.signature().element_count(DATA)?,
            order: byte_order(&parts.attributes)?,
            bytes: parts.take(DATA)?.bytes,
            shape: parts.shape.into_owned(),
        })
    }

    /// The type of the blocks.
    pub const fn block_type(&self) -> &'static BlockType {
        self.block_type
    }

    /// The dimensions, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The byte order of the blocks' fields.
    pub const fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The blocks as they are stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The values as f32, bit for bit as `gguf-py` gives them if it has the type.
    ///
    /// # Errors
    ///
    /// Unsupported: big-endian blocks of a type without a defined big-endian form. Allocation.
    pub fn to_dense(&self) -> Result<Dense<'static>> {
        let mut out = Buffer::try_zeroed_values(self.count, 4)?;
        self.decode_into(&mut out)?;
        Dense::from_elements(self.shape.clone(), Elements::new(DType::F32, out))
    }

    /// Writes the values to `out`, as many as fit.
    pub(crate) fn decode_into(&self, out: &mut [u8]) -> Result<()> {
        if !self.block_type.is_known_in(self.order) {
            let id = Text::Borrowed(self.block_type.format());
            return Err(Error::Unsupported(Unsupported::BigEndian(id)));
        }
        let (places, _) = out.as_chunks_mut::<4>();
        match self.order {
            ByteOrder::Little => self.block_type.dequantize(&self.bytes, places),
            ByteOrder::Big => self.dequantize_swapped(places),
        }
        Ok(())
    }

    /// Decodes through a little-endian copy of each block.
    fn dequantize_swapped(&self, out: &mut [[u8; 4]]) {
        let blocks = self.bytes.chunks(in_memory(self.block_type.block_byte_len()));
        let mut block = Vec::new();
        for (bytes, out) in blocks.zip(out.chunks_mut(in_memory(self.block_type.block_len()))) {
            block.clear();
            block.extend_from_slice(bytes);
            self.block_type.swap(&mut block);
            self.block_type.dequantize(&block, out);
        }
    }
}

impl ToObject for Blocks<'_> {
    fn to_object(&self) -> Result<NewObject<'_>> {
        let elements = Elements::new(DType::U8, Bytes::Borrowed(&self.bytes));
        let is_big = self.order == ByteOrder::Big;
        let attributes = is_big.then(|| [(BYTE_ORDER, "big")].into());
        let format = self.block_type.format();
        Ok(NewObject::new(&self.shape, format, attributes, [(DATA, elements)]))
    }
}
