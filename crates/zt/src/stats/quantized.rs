//! What a quantized object stores: levels, and their scales.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "levels of a byte, and counts of values that exist"
)]

use zt_formats::{Elements, Quantized4Bit, QuantizedGroup, View};
use zt_ggml::{BlockType, Blocks};

use super::sketch::Histogram;
use super::values::Stats;
use crate::error::Result;
use crate::file::tensor::Tensor;

/// The levels of a quantized object, which are its values before scales and zero-points, and their scales.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// How many values have each level.
    pub levels: Histogram,
    /// Of the scales. A block with scales of its own for its parts has one that is common to them.
    pub scales: Stats,
}

/// Bits of a level: an object with more of them has too many levels to count.
const BITS: u32 = 8;

/// Counts of the levels from -128 to 255.
struct Counts([u64; 3 << (BITS - 1)]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; 3 << (BITS - 1)])
    }
}

impl Counts {
    const LEAST: i64 = -(1 << (BITS - 1));

    fn add(&mut self, level: i64) {
        let place = usize::try_from(level - Self::LEAST).ok();
        if let Some(count) = place.and_then(|place| self.0.get_mut(place)) {
            *count += 1;
        }
    }

    /// `None` if there are none.
    fn histogram(&self) -> Option<Histogram> {
        let first = self.0.iter().position(|count| *count > 0)?;
        let last = self.0.iter().rposition(|count| *count > 0)?;
        Some(Histogram {
            start: Self::LEAST + first as i64,
            width: 1.0,
            counts: self.0.get(first..=last)?.to_vec(),
        })
    }
}

/// `None` for an object of another kind, for one with more levels than 8 bits have, and for one without values.
pub(super) fn quantized(tensor: &Tensor<'_>) -> Result<Option<Quantized>> {
    let (mut counts, registry) = (Counts::default(), tensor.registry());
    let scales = match tensor.format() {
        QuantizedGroup::FORMAT => {
            let group: QuantizedGroup<'_> = tensor.view()?;
            if group.quantization().bits > BITS {
                return Ok(None);
            }
            group.quantized().for_each(|level| counts.add(level));
            Stats::of(group.scales(), registry)?
        }
        Quantized4Bit::FORMAT => {
            let view: Quantized4Bit<'_> = tensor.view()?;
            view.quantized().for_each(|level| counts.add(level.into()));
            Stats::of(view.scale(), registry)?
        }
        format => {
            let Some(block_type) = BlockType::from_format(format) else {
                return Ok(None);
            };
            let mut scales: Vec<f32> = Vec::new();
            let blocks = Blocks::from_parts(block_type, tensor.parts()?)?;
            blocks.for_each_levels(|levels, scale| {
                for level in levels {
                    #[expect(clippy::cast_possible_truncation, reason = "a small integer")]
                    counts.add(f32::from_le_bytes(*level) as i64);
                }
                scales.push(scale);
            });
            Stats::of(&Elements::from(&scales), registry)?
        }
    };
    Ok(counts.histogram().map(|levels| Quantized { levels, scales }))
}
