//! The plain types: blocks of 32 to 256 values with one or two scales.
#![expect(clippy::arithmetic_side_effects, reason = "shifts stay below the bits of their type")]

use crate::kernel::{half, low_and_high, single};

/// `d: f16`, 32 values of 4 bits minus 8: low halves first, then high halves.
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, qs @ ..] = block;
    let d = half([*d0, *d1]);
    low_and_high(qs, out, |q| d * (f32::from(q) - 8.0));
}

/// `d: f16`, `m: f16`, 32 values of 4 bits, to which `m` is added.
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, qs @ ..] = block;
    let (d, m) = (half([*d0, *d1]), half([*m0, *m1]));
    low_and_high(qs, out, |q| d * f32::from(q) + m);
}

/// `d: f16`, the fifth bits of 32 values, 32 values of 4 bits. 16 is subtracted.
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let [d0, d1, h0, h1, h2, h3, qs @ ..] = block;
    let d = half([*d0, *d1]);
    low_and_high(qs, out, f32::from);
    for (value, high) in out.iter_mut().zip(fifth_bits([*h0, *h1, *h2, *h3])) {
        *value = d * (*value + high - 16.0);
    }
}

/// `d: f16`, `m: f16`, the fifth bits of 32 values, 32 values of 4 bits. `m` is added.
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let [d0, d1, m0, m1, h0, h1, h2, h3, qs @ ..] = block;
    let (d, m) = (half([*d0, *d1]), half([*m0, *m1]));
    low_and_high(qs, out, f32::from);
    for (value, high) in out.iter_mut().zip(fifth_bits([*h0, *h1, *h2, *h3])) {
        *value = d * (*value + high) + m;
    }
}

/// `d: f16`, 32 values of 8 bits.
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let [d0, d1, qs @ ..] = block;
    signed_bytes(half([*d0, *d1]), qs, out);
}

/// `d: f16`, `s: f16` (the sum of the values, which decoding does not need), 32 values of 8 bits.
pub(super) fn q8_1(block: &[u8; 36], out: &mut [f32; 32]) {
    let [d0, d1, _, _, qs @ ..] = block;
    signed_bytes(half([*d0, *d1]), qs, out);
}

/// `d: f32`, 256 values of 8 bits, their sums by 16 (which decoding does not need).
pub(super) fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    let [d0, d1, d2, d3, qs @ ..] = block;
    signed_bytes(single([*d0, *d1, *d2, *d3]), qs, out);
}

/// `d: f16`, 128 signs, the first in the lowest bit: `d` if it is set, else `-d`.
pub(super) fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let [d0, d1, qs @ ..] = block;
    let d = half([*d0, *d1]);
    for (q, values) in qs.iter().zip(out.as_chunks_mut::<8>().0) {
        for (value, bit) in values.iter_mut().zip(0..8) {
            *value = if q >> bit & 1 == 1 { d } else { -d };
        }
    }
}

/// `d: f16`, 64 values of 2 bits minus 1, the first in the lowest bits.
pub(super) fn q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let [d0, d1, qs @ ..] = block;
    let d = half([*d0, *d1]);
    for (q, values) in qs.iter().zip(out.as_chunks_mut::<4>().0) {
        for (value, shift) in values.iter_mut().zip([0, 2, 4, 6]) {
            *value = d * (f32::from(q >> shift & 3) - 1.0);
        }
    }
}

/// 256 values of -1, 0 or 1 as digits in base 3, five per byte, the last 16 four per byte; `d:
/// f16`.
pub(super) fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    let [qs @ .., h0, h1, h2, h3, d0, d1] = block;
    let d = half([*d0, *d1]);
    let (fives, sixteen) = out.split_at_mut(240);
    let (first, second) = fives.split_at_mut(160);
    let (of_first, of_second) = qs.split_at(32);
    digits(d, of_first, first);
    digits(d, of_second, second);
    digits(d, &[*h0, *h1, *h2, *h3], sixteen);
}

/// The digits of all bytes times `d`: the first digit of each, then the second, and so on.
fn digits(d: f32, bytes: &[u8], out: &mut [f32]) {
    let powers = [1u8, 3, 9, 27, 81];
    for (power, values) in powers.iter().zip(out.chunks_mut(bytes.len())) {
        for (value, byte) in values.iter_mut().zip(bytes) {
            // The byte is the number as a fraction of 256, rounded up. The product has the digit on
            // top.
            let digit = (u16::from(byte.wrapping_mul(*power)) * 3) >> 8;
            *value = d * (f32::from(digit) - 1.0);
        }
    }
}

/// 256 values of 2 bits minus 1, 32 in the same bits of 32 bytes; `d: f16`.
pub(super) fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let [qs @ .., d0, d1] = block;
    let d = half([*d0, *d1]);
    let halves = qs.as_chunks::<32>().0.iter();
    for (qs, values) in halves.zip(out.as_chunks_mut::<128>().0) {
        for (values, shift) in values.as_chunks_mut::<32>().0.iter_mut().zip([0, 2, 4, 6]) {
            for (value, q) in values.iter_mut().zip(qs) {
                *value = d * (f32::from(q >> shift & 3) - 1.0);
            }
        }
    }
}

fn signed_bytes(d: f32, qs: &[u8], out: &mut [f32]) {
    for (value, q) in out.iter_mut().zip(qs) {
        *value = d * f32::from(q.cast_signed());
    }
}

/// The fifth bits of 32 values, each as 0 or 16.
fn fifth_bits(bytes: [u8; 4]) -> [f32; 32] {
    let bits = u32::from_le_bytes(bytes);
    let mut at = 0u32;
    [(); 32].map(|()| {
        let bit = if bits >> at & 1 == 1 { 16.0 } else { 0.0 };
        at += 1;
        bit
    })
}
