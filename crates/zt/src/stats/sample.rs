//! A look at some values of a large object.

use zt_formats::{Slice, dense_byte_len};

use super::Array;

/// Bytes of the dense value that are looked at. A smaller object is read as a whole.
const SAMPLE: u64 = 1 << 20;
/// Places that are looked at, evenly spaced.
const PLACES: u64 = 8;

/// The parts of an object that stand for all of it; `None` if it is small.
pub(super) fn parts(array: &Array<'_>) -> Option<Vec<Vec<Slice>>> {
    let shape = array.tensor.shape();
    let value_len = array.value_len() as u64;
    if dense_byte_len(shape, value_len)? <= SAMPLE {
        return None;
    }
    // Where a row is too long, only the middle one is looked at, in parts.
    let mut above = Vec::new();
    for (axis, extent) in shape.iter().enumerate() {
        let row_len = dense_byte_len(&shape[axis + 1..], value_len)?.max(1);
        let rows = (SAMPLE / PLACES / row_len).min(*extent);
        if rows == 0 {
            above.push(Slice::from(extent / 2..extent / 2 + 1));
            continue;
        }
        let places = PLACES.min(extent.div_ceil(rows));
        let part = |place: u64| {
            let start = (extent - rows).saturating_mul(place) / (places - 1).max(1);
            let part = above.iter().copied();
            part.chain([Slice::from(start..start + rows)]).collect()
        };
        return Some((0..places).map(part).collect());
    }
    None
}
