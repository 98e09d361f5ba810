//! What the decoders of all types share.
//!
//! Decoders take one block and give its values, both as arrays: lengths are types here, every index
//! is a constant or cut to its table, and the compiler drops the checks and uses vector registers.
//! Operations have the order of `gguf-py`, because f32 rounds after each.

use half::f16;

/// Decodes as many blocks of `B` bytes as there are to `N` little-endian f32 each.
pub(super) fn each<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [[u8; 4]],
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let (blocks, _) = bytes.as_chunks::<B>();
    let (places, _) = out.as_chunks_mut::<N>();
    // Stays in the nearest cache, where the copy costs next to nothing and alignment does not matter.
    let mut values = [0.0; N];
    for (block, places) in blocks.iter().zip(places) {
        decode(block, &mut values);
        for (place, value) in places.iter_mut().zip(&values) {
            *place = value.to_le_bytes();
        }
    }
}

/// An f16 scale.
pub(super) fn half(bytes: [u8; 2]) -> f32 {
    f16::from_le_bytes(bytes).to_f32()
}

/// An f32 scale.
pub(super) const fn single(bytes: [u8; 4]) -> f32 {
    f32::from_le_bytes(bytes)
}

/// The lower halves of all bytes, then the upper ones, each through `value`.
pub(super) fn low_and_high(qs: &[u8], out: &mut [f32], value: impl Fn(u8) -> f32) {
    let (low, high) = out.split_at_mut(qs.len().min(out.len()));
    for ((q, low), high) in qs.iter().zip(low).zip(high) {
        *low = value(q & 15);
        *high = value(q >> 4);
    }
}
