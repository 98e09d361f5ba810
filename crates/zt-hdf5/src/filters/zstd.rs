//! The filter Zstandard: one frame.
//!
//! Reference: RFC 8878; `H5Zzstd.c` of HDF5 plugins.

use zt::Result;
use zt::container::codec::decode_into;
use zt::container::memory::zeroed;

use crate::bytes::fault::Hdf5Fault;

/// The content of a frame that has `byte_len` bytes, unless it records its size. It has at most `limit`.
pub(super) fn decode(frame: &[u8], limit: usize, byte_len: usize) -> Result<Vec<u8>> {
    let recorded = content_len(frame).unwrap_or(byte_len as u64);
    if recorded > limit as u64 {
        return Err(Hdf5Fault::Chunk { filter: "zstd" }.into());
    }
    let mut out = zeroed(recorded)?;
    decode_into(frame, &mut out)?;
    Ok(out)
}

/// The size that the header of a frame records. Spec: RFC 8878, 3.1.1.1.
fn content_len(frame: &[u8]) -> Option<u64> {
    const MAGIC: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
    let mut rest = frame.strip_prefix(MAGIC)?;
    let descriptor = *rest.split_off_first()?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        rest.split_off_first()?;
    }
    let dictionary = [0, 1, 2, 4];
    rest.split_off(..*dictionary.get(usize::from(descriptor & 3))?)?;
    match descriptor >> 6 {
        0 if !is_single => None,
        0 => rest.first().copied().map(u64::from),
        1 => u64::from(u16::from_le_bytes(*rest.first_chunk()?)).checked_add(256),
        2 => Some(u32::from_le_bytes(*rest.first_chunk()?).into()),
        _ => Some(u64::from_le_bytes(*rest.first_chunk()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::content_len;

    #[test]
    fn a_frame_records_its_size_in_up_to_eight_bytes() {
        let frame = |bytes: &[u8]| content_len(&[&[0x28, 0xB5, 0x2F, 0xFD], bytes].concat());
        assert_eq!(frame(&[0x20, 9]), Some(9));
        assert_eq!(frame(&[0x00, 0x50]), None);
        assert_eq!(frame(&[0x41, 0x50, 7, 1, 1]), Some(513));
        assert_eq!(frame(&[0xA3, 7, 7, 7, 7, 0, 0, 1, 0]), Some(1 << 16));
        assert_eq!(frame(&[0xE0, 0, 0, 0, 0, 0, 0, 0, 1]), Some(1 << 56));
        assert_eq!(frame(&[0xE0, 0]), None);
        assert_eq!(content_len(b"no frame"), None);
    }
}
