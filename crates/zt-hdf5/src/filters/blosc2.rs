//! The filter Blosc 2: a frame with one chunk.
//!
//! ```text
//! header   chunk of Blosc   index: a chunk of Blosc with the offset of the chunk   trailer
//! ```
//!
//! The header is msgpack, with each number at a fixed place. Its last part has named layers. The layer `b2nd`
//! has the shape of the chunk and of its blocks. The blocks of such a chunk have more dimensions than one, and
//! those at the end are filled up.
//!
//! Reference: "Blosc2 Contiguous Frame Format", `README_CFRAME_FORMAT.rst`, and `README_B2ND_METALAYER.rst` of
//! C-Blosc2; `blosc2_filter.c` of hdf5plugin.

use zt::Result;
use zt::container::memory::zeroed;

use crate::bytes::fault::Hdf5Fault;
use crate::filters::blosc::{self, Chunk};

/// The most dimensions of a chunk: `BLOSC2_MAX_DIM`.
const RANK_MAX: usize = 8;

/// Decodes a frame; `limit` is the most bytes that its chunk may have.
pub(super) fn decode(bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
    let frame = Frame::read(bytes).ok_or_else(invalid)?;
    let chunk = frame.chunk()?;
    if let Some(layer) = frame.layer(b"b2nd") {
        let grid = Grid::read(layer, frame.element_len).filter(|grid| grid.byte_len <= limit);
        return grid.ok_or_else(invalid)?.decode(chunk);
    }
    match chunk {
        Some(chunk) => blosc::decode(chunk, limit),
        None if frame.byte_len <= limit => Ok(zeroed(frame.byte_len as u64)?),
        None => Err(invalid()),
    }
}

struct Frame<'b> {
    bytes: &'b [u8],
    header_len: usize,
    /// Decoded bytes.
    byte_len: usize,
    /// Bytes of the chunk.
    stored_len: usize,
    element_len: usize,
}

impl<'b> Frame<'b> {
    fn read(bytes: &'b [u8]) -> Option<Self> {
        const MAGIC: &[u8] = b"\xA8b2frame\0";
        let is_frame = bytes.get(1..)?.starts_with(MAGIC);
        is_frame.then_some(Frame {
            bytes,
            header_len: u32_at(bytes, 0x0B)?,
            byte_len: u64_at(bytes, 0x1E)?,
            stored_len: u64_at(bytes, 0x27)?,
            element_len: u32_at(bytes, 0x30)?,
        })
    }

    /// The chunk; `None` for zeros, which have none.
    fn chunk(&self) -> Result<Option<&'b [u8]>> {
        /// The last byte of an offset that is none: the lower bits say what stands for the chunk.
        const ZERO: u8 = 0x81;
        const UNINITIALIZED: u8 = 0x84;
        let end = self.header_len.checked_add(self.stored_len);
        let index = end.and_then(|end| self.bytes.get(end..));
        let index = blosc::decode(index.ok_or_else(invalid)?, 8)?;
        let offset = *index.first_chunk::<8>().ok_or_else(invalid)?;
        if matches!(offset, [.., ZERO | UNINITIALIZED]) {
            return Ok(None);
        }
        let offset = usize::try_from(u64::from_le_bytes(offset)).ok();
        let start = offset.and_then(|offset| offset.checked_add(self.header_len));
        let chunk = start.and_then(|start| self.bytes.get(start..));
        Ok(Some(chunk.ok_or_else(invalid)?))
    }

    /// The content of a layer; `None` if there is none.
    fn layer(&self, wanted: &[u8]) -> Option<&'b [u8]> {
        /// The number of layers. Their names and places follow.
        const COUNT: usize = 0x5C;
        let header = self.bytes.get(..self.header_len)?;
        let mut rest = header.get(COUNT..)?;
        for _ in 0..u16::from_be_bytes(*rest.split_off(..2)?.first_chunk()?) {
            let name_len = rest.split_off_first()? & 0x1F;
            let name = rest.split_off(..name_len.into())?;
            let place = rest.split_off(..5)?;
            if name == wanted {
                return header.get(u32_at(place, 1)?..)?.get(5..);
            }
        }
        None
    }
}

/// The dimensions of a chunk and of its blocks, slowest first.
struct Grid {
    shape: Vec<usize>,
    block: Vec<usize>,
    element_len: usize,
    /// Bytes of the chunk, and of a block.
    byte_len: usize,
    block_len: usize,
    /// Bytes of all blocks.
    filled_len: usize,
}

