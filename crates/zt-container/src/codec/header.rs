//! The header of a frame: RFC 8878 §3.1.1.1.

/// The magic number of a frame with content.
pub(super) const FRAME_MAGIC: u32 = 0xFD2F_B528;
/// The magic number of a frame that readers skip. The lowest four bits are free.
pub(super) const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;

/// The fields that follow the descriptor, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// Bytes of the window descriptor: 0 if the content is the window.
    pub(super) window_len: u8,
    pub(super) dictionary_len: u8,
    /// Bytes of the content size: 0 if the frame does not record it.
    pub(super) content_size_len: u8,
    pub(super) has_checksum: bool,
}

impl Descriptor {
    pub(super) const fn of(byte: u8) -> Self {
        let is_single_segment = byte & 0x20 != 0;
        Descriptor {
            window_len: !is_single_segment as u8,
            dictionary_len: match byte & 3 {
                3 => 4,
                len => len,
            },
            content_size_len: match byte >> 6 {
                0 => is_single_segment as u8,
                1 => 2,
                2 => 4,
                _ => 8,
            },
            has_checksum: byte & 0x04 != 0,
        }
    }

    /// The content size for the number in its field. A field of two bytes counts from 256.
    pub(super) const fn content_size(self, field: u64) -> Option<u64> {
        match self.content_size_len {
            0 => None,
            2 => Some(field.strict_add(256)),
            _ => Some(field),
        }
    }
}

/// A little-endian number of up to eight bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}
