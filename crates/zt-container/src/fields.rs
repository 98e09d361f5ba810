//! Little-endian fields of records.

/// A record that may be truncated. A field beyond its end is `None`.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'r>(pub &'r [u8]);

impl Fields<'_> {
    /// The bytes of a field.
    pub fn bytes<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// The little-endian field at `at`.
    pub fn u16(self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    /// The little-endian field at `at`.
    pub fn u32(self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// The little-endian field at `at`.
    pub fn u64(self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }
}

/// A record with a length that its reader has checked. A field beyond its end is zero.
#[derive(Debug, Clone, Copy)]
pub struct Record<'r>(pub &'r [u8]);

impl Record<'_> {
    /// The bytes of a field.
    pub fn bytes<const N: usize>(self, at: usize) -> [u8; N] {
        Fields(self.0).bytes(at).unwrap_or([0; N])
    }

    /// The little-endian field at `at`.
    pub fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    /// The little-endian field at `at`.
    pub fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    /// The little-endian field at `at`.
    pub fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    /// The little-endian field at `at`.
    pub fn f32(self, at: usize) -> f32 {
        f32::from_le_bytes(self.bytes(at))
    }
}
