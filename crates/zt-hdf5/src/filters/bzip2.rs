//! The filter bzip2: one stream. What follows it is ignored, as the filter's own reader does.
//!
//! Reference: `H5Zbzip2.c` of PyTables.

use bzip2::{Decompress, Status};

/// The decompressed bytes; `None` if `bytes` are invalid, or give more than `limit` bytes.
pub(super) fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // One call decodes all, unless the input ends before the stream or the space is filled.
    out.try_reserve_exact(limit.checked_add(1)?).ok()?;
    let status = Decompress::new(false).decompress_vec(bytes, &mut out);
    (status == Ok(Status::StreamEnd) && out.len() <= limit).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    /// `bz2.compress(b"banana bandana", 1)` of Python.
    const TEXT: &[u8] = &[
        0x42, 0x5A, 0x68, 0x31, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x7C, 0xD5, 0x83, 0x4B, 0x00,
        0x00, 0x03, 0x91, 0x00, 0x40, 0x00, 0x34, 0x01, 0x20, 0x00, 0x21, 0x29, 0xA6, 0xD0, 0x66,
        0x82, 0x3C, 0xA5, 0x5F, 0x0C, 0x2E, 0xE4, 0x8A, 0x70, 0xA1, 0x20, 0xF9, 0xAB, 0x06, 0x96,
    ];

    #[test]
    fn one_stream_is_decompressed_up_to_the_limit() {
        let expected = Some(b"banana bandana".to_vec());
        assert_eq!(decompress(TEXT, 14), expected);
        assert_eq!(decompress(TEXT, 13), None);
        assert_eq!(decompress(&[TEXT, TEXT].concat(), 100), expected);
        for at in 0..TEXT.len() {
            assert_eq!(decompress(&TEXT[..at], 100), None, "cut at {at}");
        }
    }
}
