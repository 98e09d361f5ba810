//! The filter szip: the adaptive entropy coding of CCSDS 121.0-B, with the parameters of `H5Zszip.c`.
//!
//! ```text
//! chunk:    length of the values (4 bytes), blocks
//! scanline: blocks; the first one has a reference sample if samples are predicted
//! block:    option, [reference sample], samples
//! ```
//!
//! Samples of 32 and 64 bits are coded as bytes: all first bytes of the elements, then all second ones.
//! The decoder is our own. `tensogram-szip` 0.21 of ECMWF has the coding without HDF5's scanlines and
//! interleaved bytes. It accepts more zero blocks than a scanline has, and reserves memory for them.

use crate::bytes::bits::Bits;
use crate::filters::shuffle::unshuffle;

/// The least number of blocks that stand for the rest of a segment: `ROS`.
const REST: u64 = 5;
/// The blocks of a segment.
const SEGMENT: u64 = 64;

/// The most bytes that one byte of szip can give: a segment of 32 samples of 4 bytes a block takes 11
/// bits.
pub(crate) const MAX_RATIO: u64 = 6 << 10;

/// The parameters of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Szip {
    /// Whether a sample is the difference to the one before.
    is_predicted: bool,
    is_big_endian: bool,
    /// Samples of a block, and of a scanline.
    block: u64,
    scanline: u64,
    /// Bits and bytes of a sample.
    bits: u32,
    width: usize,
    /// Bytes of an element whose bytes are samples.
    interleaved: Option<usize>,
}

impl Szip {
    /// The filter with these parameters; `None` if they are invalid.
    pub(crate) fn new(parameters: &[u32]) -> Option<Self> {
        const MSB: u32 = 16;
        const NEAREST_NEIGHBOUR: u32 = 32;
        let [options, block, bits, scanline, ..] = *parameters else {
            return None;
        };
        let interleaved = match bits {
            32 => Some(4),
            64 => Some(8),
            1..=24 => None,
            _ => return None,
        };
        let bits = if interleaved.is_some() { 8 } else { bits };
        let is_valid = matches!(block, 2..=32) && block % 2 == 0 && (1..=4096).contains(&scanline);
        is_valid.then_some(Szip {
            is_predicted: options & NEAREST_NEIGHBOUR != 0,
            is_big_endian: options & MSB != 0,
            block: block.into(),
            scanline: scanline.into(),
            bits,
            width: match bits {
                ..=8 => 1,
                9..=16 => 2,
                _ => 4,
            },
            interleaved,
        })
    }

    /// The bytes of a chunk, `limit` at most; `None` if it is invalid.
    pub(crate) fn decode(&self, bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
        let (len, bytes) = bytes.split_first_chunk::<4>()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        if len > limit || len.checked_rem(self.width)? != 0 {
            return None;
        }
        let mut out = Vec::new();
        out.try_reserve_exact(len).ok()?;
        let mut bits = Bits::new(bytes);
        let mut line: Vec<u32> = Vec::new();
        while out.len() < len {
            let left = len.checked_sub(out.len())?.checked_div(self.width)? as u64;
            self.line(&mut bits, left, &mut line)?;
            // A scanline may end inside a block.
            let samples = usize::try_from(left.min(self.scanline)).ok()?;
            for sample in line.get(..samples)? {
                match (self.width, self.is_big_endian) {
                    (4, true) => out.extend(sample.to_be_bytes()),
                    (4, false) => out.extend(sample.to_le_bytes()),
                    (2, true) => out.extend(sample.to_be_bytes().get(2..)?),
                    (2, false) => out.extend(sample.to_le_bytes().get(..2)?),
                    _ => out.extend(sample.to_le_bytes().get(..1)?),
                }
            }
        }
        match self.interleaved {
            Some(width) => {
                // Bytes of an incomplete element are left out.
                let rest = out.chunks_exact(width).remainder().len();
                out.truncate(out.len().checked_sub(rest)?);
                unshuffle(out, width).ok()
            }
            None => Some(out),
        }
    }

