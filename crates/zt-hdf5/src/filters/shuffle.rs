//! The filter shuffle, whose planes szip has too.

use zt::Result;
use zt::container::memory::zeroed;

/// Undoes shuffle, which stores all first bytes of the elements, then all second bytes, and so on.
pub(super) fn unshuffle(bytes: Vec<u8>, element_len: usize) -> Result<Vec<u8>> {
    let (Some(count @ 2..), 2..) = (bytes.len().checked_div(element_len), element_len) else {
        return Ok(bytes);
    };
    let mut out = zeroed(bytes.len() as u64)?;
    // Bytes of an incomplete element are not shuffled.
    let rest = bytes.chunks_exact(element_len).remainder();
    let (planes, rest) = bytes.split_at(bytes.len().strict_sub(rest.len()));
    let (elements, tail) = out.split_at_mut(planes.len());
    transpose(planes, elements, count, element_len);
    tail.copy_from_slice(rest);
    Ok(out)
}

/// Makes elements of `element_len` bytes from planes of `count` bytes. It works in tiles that stay in
/// the cache: plane by plane, long elements took some 30 times longer.
fn transpose(planes: &[u8], elements: &mut [u8], count: usize, element_len: usize) {
    /// The bytes of a tile and its planes, at least a cache line of each.
    const TILE: usize = 16 << 10;
    const WIDTH: usize = 64;
    let width = element_len.clamp(1, WIDTH);
    let height = TILE.strict_div(width);
    let mut tile = [0; TILE];
    // A block may be longer than all elements.
    let blocks = elements.chunks_mut(height.saturating_mul(element_len));
    for (block, rows) in blocks.enumerate() {
        let first = block.strict_mul(height);
        let tiles = planes.chunks(width.strict_mul(count));
        for (at, planes) in tiles.enumerate() {
            // Short elements need no tile.
            let is_short = element_len == width;
            let target = if is_short { &mut *rows } else { &mut tile[..] };
            for (byte, plane) in planes.chunks_exact(count).enumerate() {
                let places = target.iter_mut().skip(byte).step_by(width);
                let (_, run) = plane.split_at(first);
                for (to, from) in places.zip(run) {
                    *to = *from;
                }
            }
            if is_short {
                continue;
            }
            let start = at.strict_mul(width);
            let rows = rows.chunks_exact_mut(element_len);
            for (row, values) in rows.zip(tile.chunks_exact(width)) {
                let (_, row) = row.split_at_mut(start);
                for (to, from) in row.iter_mut().zip(values) {
                    *to = *from;
                }
            }
        }
    }
}
