//! CBOR's floats of 16, 32 and 64 bits. Conversions keep every bit of a NaN.

const FRACTION: u64 = (1 << 52) - 1;

/// A binary32 as a binary64 of the same value. A NaN keeps its payload and its quiet bit, which a
/// conversion by the processor would set.
pub(super) fn widen_single(bits: u32) -> f64 {
    let value = f32::from_bits(bits);
    if value.is_nan() {
        let sign = u64::from(bits >> 31) << 63;
        let payload = u64::from(bits & 0x007F_FFFF) << 29;
        f64::from_bits(sign | 0x7FF0_0000_0000_0000 | payload)
    } else {
        f64::from(value)
    }
}

/// A binary16 as a binary64 of the same value. A NaN keeps its payload and its quiet bit.
pub(super) fn widen_half(bits: u32) -> f64 {
    let sign = u64::from(bits >> 15 & 1) << 63;
    let fraction = bits & 0x3FF;
    let magnitude = match bits >> 10 & 0x1F {
        // Subnormal: units of 2^-24.
        0 => f64::from(fraction) * (1.0 / 16_777_216.0),
        31 => f64::from_bits(0x7FF0_0000_0000_0000 | u64::from(fraction) << 42),
        // The bias grows from 15 to 1023.
        exponent => {
            let exponent = u64::from(exponent).wrapping_add(1008);
            f64::from_bits(exponent << 52 | u64::from(fraction) << 42)
        }
    };
    f64::from_bits(sign | magnitude.to_bits())
}

/// Writes a float with its head, in the fewest bytes that keep every bit. A signalling NaN takes all eight
/// bytes, because a decoder that widens it may make it quiet.
pub(super) fn push_float(out: &mut Vec<u8>, value: f64) {
    let is_signalling = value.is_nan() && value.to_bits() >> 51 & 1 == 0;
    let narrow = Some(value).filter(|_| !is_signalling);
    if let Some(half) = narrow.and_then(half_of) {
        out.push(0xF9);
        out.extend(half.to_be_bytes());
    } else if let Some(single) = narrow.and_then(single_of) {
        out.push(0xFA);
        out.extend(single.to_be_bytes());
    } else {
        out.push(0xFB);
        out.extend(value.to_be_bytes());
    }
}

/// The binary16 of exactly this value, if there is one.
fn half_of(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 52 & 0x7FF, bits & FRACTION);
    let magnitude = match exponent {
        // Subnormal: units of 2^-24.
        999..=1008 => (fraction | 1 << 52) >> 1051u64.wrapping_sub(exponent),
        1009..=1038 => exponent.wrapping_sub(1008) << 10 | fraction >> 42,
        0x7FF => 0x7C00 | fraction >> 42,
        _ => 0,
    };
    let half = u16::try_from(bits >> 63 << 15 | magnitude).ok()?;
    (widen_half(half.into()).to_bits() == bits).then_some(half)
}

/// The binary32 of exactly this value, if there is one.
fn single_of(value: f64) -> Option<u32> {
    let bits = value.to_bits();
    let single = if value.is_nan() {
        u32::try_from(bits >> 63 << 31 | 0x7F80_0000 | (bits & FRACTION) >> 29).ok()?
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "compared below")]
        let single = value as f32;
        single.to_bits()
    };
    (widen_single(single).to_bits() == bits).then_some(single)
}
