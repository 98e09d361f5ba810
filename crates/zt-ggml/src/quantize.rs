//! Blocks from values, for the plain types.
//!
//! Operations have the order of `gguf-py` 0.19 and of ggml's functions `quantize_row_*_ref`, because f32 rounds
//! after each. IQ4_NL, which `gguf-py` only decodes, is as in ggml alone.
#![expect(clippy::indexing_slicing, reason = "in bounds, because a code has 4 bits")]

use half::f16;

use crate::codebook::NON_LINEAR;

/// Appends the block of 32 values.
pub(super) type Quantize = fn(&[f32; 32], &mut Vec<u8>);

/// `max / -8` has 8 steps on the side of the value of the greatest magnitude, and 7 on the other.
pub(super) fn q4_0(values: &[f32; 32], out: &mut Vec<u8>) {
    let d = extreme(values) / -8.0;
    let id = inverse(d);
    half(out, d);
    nibbles(out, &values.map(|value| code(value * id + 8.5).min(15)));
}

pub(super) fn q4_1(values: &[f32; 32], out: &mut Vec<u8>) {
    let (min, max) = range(values);
    let d = (max - min) / 15.0;
    let id = inverse(d);
    half(out, d);
    half(out, min);
    nibbles(out, &values.map(|value| code((value - min) * id + 0.5).min(15)));
}

pub(super) fn q5_0(values: &[f32; 32], out: &mut Vec<u8>) {
    let d = extreme(values) / -16.0;
    let id = inverse(d);
    half(out, d);
    let codes = values.map(|value| code(value * id + 16.5).min(31));
    fifth_bits(out, &codes);
    nibbles(out, &codes);
}

pub(super) fn q5_1(values: &[f32; 32], out: &mut Vec<u8>) {
    let (min, max) = range(values);
    let d = (max - min) / 31.0;
    let id = inverse(d);
    half(out, d);
    half(out, min);
    let codes = values.map(|value| code((value - min) * id + 0.5).min(31));
    fifth_bits(out, &codes);
    nibbles(out, &codes);
}

pub(super) fn q8_0(values: &[f32; 32], out: &mut Vec<u8>) {
    let d = extreme(values).abs() / 127.0;
    let id = inverse(d);
    half(out, d);
    out.extend(values.map(|value| {
        let scaled = finite(value * id).round();
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 in magnitude")]
        let code = scaled as i8;
        code.cast_unsigned()
    }));
}

/// The scale that fits the codes best, with squares as weights. ggml tries others only in
/// `quantize_iq4_nl`, which llama-quantize uses.
pub(super) fn iq4_nl(values: &[f32; 32], out: &mut Vec<u8>) {
    /// Blocks of smaller values are zeros.
    const LEAST: f32 = 1e-15;
    let max = extreme(values);
    if max.abs() < LEAST {
        out.extend([0; 18]);
        return;
    }
    let id = 1.0 / (max / NON_LINEAR[0]);
    let codes = values.map(|value| nearest(id * value));
    let (mut sum_qx, mut sum_q2) = (0.0f32, 0.0f32);
    for (value, code) in values.iter().zip(codes) {
        let q = NON_LINEAR[usize::from(code & 15)];
        let weight = value * value;
        sum_qx += weight * q * value;
        sum_q2 += weight * q * q;
    }
    half(out, sum_qx / sum_q2);
    nibbles(out, &codes);
}

/// The place of the nearest value of IQ4_NL; of two as near, the greater one.
fn nearest(value: f32) -> u8 {
    let above = NON_LINEAR.partition_point(|known| *known <= value);
    let is_nearer_below = |low: f32, high: f32| value - low < high - value;
    let at = match (above.checked_sub(1), NON_LINEAR.get(above)) {
        (None, _) => 0,
        (Some(below), None) => below,
        (Some(below), Some(high)) if is_nearer_below(NON_LINEAR[below], *high) => below,
        _ => above,
    };
    at.to_le_bytes()[0]
}

/// The first value of the greatest magnitude.
fn extreme(values: &[f32; 32]) -> f32 {
    let greater = |known: f32, value: &f32| {
        if value.abs() > known.abs() { *value } else { known }
    };
    let [first, ..] = values;
    values.iter().fold(*first, greater)
}

/// The least and the greatest value.
fn range(values: &[f32; 32]) -> (f32, f32) {
    let [first, ..] = values;
    values.iter().fold((*first, *first), |(min, max), value| {
        let min = if *value < min { *value } else { min };
        (min, if *value > max { *value } else { max })
    })
}

fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// The inverse of a subnormal scale may be infinite. Such a scale is 0 as an f16, and NumPy makes 0 of these codes.
fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded toward zero, of 0 to 32"
)]
fn code(value: f32) -> u8 {
    finite(value) as u8
}

fn half(out: &mut Vec<u8>, value: f32) {
    out.extend(f16::from_f32(value).to_le_bytes());
}

/// The lower 4 bits: the first 16 values in the lower halves of the bytes.
fn nibbles(out: &mut Vec<u8>, codes: &[u8; 32]) {
    let (low, high) = codes.split_at(16);
    out.extend(low.iter().zip(high).map(|(low, high)| low & 15 | high << 4));
}

/// The fifth bits, the first in the lowest bit.
fn fifth_bits(out: &mut Vec<u8>, codes: &[u8; 32]) {
    let bits = codes.iter().rev();
    let bits = bits.fold(0u32, |bits, code| bits << 1 | u32::from(code >> 4 & 1));
    out.extend(bits.to_le_bytes());
}
