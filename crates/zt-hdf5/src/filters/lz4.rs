//! The filter LZ4, and blocks of LZ4, which Blosc and bitshuffle have too.
//!
//! ```text
//! u64 bytes of the chunk   u32 bytes of a block   blocks: u32 stored bytes, the block
//! ```
//!
//! These numbers are big-endian. A block that LZ4 cannot compress is stored as it is.
//!
//! Reference: `H5Zlz4.c` of HDF5 plugins.

use lz4_flex::block::decompress_into;
use zt::container::memory::zeroed;

/// The decompressed bytes of the filter; `None` if `bytes` are invalid, or give more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (byte_len, rest) = bytes.split_first_chunk::<8>()?;
    let (block_len, mut rest) = rest.split_first_chunk::<4>()?;
    let byte_len = usize::try_from(u64::from_be_bytes(*byte_len)).ok()?;
    let block_len = usize::try_from(u32::from_be_bytes(*block_len)).ok()?;
    if byte_len > limit {
        return None;
    }
    let mut out = Vec::new();
    while out.len() < byte_len {
        let len = block_len.min(byte_len.checked_sub(out.len())?);
        let stored = sized(&mut rest)?;
        if len == 0 {
            return None;
        }
        if stored.len() == len {
            out.extend_from_slice(stored);
        } else {
            out.extend_from_slice(&block(stored, len)?);
        }
    }
    Some(out)
}

/// Takes bytes with their length before them, big-endian.
pub(super) fn sized<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (len, after) = rest.split_first_chunk::<4>()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (bytes, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(bytes)
}

/// Decompresses a block of LZ4 to exactly `byte_len` bytes.
pub(super) fn block(bytes: &[u8], byte_len: usize) -> Option<Vec<u8>> {
    let mut out = zeroed(byte_len as u64).ok()?;
    let len = decompress_into(bytes, &mut out).ok()?;
    (len == byte_len).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn a_block_has_exactly_its_length() {
        // A literal, a copy of 4 bytes from 1 byte before, and the end.
        let stored = [0x10, 7, 1, 0, 0x00];
        assert_eq!(block(&stored, 5), Some(vec![7; 5]));
        assert_eq!(block(&stored, 4), None);
        assert_eq!(block(&stored, 6), None);
        assert_eq!(block(&stored[..4], 5), None);
    }

    #[test]
    fn a_chunk_is_a_list_of_blocks() {
        let head = |byte_len: u8, block_len: u8| {
            [0, 0, 0, 0, 0, 0, 0, byte_len, 0, 0, 0, block_len].to_vec()
        };
        let blocks = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 6, 0x10, 7, 1, 0, 0, 9];
        // An uncompressed block, and one of LZ4 that has a byte too many.
        let mut bytes = [head(4, 3), blocks[..7].to_vec(), vec![0, 0, 0, 1, 4]].concat();
        assert_eq!(decompress(&bytes, 4), Some(vec![1, 2, 3, 4]));
        assert_eq!(decompress(&bytes, 3), None, "more than the limit");
        bytes.pop();
        assert_eq!(decompress(&bytes, 4), None, "cut");
        let bytes = [head(8, 3), blocks.to_vec()].concat();
        assert_eq!(decompress(&bytes, 8), None, "an invalid block");
        assert_eq!(decompress(&head(4, 0), 4), None, "blocks of no bytes");
        assert_eq!(decompress(&head(0, 0), 4), Some(vec![]));
    }
}
