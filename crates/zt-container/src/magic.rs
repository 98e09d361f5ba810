//! The constants of the framing. They are in every `.zt` file and never change.

/// The first eight bytes of a 1.x file, and the last eight from layout 1.1 on. Spec: §2.
pub const MAGIC: [u8; 8] = *b"ZTEN1000";

/// The first eight bytes of a file of layout 0.1. Spec: legacy, "Layout 0.1".
pub const MAGIC_0_1: [u8; 8] = *b"ZTEN0001";

/// Bytes of the header magic: no component begins before this offset.
pub const HEADER_LEN: u64 = 8;

/// Bytes of the manifest size that follows the manifest, a little-endian `u64`.
pub const SIZE_LEN: u64 = 8;

/// Every component's blob begins at a multiple of this many bytes. Spec: §4, "Alignment and padding".
pub const ALIGNMENT: u64 = 64;

/// Generations of the framing. The bytes of a file decide, not the version in its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// `ZTEN0001`, blobs, manifest, size.
    V0_1,
    /// `ZTEN1000`, blobs, manifest, size.
    V1_0,
    /// `ZTEN1000`, blobs, manifest, size, `ZTEN1000`: files of versions 1.1 and 1.2.
    V1_1,
}

impl Layout {
    /// Whether a blob off the 64-byte grid is an error: from 1.1 on. In 1.0 it is only a warning (its
    /// §7.1).
    pub const fn requires_alignment(self) -> bool {
        matches!(self, Layout::V1_1)
    }
}
