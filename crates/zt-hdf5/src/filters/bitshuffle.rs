//! The filter bitshuffle, and its transposition of bits, which Blosc has too.
//!
//! In a block of `n` elements come all lowest bits of the first bytes, `n / 8` bytes, then all second bits,
//! and so on to the highest bits of the last bytes. With a codec, two numbers precede the blocks, and each
//! block follows its length. All these numbers are big-endian:
//!
//! ```text
//! u64 bytes of the chunk   u32 bytes of a block   blocks: u32 stored bytes, the block   rest
//! ```
//!
//! The rest are up to 7 elements, as they are.
//!
//! Reference: `bshuf_h5filter.c` and `bitshuffle_core.c` of bitshuffle 0.5.

use zt::Result;
use zt::container::codec::decode_into;
use zt::container::memory::zeroed;

use crate::bytes::fault::Hdf5Fault;
use crate::filters::lz4;

/// The parameters of the filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bitshuffle {
    element_len: usize,
    /// Elements; 0 for the usual number.
    block: usize,
    codec: Option<Codec>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Codec {
    Lz4,
    Zstd,
}

impl Bitshuffle {
    /// `None` for parameters that no version of the filter writes.
    pub(super) fn new(parameters: &[u32]) -> Option<Self> {
        // An absent parameter is 0.
        let number = |at: usize| usize::try_from(parameters.get(at).copied().unwrap_or(0)).ok();
        let codec = match parameters.get(4) {
            None | Some(0) => None,
            Some(2) => Some(Codec::Lz4),
            Some(3) => Some(Codec::Zstd),
            Some(_) => return None,
        };
        let (element_len, block) = (number(2)?, number(3)?);
        let is_valid = element_len > 0 && block.is_multiple_of(8);
        is_valid.then_some(Bitshuffle { element_len, block, codec })
    }

    /// Decodes a chunk of at most `limit` bytes.
    pub(super) fn decode(self, bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
        let eight = self.element_len.checked_mul(8).ok_or_else(invalid)?;
        let (byte_len, block_len, mut rest) = self.lengths(bytes).ok_or_else(invalid)?;
        if byte_len > limit || block_len == 0 || block_len.checked_rem(eight) != Some(0) {
            return Err(invalid());
        }
        let mut out = Vec::new();
        let mut left = byte_len;
        while left >= eight {
            let len = block_len.min(left.strict_sub(left.strict_rem(eight)));
            let block = self.block(&mut rest, len)?;
            let block = block.and_then(|block| unshuffle_bits(&block, self.element_len));
            out.extend_from_slice(&block.ok_or_else(invalid)?);
            left = left.strict_sub(len);
        }
        if rest.len() != left {
            return Err(invalid());
        }
        out.extend_from_slice(rest);
        Ok(out)
    }

    /// The bytes of the chunk and of a block, and what follows these numbers.
    fn lengths(self, bytes: &[u8]) -> Option<(usize, usize, &[u8])> {
        /// The bytes of a usual block, and its fewest elements: `bshuf_default_block_size`.
        const BLOCK_LEN: usize = 8192;
        const BLOCK_MIN: usize = 128;
        if self.codec.is_none() {
            let usual = BLOCK_LEN.checked_div(self.element_len)? & !7;
            let block = match self.block {
                0 => usual.max(BLOCK_MIN),
                block => block,
            };
            return Some((bytes.len(), block.checked_mul(self.element_len)?, bytes));
        }
        let (byte_len, rest) = bytes.split_first_chunk::<8>()?;
        let (block_len, rest) = rest.split_first_chunk::<4>()?;
        let byte_len = usize::try_from(u64::from_be_bytes(*byte_len)).ok()?;
        let block_len = usize::try_from(u32::from_be_bytes(*block_len)).ok()?;
        Some((byte_len, block_len, rest))
    }

    /// Takes a block of `len` bytes; `None` if it is invalid.
    fn block(self, rest: &mut &[u8], len: usize) -> Result<Option<Vec<u8>>> {
        let Some(codec) = self.codec else {
            return Ok(rest.split_off(..len).map(<[u8]>::to_vec));
        };
        let Some(stored) = lz4::sized(rest) else {
            return Ok(None);
        };
        match codec {
            Codec::Lz4 => Ok(lz4::block(stored, len)),
            Codec::Zstd => {
                let mut block = zeroed(len as u64)?;
                decode_into(stored, &mut block)?;
                Ok(Some(block))
            }
        }
    }
}

fn invalid() -> zt::Error {
    let filter = "bitshuffle";
    Hdf5Fault::Chunk { filter }.into()
}

/// Undoes the transposition of a number of elements that is a multiple of 8.
pub(super) fn unshuffle_bits(bits: &[u8], element_len: usize) -> Option<Vec<u8>> {
    let eight = element_len.checked_mul(8)?;
    let mut out = zeroed(bits.len() as u64).ok()?;
    // The bytes of one bit of all elements.
    let row_len = bits.len().checked_div(eight)?;
    if row_len == 0 {
        return bits.is_empty().then_some(out);
    }
    for (byte, rows) in bits.chunks_exact(row_len.checked_mul(8)?).enumerate() {
        for (column, elements) in out.chunks_exact_mut(eight).enumerate() {
            let mut bytes = [0; 8];
            for (to, row) in bytes.iter_mut().zip(rows.chunks_exact(row_len)) {
                *to = *row.get(column)?;
            }
            let places = elements.iter_mut().skip(byte).step_by(element_len);
            for (to, value) in places.zip(transposed(bytes)) {
                *to = value;
            }
        }
    }
    Some(out)
}

/// Bit `i` of byte `j` is bit `j` of byte `i`: the transposition of Hacker's Delight, 7-3.
fn transposed(bytes: [u8; 8]) -> [u8; 8] {
    let mut word = u64::from_le_bytes(bytes);
    for (shift, mask) in
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)]
    {
        let swapped = (word ^ word >> shift) & mask;
        word ^= swapped ^ swapped << shift;
    }
    word.to_le_bytes()
}
