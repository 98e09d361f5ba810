//! Little-endian fields of fixed records, and the hash by which two kinds of files know names.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

/// A record of a length that its reader knows. A field beyond its end is zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'r>(pub(crate) &'r [u8]);

impl Record<'_> {
    /// The bytes of a field.
    pub(crate) fn bytes<const N: usize>(self, at: usize) -> [u8; N] {
        let field = self.0.get(at..).and_then(<[u8]>::first_chunk);
        field.copied().unwrap_or([0; N])
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    pub(crate) fn f32(self, at: usize) -> f32 {
        f32::from_le_bytes(self.bytes(at))
    }
}

/// FNV-1a of 64 bits.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    bytes.into_iter().fold(BASIS, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_as_published() {
        assert_eq!(fnv1a([]), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(*b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a(*b"tok_embeddings.weight"), 0x771E_F68A_9B91_C762);
        assert_eq!(fnv1a([0; 32]), 0x0C82_1078_4D8A_F5A5);
    }

    #[test]
    fn fields_are_little_endian_and_zero_beyond_the_end() {
        let record = Record(&[1, 2, 3, 4, 5]);
        assert_eq!(record.u16(1), 0x0302);
        assert_eq!(record.u32(1), 0x0504_0302);
        assert_eq!(record.u32(2), 0);
        assert_eq!(record.u64(usize::MAX), 0);
    }
}
