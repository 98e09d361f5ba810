//! The IQ types with grids: an index selects eight or four values of a fixed grid. Signs are
//! separate.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "in bounds, because an index has as many bits as its grid; shifts stay below the bits of their type"
)]

use crate::grid_tables::{IQ1, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};
use crate::kernel::{half, in_groups};

/// `d: f16`; for every 32 values, four indices, four sets of signs and a scale of 4 bits.
pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let [d0, d1, qs @ ..] = block;
    let d = half([*d0, *d1]);
    let groups = in_groups::<8, 32>(qs, out);
    for (group, out) in groups {
        let [i0, i1, i2, i3, s @ ..] = *group;
        let packed = u32::from_le_bytes(s);
        let d = d * (0.5 + scale_of(packed)) * 0.25;
        let eights = out.as_chunks_mut::<8>().0.iter_mut().zip([i0, i1, i2, i3]);
        for ((out, index), at) in eights.zip(0..4) {
            put(out, d, &IQ2_XXS[usize::from(index)], signs(packed, at));
        }
    }
}

/// `d: f16`; 32 indices of 9 bits below 7 bits of signs; 16 scales of 4 bits.
pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let [d0, d1, rest @ ..] = block;
    let d = half([*d0, *d1]);
    let (qs, scales) = rest.split_at(64);
    for ((qs, out), scale) in in_groups::<8, 32>(qs, out).zip(scales) {
        for ((q, out), scale) in in_groups::<2, 8>(qs, out).zip(halves(*scale)) {
            let q = u16::from_le_bytes(*q);
            let d = d * (0.5 + f32::from(scale)) * 0.25;
            put(out, d, &IQ2_XS[usize::from(q & 511)], signs(u32::from(q >> 9), 0));
        }
    }
}

/// `d: f16`; the lower 8 bits of 32 indices; 32 bytes of signs; the upper 2 bits; 16 scales of 4
/// bits.
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let [d0, d1, rest @ ..] = block;
    let d = half([*d0, *d1]);
    let (qs, rest) = rest.split_at(32);
    let (signs, rest) = rest.split_at(32);
    let (qh, scales) = rest.split_at(8);
    let groups = in_groups::<4, 32>(qs, out).zip(signs.as_chunks::<4>().0);
    for (((qs, out), signs), (high, scale)) in groups.zip(qh.iter().zip(scales)) {
        let eights = qs.iter().zip(signs).zip(out.as_chunks_mut::<8>().0);
        for (((q, signs), out), (scale, at)) in eights.zip(halves(*scale).into_iter().zip(0..)) {
            let d = d * (0.5 + f32::from(scale)) * 0.25;
            let index = u16::from(*q) | u16::from(high >> (2 * at) & 3) << 8;
            put(out, d, &IQ2_S[usize::from(index)], u32::from(*signs));
        }
    }
}

/// `d: f16`; 64 indices; for every 32 values, four sets of signs and a scale of 4 bits.
pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let [d0, d1, rest @ ..] = block;
    let d = half([*d0, *d1]);
    let (qs, packed) = rest.split_at(64);
    let groups = qs.as_chunks::<8>().0.iter().zip(packed.as_chunks::<4>().0);
    for ((qs, packed), out) in groups.zip(out.as_chunks_mut::<32>().0) {
        let packed = u32::from_le_bytes(*packed);
        let d = d * (0.5 + scale_of(packed)) * 0.5;
        let eights = in_groups::<2, 8>(qs, out);
        for (([first, second], out), at) in eights.zip(0..4) {
            let fours = (&IQ3_XXS[usize::from(*first)], &IQ3_XXS[usize::from(*second)]);
            put(out, d, &joined(fours), signs(packed, at));
        }
    }
}

/// `d: f16`; the lower 8 bits of 64 indices; their ninth; 32 bytes of signs; 8 scales of 4 bits.
pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let [d0, d1, rest @ ..] = block;
    let d = half([*d0, *d1]);
    let (qs, rest) = rest.split_at(64);
    let (qh, rest) = rest.split_at(8);
    let (signs, scales) = rest.split_at(32);
    let index = |low: u8, high: u8| usize::from(u16::from(low) | u16::from(high & 1) << 8);
    let scales = scales.iter().flat_map(|pair| [pair & 15, pair >> 4]);
    let groups = in_groups::<8, 32>(qs, out).zip(signs.as_chunks::<4>().0);
    for (((qs, out), signs), (high, scale)) in groups.zip(qh.iter().zip(scales)) {
        let d = d * (1.0 + 2.0 * f32::from(scale));
        for ((([first, second], out), signs), at) in in_groups::<2, 8>(qs, out).zip(signs).zip(0..)
        {
            let high = high >> (2 * at);
            let fours = (&IQ3_S[index(*first, high)], &IQ3_S[index(*second, high >> 1)]);
            put(out, d, &joined(fours), u32::from(*signs));
        }
    }
}

/// `d: f16`; the lower 8 bits of 32 indices; for every 32 values, the upper 3 bits of four, a scale
/// of 3 bits and the sign of the shift.
pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let [d0, d1, rest @ ..] = block;
    let d = half([*d0, *d1]);
    let (qs, qh) = rest.split_at(32);
    let groups = qs.as_chunks::<4>().0.iter().zip(qh.as_chunks::<2>().0);
    for ((qs, qh), out) in groups.zip(out.as_chunks_mut::<32>().0) {
        let qh = u16::from_le_bytes(*qh);
        let d = d * f32::from(2 * (qh >> 12 & 7) + 1);
        let eights = qs.iter().zip(out.as_chunks_mut::<8>().0);
        for ((q, out), at) in eights.zip(0..4) {
            let index = u16::from(*q) | (qh >> (3 * at) & 7) << 8;
            shifted(out, d, index, qh & 0x8000 != 0);
        }
    }
}

