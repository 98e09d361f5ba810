//! Quantizes f32 to `quantized_group`: the scale of a group spans its minimum to its maximum.

use crate::base::attribute::out_of_range;
use crate::base::buffer::reserved;
use crate::base::cast::narrow;
use crate::base::{Buffer, Elements, Misuse, Result, SizeMismatch, element_count};
use crate::formats::quantization::{Packing, Quantization, ZeroKind};
use crate::formats::quantized_group::QuantizedGroup;

impl QuantizedGroup<'_> {
    /// Quantizes finite `values`, group by group, into f32 scales and zero-points.
    ///
    /// Signed values are symmetric: zero stays zero, the greatest magnitude of a group becomes the
    /// greatest value, and there are no zero-points. Unsigned values span the minimum to the
    /// maximum of a group. With subtractive zero-points, which are whole numbers, they also span
    /// zero.
    ///
    /// # Errors
    ///
    /// Malformed: the number of values is not the shape's, or a parameter is out of range. Here
    /// `bits` is at most 16, and at least 2 for signed values. Misuse: a value is not finite.
    /// Allocation.
    pub fn quantize(
        shape: impl Into<Vec<u64>>,
        values: &[f32],
        quantization: Quantization,
    ) -> Result<QuantizedGroup<'static>> {
        let shape = shape.into();
        let found = values.len() as u64;
        let Some(expected) = element_count(&shape) else {
            return Err(SizeMismatch::Overflow { shape }.of_object());
        };
        if found != expected {
            return Err(SizeMismatch::Elements { expected, found }.of_object());
        }
        quantization.check(expected)?;
        let (min, max) = (if quantization.signed { 2 } else { 1 }, 16);
        let bits = u64::from(quantization.bits);
        if !(min..=max).contains(&bits) {
            return Err(out_of_range("bits", bits, min, max));
        }
        if let Some((_, position)) = values.iter().zip(0..).find(|(value, _)| !value.is_finite()) {
            return Err(Misuse::NotFinite { position }.into());
        }

        // A group larger than the address space holds all values.
        let group_size = usize::try_from(quantization.group_size).unwrap_or(usize::MAX);
        let mut quantized = reserved::<i64>(values.len())?;
        let groups = values.chunks(group_size);
        let mut scales = reserved::<f32>(groups.len())?;
        let mut zeros = reserved::<f32>(groups.len())?;
        for group in groups {
            let scale = Scale::of(group, &quantization);
            quantized.extend(group.iter().map(|value| scale.quantize(*value)));
            scales.push(scale.scale);
            zeros.push(scale.zero);
        }
        let packed = pack(&quantized, quantization.bits, quantization.packing)?;
        let zeros = (!quantization.signed).then(|| Elements::from(zeros));
        QuantizedGroup::new(shape, quantization, packed, Elements::from(scales), zeros)
    }
}

struct Scale {
    scale: f32,
    zero: f32,
    zero_kind: ZeroKind,
    least: f32,
    greatest: f32,
}

impl Scale {
    fn of(group: &[f32], quantization: &Quantization) -> Self {
        let zero_kind = quantization.zero_kind;
        // At most 16 bits: every quantized value is an f32.
        let power = 2f32.powi(quantization.bits.cast_signed());
        if quantization.signed {
            let magnitude = group.iter().fold(0f32, |most, value| most.max(value.abs()));
            let greatest = power / 2.0 - 1.0;
            return Scale {
                scale: bounded(positive(magnitude / greatest), greatest),
                zero: 0.0,
                zero_kind,
                least: -greatest,
                greatest,
            };
        }
        let levels = power - 1.0;
        let start = match zero_kind {
            ZeroKind::Subtractive => 0.0,
            ZeroKind::Additive => group.first().copied().unwrap_or(0.0),
        };
        let least = group.iter().copied().fold(start, f32::min);
        let greatest = group.iter().copied().fold(start, f32::max);
        // In f64 neither the difference of two f32 nor one level of it is infinite.
        let level = (f64::from(greatest) - f64::from(least)) / f64::from(levels);
        let scale = positive(narrow(level.min(f32::MAX.into())));
        let (zero, reach) = match zero_kind {
            ZeroKind::Subtractive => {
                let zero = (-least / scale).round_ties_even().clamp(0.0, levels);
                (zero, zero.max(levels - zero))
            }
            ZeroKind::Additive => (least, levels),
        };
        let scale = bounded(scale, reach);
        Scale { scale, zero, zero_kind, least: 0.0, greatest: levels }
    }

    fn quantize(&self, value: f32) -> i64 {
        let place = match self.zero_kind {
            ZeroKind::Subtractive => value / self.scale + self.zero,
            ZeroKind::Additive => {
                narrow((f64::from(value) - f64::from(self.zero)) / f64::from(self.scale))
            }
        };
        let place = place.round_ties_even().clamp(self.least, self.greatest);
        // A whole number of at most 16 bits.
        #[expect(clippy::cast_possible_truncation, reason = "clamped to 17 bits above")]
        let quantized = place as i64;
        quantized
    }
}

/// A scale whose product with `reach` is finite. Values beyond that range are clipped.
fn bounded(scale: f32, reach: f32) -> f32 {
    if (scale * reach).is_finite() { scale } else { (f32::MAX / reach).next_down() }
}

/// A scale to divide by. A group of zeros may have any.
fn positive(scale: f32) -> f32 {
    if scale > 0.0 { scale } else { 1.0 }
}

/// Packs the lower `bits` bits of each quantized value, the first value in the lowest bits.
fn pack(quantized: &[i64], bits: u32, packing: Packing) -> Result<Elements<'static>> {
    let width = packing.dtype.byte_len();
    let per_word = packing.per_word as usize;
    let words = quantized.chunks(per_word.max(1));
    let mut out = Buffer::try_zeroed_values(words.len() as u64, width as u64)?;
    let mask = u64::MAX.wrapping_shr(u64::BITS.wrapping_sub(bits));
    for (values, target) in words.zip(out.chunks_exact_mut(width)) {
        // In reverse order: each value shifts the later ones up.
        let word = values
            .iter()
            .rev()
            .fold(0u64, |word, value| word.wrapping_shl(bits) | (value.cast_unsigned() & mask));
        let bytes = word.to_le_bytes();
        target.copy_from_slice(bytes.get(..width).unwrap_or_default());
    }
    Ok(Elements::new(packing.dtype, out))
}
