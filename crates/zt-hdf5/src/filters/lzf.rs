//! LZF, the compression of h5py's own filter: literals, and copies of earlier bytes.

/// The decompressed bytes; `None` if `bytes` are no LZF, or give more than `limit` bytes.
pub(crate) fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    /// The longest copy gives 264 bytes and takes 3.
    const RATIO: usize = 264 / 3;
    let mut out = Vec::new();
    let most = bytes.len().saturating_mul(RATIO).min(limit);
    out.try_reserve(most).ok()?;
    let mut rest = bytes;
    while let Some((control, after)) = rest.split_first() {
        rest = after;
        let control = usize::from(*control);
        if control < 32 {
            let (literals, after) = rest.split_at_checked(control.checked_add(1)?)?;
            out.extend_from_slice(literals);
            rest = after;
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len = len.checked_add((*rest.split_off_first()?).into())?;
            }
            let low = usize::from(*rest.split_off_first()?);
            let distance = (control & 0x1F) << 8 | low;
            copy(&mut out, distance.checked_add(1)?, len.checked_add(2)?)?;
        }
        if out.len() > limit {
            return None;
        }
    }
    Some(out)
}

/// Appends `len` bytes from `distance` bytes before the end on. They may include appended bytes. `None` for
/// a distance of 0, or beyond the beginning.
pub(super) fn copy(out: &mut Vec<u8>, distance: usize, mut len: usize) -> Option<()> {
    let start = out.len().checked_sub(distance)?;
    if distance == 0 {
        return None;
    }
    while len > 0 {
        let part = len.min(out.len().checked_sub(start)?);
        out.extend_from_within(start..start.checked_add(part)?);
        len = len.checked_sub(part)?;
    }
    Some(())
}
