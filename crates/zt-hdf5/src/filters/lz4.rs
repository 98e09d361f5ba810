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