impl Grid {
    fn read(layer: &[u8], element_len: usize) -> Option<Self> {
        /// All blocks may have so many times the bytes of the chunk.
        const FILLED_MAX: usize = 16;
        let rank = usize::from(*layer.get(2)?);
        let mut rest = layer.get(3..)?;
        let mut dimensions = |len: usize| {
            // A mark of the list, and one of each number.
            rest.split_off_first()?;
            let numbers = rest.split_off(..rank.checked_mul(len)?)?;
            let numbers = numbers.chunks_exact(len).map(|number| match len {
                9 => u64_at(number, 1),
                _ => u32_at(number, 1),
            });
            numbers.collect::<Option<Vec<usize>>>()
        };
        let whole = dimensions(9)?;
        let (shape, block) = (dimensions(5)?, dimensions(5)?);
        let is_valid = (1..=RANK_MAX).contains(&rank)
            && whole == shape
            && shape.iter().zip(&block).all(|(dim, block)| (1..=*dim).contains(block));
        if !is_valid {
            return None;
        }
        let byte_len = |dimensions: &[usize]| {
            let mut dimensions = dimensions.iter();
            dimensions.try_fold(element_len, |len, dim| len.checked_mul(*dim))
        };
        let filled = shape.iter().zip(&block);
        let filled: Option<Vec<usize>> =
            filled.map(|(dim, block)| dim.checked_next_multiple_of(*block)).collect();
        let (filled_len, chunk_len) = (byte_len(&filled?)?, byte_len(&shape)?);
        let block_len = byte_len(&block)?;
        let is_sound = filled_len <= chunk_len.checked_mul(FILLED_MAX)?;
        is_sound.then_some(Grid {
            shape,
            block,
            element_len,
            byte_len: chunk_len,
            block_len,
            filled_len,
        })
    }

    /// Puts the values of all blocks into their places.
    fn decode(&self, chunk: Option<&[u8]>) -> Result<Vec<u8>> {
        let mut out = zeroed(self.byte_len as u64)?;
        let Some(chunk) = chunk else {
            return Ok(out);
        };
        let chunk = Chunk::read(chunk, self.filled_len)?;
        if (chunk.byte_len, chunk.block_len) != (self.filled_len, self.block_len) {
            return Err(invalid());
        }
        let row_len = self.block.last().and_then(|dim| dim.checked_mul(self.element_len));
        let row_len = row_len.filter(|len| *len > 0).ok_or_else(invalid)?;
        let mut zstd = None;
        for at in 0..chunk.blocks() {
            let block = chunk.block(at, &mut zstd)?;
            for (row, values) in block.chunks_exact(row_len).enumerate() {
                let Some((start, len)) = self.place(at, row) else {
                    continue;
                };
                let to = out.get_mut(start..).and_then(|rest| rest.get_mut(..len));
                let values = to.zip(values.get(..len));
                let (to, values) = values.ok_or_else(invalid)?;
                to.copy_from_slice(values);
            }
        }
        Ok(out)
    }

    /// Where the values of a row of a block begin in the chunk, and how many bytes of it are there; `None` for a
    /// row that only fills the block up.
    fn place(&self, mut block: usize, mut row: usize) -> Option<(usize, usize)> {
        let (mut start, mut stride, mut len) = (0usize, self.element_len, 0);
        for (at, (dim, of_block)) in self.shape.iter().zip(&self.block).rev().enumerate() {
            let count = dim.div_ceil(*of_block);
            let first = block.checked_rem(count)?.checked_mul(*of_block)?;
            block = block.checked_div(count)?;
            let mut index = first;
            if at == 0 {
                len = dim.checked_sub(first)?.min(*of_block).checked_mul(stride)?;
            } else {
                index = index.checked_add(row.checked_rem(*of_block)?)?;
                row = row.checked_div(*of_block)?;
            }
            if index >= *dim {
                return None;
            }
            start = start.checked_add(index.checked_mul(stride)?)?;
            stride = stride.checked_mul(*dim)?;
        }
        Some((start, len))
    }
}

/// Numbers of msgpack, without their marks.
fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let number = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
    let number = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u64::from_be_bytes(*number)).ok()
}

fn invalid() -> zt::Error {
    Hdf5Fault::Chunk { filter: "blosc2" }.into()
}
