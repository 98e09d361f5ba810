//! The K-quants: 256 values in 8 or 16 groups, with a scale for each group and one for all.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "in bounds, because the parts of a block have constant lengths; shifts stay below 8"
)]

use crate::kernel::{half, in_groups};

/// `scales`: 16 bytes, a 4-bit scale below a 4-bit minimum; values of 2 bits; `d`, `dmin`: f16.
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let [rest @ .., d0, d1, m0, m1] = block;
    let (d, dmin) = (half([*d0, *d1]), half([*m0, *m1]));
    let (scales, qs) = rest.split_at(16);
    let mut scales = scales.iter();
    two_bits(qs, out, |qs, out| {
        let scale = scales.next().copied().unwrap_or_default();
        let (d, min) = (d * f32::from(scale & 15), dmin * f32::from(scale >> 4));
        for (value, q) in out.iter_mut().zip(qs) {
            *value = d * f32::from(*q) - min;
        }
    });
}

/// The third bits of 256 values, inverted; their lower two; 16 scales of 6 bits, from which 32 is
/// subtracted; `d: f16`.
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let [rest @ .., d0, d1] = block;
    let d = half([*d0, *d1]);
    let (hmask, rest) = rest.split_at(32);
    let (qs, packed) = rest.split_at(64);
    two_bits(qs, out, |qs, out| {
        for (value, q) in out.iter_mut().zip(qs) {
            *value = f32::from(*q);
        }
    });
    let scales = q3_k_scales(packed);
    let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(scales);
    for ((values, scale), group) in groups.zip(0u8..) {
        let d = d * (f32::from(scale) - 32.0);
        let (hmask, bit) = (hmask.iter().skip(usize::from(group & 1) * 16), group >> 1);
        for (value, mask) in values.iter_mut().zip(hmask) {
            let high = f32::from((mask >> bit & 1 ^ 1) << 2);
            *value = d * (*value - high);
        }
    }
}

/// 16 scales of 6 bits: the lower 4 bits in 8 bytes, the upper 2 in the last 4.
fn q3_k_scales(packed: &[u8]) -> [u8; 16] {
    let mut scales = [0; 16];
    let (low, high) = packed.split_at(8);
    for (at, scale) in scales.iter_mut().enumerate() {
        let low = low[at % 8] >> (at / 8 * 4) & 15;
        let high = high[at % 4] >> (at / 4 * 2) & 3;
        *scale = low | high << 4;
    }
    scales
}

/// `d`, `dmin`: f16; 8 scales and minima of 6 bits; values of 4 bits.
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let [d0, d1, m0, m1, rest @ ..] = block;
    let (d, dmin) = (half([*d0, *d1]), half([*m0, *m1]));
    let (packed, qs) = rest.split_at(12);
    let (scales, mins) = scales_and_mins(packed);
    let pairs = scales.as_chunks::<2>().0.iter().zip(mins.as_chunks::<2>().0);
    let groups = in_groups::<32, 64>(qs, out);
    for ((qs, out), (scales, mins)) in groups.zip(pairs) {
        let [d_low, d_high] = scales.map(|scale| d * f32::from(scale));
        let [min_low, min_high] = mins.map(|min| dmin * f32::from(min));
        let (low, high) = out.split_at_mut(32);
        for ((q, low), high) in qs.iter().zip(low).zip(high) {
            *low = d_low * f32::from(q & 15) - min_low;
            *high = d_high * f32::from(q >> 4) - min_high;
        }
    }
}

/// `d`, `dmin`: f16; 8 scales and minima of 6 bits; the fifth bits; values of 4 bits.
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let [d0, d1, m0, m1, rest @ ..] = block;
    let (d, dmin) = (half([*d0, *d1]), half([*m0, *m1]));
    let (packed, rest) = rest.split_at(12);
    let (qh, qs) = rest.split_at(32);
    let (scales, mins) = scales_and_mins(packed);
    let groups = out.as_chunks_mut::<32>().0.iter_mut().zip(0u8..);
    for ((out, group), (scale, min)) in groups.zip(scales.into_iter().zip(mins)) {
        let (d, min) = (d * f32::from(scale), dmin * f32::from(min));
        let qs = qs.iter().skip(usize::from(group >> 1) * 32);
        let shift = (group & 1) * 4;
        for ((value, q), high) in out.iter_mut().zip(qs).zip(qh) {
            let q = q >> shift & 15 | (high >> group & 1) << 4;
            *value = d * f32::from(q) - min;
        }
    }
}

/// The lower 4 bits of 256 values; their upper 2; 16 scales of 8 bits; `d: f16`. 32 is subtracted.
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let [rest @ .., d0, d1] = block;
    let d = half([*d0, *d1]);
    let (ql, rest) = rest.split_at(128);
    let (qh, scales) = rest.split_at(64);
    let halves = ql.as_chunks::<64>().0.iter().zip(qh.as_chunks::<32>().0);
    let halves = halves.zip(scales.as_chunks::<8>().0);
    for (((ql, qh), scales), out) in halves.zip(out.as_chunks_mut::<128>().0) {
        let groups = out.as_chunks_mut::<16>().0.iter_mut().zip(0u8..);
        for ((out, group), scale) in groups.zip(scales) {
            // Two groups make a row of 32. The four rows share bytes: rows 0 and 2 their lower
            // bits, rows 1 and 3 theirs, and all rows their upper bits.
            let (row, half) = (group / 2, usize::from(group & 1) * 16);
            let ql = ql.iter().skip(usize::from(row & 1) * 32 + half);
            let qh = qh.iter().skip(half);
            let (low_shift, high_shift) = (row / 2 * 4, row * 2);
            let d = d * f32::from(scale.cast_signed());
            for ((value, low), high) in out.iter_mut().zip(ql).zip(qh) {
                let q = low >> low_shift & 15 | (high >> high_shift & 3) << 4;
                *value = d * (f32::from(q) - 32.0);
            }
        }
    }
}

/// Eight scales and eight minima of 6 bits. The first four of each are the lower bits of a byte.
/// The last four have their lower bits in the last bytes, and their upper bits above the first
/// four.
fn scales_and_mins(packed: &[u8]) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut mins) = ([0; 8], [0; 8]);
    for at in 0..4 {
        let (scale, min, both) = (packed[at], packed[at + 4], packed[at + 8]);
        scales[at] = scale & 63;
        mins[at] = min & 63;
        scales[at + 4] = both & 15 | scale >> 2 & 48;
        mins[at + 4] = both >> 4 | min >> 2 & 48;
    }
    (scales, mins)
}

/// Calls `group` with each 16 of 256 values of 2 bits. 32 values are in the same bits of 32 bytes.
fn two_bits(qs: &[u8], out: &mut [f32; 256], mut group: impl FnMut(&[u8; 16], &mut [f32; 16])) {
    let halves = qs.as_chunks::<32>().0.iter();
    for (qs, out) in halves.zip(out.as_chunks_mut::<128>().0) {
        let rows = out.as_chunks_mut::<32>().0.iter_mut();
        for (out, shift) in rows.zip([0, 2, 4, 6]) {
            let groups = qs.as_chunks::<16>().0.iter();
            for (qs, out) in groups.zip(out.as_chunks_mut::<16>().0) {
                group(&qs.map(|q| q >> shift & 3), out);
            }
        }
    }
}
