//! The types whose 4 bits select a value of a fixed list.
#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "in bounds, because a list has 16 values; exponents have 8 bits"
)]

use crate::kernel::{half, in_groups, low_and_high};

/// The values of IQ4_NL and IQ4_XS. Their spacing follows the distribution of weights.
pub(super) const NON_LINEAR: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

/// Twice the values of E2M1 (OCP Microscaling Formats 1.0). The scales are halved.
const E2M1: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0];

/// `d: f16`, 32 values.
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let [d0, d1, qs @ ..] = block;
    let d = half([*d0, *d1]);
    low_and_high(qs, out, |q| d * NON_LINEAR[usize::from(q & 15)]);
}

/// `d: f16`, the upper 2 bits of 8 scales, their lower 4 bits, 256 values. 32 is subtracted from
/// scales.
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let [d0, d1, h0, h1, l0, l1, l2, l3, qs @ ..] = block;
    let d = half([*d0, *d1]);
    let high = u16::from_le_bytes([*h0, *h1]);
    let low = u32::from_le_bytes([*l0, *l1, *l2, *l3]);
    let groups = in_groups::<16, 32>(qs, out);
    for ((qs, out), group) in groups.zip(0u32..) {
        let scale = (low >> (4 * group) & 15) as u8 | ((high >> (2 * group) & 3) as u8) << 4;
        let d = d * (f32::from(scale) - 32.0);
        low_and_high(qs, out, |q| d * NON_LINEAR[usize::from(q & 15)]);
    }
}

/// An E8M0 exponent, 32 values.
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let [e, qs @ ..] = block;
    // Half of 2^(e - 127), which is subnormal for 0 and 1.
    let d = f32::from_bits(match e {
        0 => 0x0020_0000,
        1 => 0x0040_0000,
        _ => (u32::from(*e) - 1) << 23,
    });
    low_and_high(qs, out, |q| d * E2M1[usize::from(q & 15)]);
}

/// Four scales of unsigned E4M3, then 16 values for each.
pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    let (scales, qs) = block.split_at(4);
    let groups = in_groups::<8, 16>(qs, out);
    for ((qs, out), scale) in groups.zip(scales) {
        let d = half_of_e4m3(*scale);
        low_and_high(qs, out, |q| d * E2M1[usize::from(q & 15)]);
    }
}

/// Half of an E4M3 number without its sign. 0x7F, NaN in E4M3, is 0 here.
fn half_of_e4m3(x: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(x >> 3 & 15), f32::from(x & 7));
    match (x, exponent) {
        (0x7F, _) => 0.0,
        // Powers of two, exactly: 2^-10 and 2^(exponent - 8).
        (_, 0) => mantissa * f32::from_bits(117 << 23),
        _ => (1.0 + mantissa / 8.0) * f32::from_bits((exponent + 119) << 23),
    }
}
