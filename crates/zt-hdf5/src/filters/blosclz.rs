//! BloscLZ, the compression of Blosc's own: LZF with longer copies and distances.
//!
//! Reference: `blosclz_decompress` of C-Blosc 1.21.

use crate::filters::lzf::copy;

/// Decompresses to exactly `byte_len` bytes.
pub(super) fn decompress(bytes: &[u8], byte_len: usize) -> Option<Vec<u8>> {
    /// A byte of a length gives 255 bytes.
    const RATIO: usize = 255;
    /// The shortest copy.
    const COPY_MIN: usize = 3;
    /// The greatest distance of 13 bits. A pattern that stands for it says that 16 bits follow, counted
    /// from there.
    const DISTANCE: usize = 8191;
    let mut out = Vec::new();
    let most = bytes.len().saturating_mul(RATIO).min(byte_len);
    out.try_reserve_exact(most).ok()?;
    let mut rest = bytes;
    // The first control byte is one of literals. Its upper bits are a mark.
    let mut mask = 0x1F;
    while let Some(control) = rest.split_off_first() {
        let control = usize::from(control & mask);
        mask = u8::MAX;
        let left = byte_len.checked_sub(out.len())?;
        if control < 32 {
            let literals = rest.split_off(..control.checked_add(1)?)?;
            if literals.len() > left {
                return None;
            }
            out.extend_from_slice(literals);
            continue;
        }
        let (mut len, high) = (control >> 5, control & 0x1F);
        if len == 7 {
            let mut goes_on = true;
            while goes_on {
                let byte = *rest.split_off_first()?;
                len = len.checked_add(byte.into())?;
                goes_on = byte == u8::MAX;
            }
        }
        let low = *rest.split_off_first()?;
        let mut distance = high << 8 | usize::from(low);
        if distance == DISTANCE {
            let (far, after) = rest.split_first_chunk::<2>()?;
            distance = usize::from(u16::from_be_bytes(*far)).checked_add(DISTANCE)?;
            rest = after;
        }
        let len = len.checked_add(COPY_MIN - 1)?;
        if len > left {
            return None;
        }
        copy(&mut out, distance.checked_add(1)?, len)?;
    }
    (out.len() == byte_len).then_some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    #[test]
    fn literals_and_copies_are_decompressed() {
        // The mark, two literals, a copy of 3 from distance 2.
        let stored = [0x20 | 1, 5, 6, 1 << 5, 1];
        assert_eq!(decompress(&stored, 5), Some(vec![5, 6, 5, 6, 5]));
        // A long copy of 2 + 7 + 255 + 1 bytes.
        let stored = [0, 9, 7 << 5, 255, 1, 0];
        assert_eq!(decompress(&stored, 266), Some(vec![9; 266]));
        // A distance beyond 13 bits.
        let literals: Vec<u8> = (0..=250).cycle().take(32 * 300).collect();
        let pieces = literals.chunks(32).map(|piece| [&[31], piece].concat());
        let mut stored = pieces.collect::<Vec<_>>().concat();
        stored.extend([1 << 5 | 31, 255, 0, 8]); // 8,200 bytes before the end
        let copied = &literals[literals.len() - 8200..][..3];
        let expected = [&literals[..], copied].concat();
        assert_eq!(decompress(&stored, expected.len()), Some(expected));
    }

    #[test]
    fn invalid_data_is_refused() {
        let cases: [(&str, &[u8], usize); 7] = [
            ("literals cut", &[2, 7, 8], 3),
            ("a copy cut", &[0, 7, 1 << 5], 4),
            ("a length cut", &[0, 7, 7 << 5, 255], 300),
            ("a far distance cut", &[0, 7, 1 << 5 | 31, 255, 0], 4),
            ("before the beginning", &[0, 7, 1 << 5, 1], 4),
            ("too much", &[0, 7, 1 << 5, 0], 3),
            ("too little", &[0, 7], 2),
        ];
        for (what, bytes, byte_len) in cases {
            assert_eq!(decompress(bytes, byte_len), None, "{what}");
        }
    }
}
