//! What the decoders of all types share.
//!
//! A decoder takes one block as an array and fills an array of its values. Lengths are known to the
//! compiler, and every index is a constant or masked to its table: bounds checks vanish, and loops
//! are vectorised. Operations have the order of `gguf-py`, because f32 rounds after each.

use half::f16;

/// Decodes each block of `B` bytes to `N` little-endian f32, as many as both slices have whole.
pub(super) fn each<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [[u8; 4]],
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let (blocks, _) = bytes.as_chunks::<B>();
    let (places, _) = out.as_chunks_mut::<N>();
    // A copy within the first-level cache costs almost nothing, and needs no alignment of `out`.
    let mut values = [0.0; N];
    for (block, places) in blocks.iter().zip(places) {
        decode(block, &mut values);
        for (place, value) in places.iter_mut().zip(&values) {
            *place = value.to_le_bytes();
        }
    }
}

/// Each `B` bytes with their `N` values.
pub(super) fn in_groups<'a, const B: usize, const N: usize>(
    qs: &'a [u8],
    out: &'a mut [f32],
) -> impl Iterator<Item = (&'a [u8; B], &'a mut [f32; N])> {
    let out = out.as_chunks_mut::<N>().0.iter_mut();
    qs.as_chunks::<B>().0.iter().zip(out)
}

/// An f16 scale.
pub(super) fn half(bytes: [u8; 2]) -> f32 {
    f16::from_le_bytes(bytes).to_f32()
}

/// An f32 scale.
pub(super) const fn single(bytes: [u8; 4]) -> f32 {
    f32::from_le_bytes(bytes)
}

/// Applies `value` to the lower halves of all bytes, then to the upper halves.
pub(super) fn low_and_high(qs: &[u8], out: &mut [f32], value: impl Fn(u8) -> f32) {
    let (low, high) = out.split_at_mut(qs.len().min(out.len()));
    for ((q, low), high) in qs.iter().zip(low).zip(high) {
        *low = value(q & 15);
        *high = value(q >> 4);
    }
}