/// The lower 8 bits of 32 indices; for each, its upper 3 bits and the sign of the shift; 16 scales
/// of 3 bits, with one of the four parts of `d: f16` above every fourth.
pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let (qs, rest) = block.split_at(32);
    let (qh, scales) = rest.split_at(16);
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(scales.as_chunks::<2>().0) {
        *word = u16::from_le_bytes(*bytes);
    }
    let [w0, w1, w2, w3] = words.map(|word| word & 0xF000);
    let d = half((w0 >> 12 | w1 >> 8 | w2 >> 4 | w3).to_le_bytes());
    let groups = in_groups::<8, 64>(qs, out).zip(qh.as_chunks::<4>().0);
    for (((qs, out), qh), scales) in groups.zip(words) {
        for (((qs, out), high), at) in in_groups::<2, 16>(qs, out).zip(qh).zip(0..) {
            let d = d * f32::from(2 * (scales >> (3 * at) & 7) + 1);
            let eights = qs.iter().zip(out.as_chunks_mut::<8>().0);
            for ((q, out), high) in eights.zip([high & 15, high >> 4]) {
                let index = u16::from(*q) | u16::from(high & 7) << 8;
                shifted(out, d, index, high & 8 != 0);
            }
        }
    }
}

/// Eight values of a grid times `d`, with their signs: a set bit is a minus.
fn put(out: &mut [f32; 8], d: f32, grid: &[i8; 8], signs: u32) {
    for ((value, level), bit) in out.iter_mut().zip(grid).zip(0..8) {
        let sign = (signs >> bit & 1) << 31;
        *value = f32::from_bits((d * f32::from(*level)).to_bits() ^ sign);
    }
}

/// Eight values of the ternary grid, shifted up or down by an eighth, times `d`.
fn shifted(out: &mut [f32; 8], d: f32, index: u16, is_less: bool) {
    let delta = if is_less { -0.125 } else { 0.125 };
    for (value, level) in out.iter_mut().zip(&IQ1[usize::from(index & 2047)]) {
        *value = d * (f32::from(*level) + delta);
    }
}

fn joined((first, second): (&[i8; 4], &[i8; 4])) -> [i8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (*first, *second);
    [a, b, c, d, e, f, g, h]
}

/// The highest 4 bits.
fn scale_of(packed: u32) -> f32 {
    f32::from((packed >> 28) as u8)
}

/// The signs of eight values from 7 bits: the number of minuses is always even.
fn signs(packed: u32, at: u32) -> u32 {
    let seven = packed >> (7 * at) & 127;
    seven | (seven.count_ones() & 1) << 7
}

/// Four scales out of two: the lower half twice, then the upper.
const fn halves(pair: u8) -> [u8; 4] {
    [pair & 15, pair & 15, pair >> 4, pair >> 4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid_tables::unpacked;

    /// The first eight entries of a grid as numbers of `ggml-common.h`, whose lowest byte is the
    /// first value. The compiler has unpacked the grid; the test does it again.
    fn first<const N: usize>(levels: &[i8], packed: &str, grid: &[[i8; N]]) -> String {
        let entries = unpacked::<N, 8>(levels, packed);
        assert_eq!(entries, grid[..8]);
        let number = |entry: [i8; N]| -> String {
            let values = entry.iter().rev();
            values.map(|value| format!("{value:02x}")).collect()
        };
        entries.map(number).join(" ")
    }

    #[test]
    fn grids_begin_as_those_of_ggml_do() {
        let levels = [8, 25, 43];
        let seven = "0808080808080808 080808080808082b 0808080808081919 0808080808082b08 \
                     0808080808082b2b 0808080808190819 0808080808191908";
        let packed = "00000200050008000a00110014002000";
        let expected = format!("{seven} 08080808082b0808");
        assert_eq!(first(&levels, packed, &IQ2_XXS), expected);
        let packed = "00000200050008000a00110014001600";
        let expected = format!("{seven} 080808080819192b");
        assert_eq!(first(&levels, packed, &IQ2_XS), expected);
        assert_eq!(first(&levels, packed, &IQ2_S), expected);

        let levels = [4, 12, 20, 28, 36, 44, 52, 62];
        let packed = "00000200040011001300170020002200";
        let expected = "04040404 04040414 04040424 04040c0c 04040c1c 04040c3e 04041404 04041414";
        assert_eq!(first(&levels, packed, &IQ3_XXS), expected);
        let levels = [1, 3, 5, 7, 9, 11, 13, 15];
        let packed = "00000100020005000700100011001200";
        let expected = "01010101 01010103 01010105 0101010b 0101010f 01010301 01010303 01010305";
        assert_eq!(first(&levels, packed, &IQ3_S), expected);

        let packed = "00000200050008000a00110015002000";
        let expected = "ffffffffffffffff ffffffffffffff01 ffffffffffff0000 ffffffffffff01ff \
                        ffffffffffff0101 ffffffffff00ff00 ffffffffff000000 ffffffffff01ffff";
        assert_eq!(first(&[-1, 0, 1], packed, &IQ1), expected);
    }
}
