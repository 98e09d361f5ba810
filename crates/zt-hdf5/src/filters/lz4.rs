//! The filter LZ4, and blocks of LZ4, which Blosc and bitshuffle have too.
//!
//! ```text
//! u64 bytes of the chunk   u32 bytes of a block   blocks: u32 stored bytes, the block
//! ```
//!
//! These numbers are big-endian. A block that LZ4 cannot compress is stored as it is.
//!
//! Reference: `H5Zlz4.c` of HDF5 plugins; "LZ4 Block Format Description", `lz4_Block_format.md` of LZ4.

use crate::filters::lzf::copy;

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
    /// A byte of a length gives 255 bytes.
    const RATIO: usize = 255;
    /// The shortest copy.
    const COPY_MIN: usize = 4;
    let mut out = Vec::new();
    let most = bytes.len().saturating_mul(RATIO).min(byte_len);
    out.try_reserve_exact(most).ok()?;
    let mut rest = bytes;
    loop {
        let token = *rest.split_off_first()?;
        let len = length(token >> 4, &mut rest)?;
        let (literals, after) = rest.split_at_checked(len)?;
        if literals.len() > byte_len.checked_sub(out.len())? {
            return None;
        }
        out.extend_from_slice(literals);
        // The last sequence has no copy.
        let Some((distance, after)) = after.split_first_chunk::<2>() else {
            return (after.is_empty() && out.len() == byte_len).then_some(out);
        };
        rest = after;
        let len = length(token & 0xF, &mut rest)?.checked_add(COPY_MIN)?;
        if len > byte_len.checked_sub(out.len())? {
            return None;
        }
        copy(&mut out, u16::from_le_bytes(*distance).into(), len)?;
    }
}

/// A length that begins with 4 bits. Bytes follow if all are set, and again after each byte of 255.
fn length(bits: u8, rest: &mut &[u8]) -> Option<usize> {
    let mut len = usize::from(bits);
    let mut goes_on = bits == 0xF;
    while goes_on {
        let byte = *rest.split_off_first()?;
        len = len.checked_add(byte.into())?;
        goes_on = byte == u8::MAX;
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn blocks_of_literals_and_copies_are_decompressed() {
        assert_eq!(block(&[0x30, 1, 2, 3], 3), Some(vec![1, 2, 3]));
        // A copy of 4 bytes from 1 byte before, and the last literal.
        let stored = [0x10, 7, 1, 0, 0x10, 8];
        assert_eq!(block(&stored, 6), Some(vec![7, 7, 7, 7, 7, 8]));
        // Lengths of 15 + 255 + 2 literals, and of a copy of 4 + 15 + 0.
        let literals: Vec<u8> = (0..=250).cycle().take(272).collect();
        let stored = [&[0xFF, 255, 2], &literals[..], &[16, 1, 0, 0x00]].concat();
        let expected = [&literals[..], &literals[..19]].concat();
        assert_eq!(block(&stored, 291), Some(expected));
        assert_eq!(block(&[0], 0), Some(vec![]));
    }

    #[test]
    fn invalid_blocks_are_refused() {
        let cases: [(&str, &[u8], usize); 8] = [
            ("nothing", &[], 0),
            ("literals cut", &[0x30, 1, 2], 3),
            ("a length cut", &[0xF0, 255], 300),
            ("half a distance", &[0x10, 7, 1], 5),
            ("no distance", &[0x10, 7, 0, 0, 0x00], 5),
            ("before the beginning", &[0x10, 7, 2, 0, 0x00], 5),
            ("too much", &[0x10, 7, 1, 0, 0x00], 4),
            ("too little", &[0x10, 7, 1, 0, 0x00], 6),
        ];
        for (what, bytes, byte_len) in cases {
            assert_eq!(block(bytes, byte_len), None, "{what}");
        }
    }

    #[test]
    fn a_chunk_is_a_list_of_blocks() {
        let head = |byte_len: u8, block_len: u8| {
            [0, 0, 0, 0, 0, 0, 0, byte_len, 0, 0, 0, block_len].to_vec()
        };
        let blocks = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 6, 0x10, 7, 1, 0, 0, 9];
        // A block as it is, and one of LZ4 that has a byte too many.
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