    /// Decodes the blocks of a scanline, with at least `wanted` samples or all.
    fn line(&self, bits: &mut Bits<'_>, wanted: u64, line: &mut Vec<u32>) -> Option<()> {
        let blocks = self.scanline.div_ceil(self.block);
        let id_bits: u32 = match self.bits {
            ..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        let uncoded = 1u64.checked_shl(id_bits)?.checked_sub(1)?;
        line.clear();
        let mut done = 0u64;
        while done < blocks && done.checked_mul(self.block)? < wanted {
            let option = bits.next(id_bits)?;
            let has_reference = self.is_predicted && done == 0;
            let is_extended = option == 0 && bits.next(1)? == 1;
            if has_reference && option != uncoded {
                line.push(self.sample(bits)?);
            }
            let start = u64::from(has_reference);
            let count = self.block.checked_sub(start)?;
            let mut coded = 1;
            if option == uncoded {
                for _ in 0..self.block {
                    line.push(self.sample(bits)?);
                }
            } else if is_extended {
                self.pairs(bits, start, line)?;
            } else if option == 0 {
                coded = match unary(bits)?.checked_add(1)? {
                    REST => {
                        let of_segment = SEGMENT.checked_sub(done.checked_rem(SEGMENT)?)?;
                        of_segment.min(blocks.checked_sub(done)?)
                    }
                    more if more > REST => more.checked_sub(1)?,
                    fewer => fewer,
                };
                if coded > blocks.checked_sub(done)? {
                    return None;
                }
                let end = done.checked_add(coded)?.checked_mul(self.block)?;
                line.resize(usize::try_from(end).ok()?, 0);
            } else {
                let low = u32::try_from(option.checked_sub(1)?).ok()?;
                let first = line.len();
                for _ in 0..count {
                    let high = unary(bits)?;
                    // More bits than a sample has are invalid.
                    let high = high.checked_shl(low).filter(|_| high >> 32 == 0)?;
                    line.push(u32::try_from(high).ok()?);
                }
                for sample in line.get_mut(first..)? {
                    *sample |= u32::try_from(bits.next(low)?).ok()?;
                }
            }
            done = done.checked_add(coded)?;
        }
        if self.is_predicted {
            self.unpredict(line)?;
        }
        Some(())
    }

    /// Two samples that are coded as one number: `m_se`.
    fn pairs(&self, bits: &mut Bits<'_>, start: u64, line: &mut Vec<u32>) -> Option<()> {
        let mut at = start;
        while at < self.block {
            let number = unary(bits)?;
            // The pairs with a sum before `sum` have the numbers below `first`.
            let (mut sum, mut first) = (0u64, 0u64);
            while first.checked_add(sum)?.checked_add(1)? <= number {
                sum = sum.checked_add(1)?;
                first = first.checked_add(sum)?;
                if sum > 12 {
                    return None;
                }
            }
            let second = number.checked_sub(first)?;
            if at.is_multiple_of(2) {
                line.push(u32::try_from(sum.checked_sub(second)?).ok()?);
                at = at.checked_add(1)?;
            }
            line.push(u32::try_from(second).ok()?);
            at = at.checked_add(1)?;
        }
        Some(())
    }

    fn sample(&self, bits: &mut Bits<'_>) -> Option<u32> {
        u32::try_from(bits.next(self.bits)?).ok()
    }

    /// Makes samples of differences to the sample before, which are mapped to numbers from 0 on.
    fn unpredict(&self, line: &mut [u32]) -> Option<()> {
        let max = u32::MAX.checked_shr(32u32.checked_sub(self.bits)?)?;
        let middle = max >> 1;
        let (first, rest) = line.split_first_mut()?;
        let mut value = *first;
        for sample in rest {
            let (mapped, half) = (*sample, sample.div_ceil(2));
            let is_low = value <= middle;
            let room = if is_low { value } else { max.checked_sub(value)? };
            value = if half > room {
                if is_low { mapped } else { max.checked_sub(mapped)? }
            } else if mapped % 2 == 0 {
                value.checked_add(half)?
            } else {
                value.checked_sub(half)?
            };
            *sample = value;
        }
        Some(())
    }
}

/// The number of zeros before the next one.
fn unary(bits: &mut Bits<'_>) -> Option<u64> {
    let mut count = 0u64;
    while bits.next(1)? == 0 {
        count = count.checked_add(1)?;
    }
    Some(count)
}
