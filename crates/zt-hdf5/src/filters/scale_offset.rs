//! The filter scale-offset: `H5Zscaleoffset.c`. A chunk is its least value, and the difference of every
//! element from it in as few bits as possible. Floats are rounded to a number of decimals first.

use zt::ByteOrder;

use crate::bytes::bits::{Bits, number, put};

/// The parameters of the filter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScaleOffset {
    scale: Scale,
    /// Elements of a chunk, and bytes of each.
    count: usize,
    element_len: usize,
    byte_order: ByteOrder,
    /// The bits of the fill value, which is stored as the greatest difference.
    fill: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    /// Integers; without a difference if they are stored as they are.
    Integer { is_plain: bool },
    /// Floats with so many decimals.
    Decimals(i32),
}

/// Bytes before the differences: their width, the length of the least value, that value, and a gap.
const HEAD_LEN: usize = 4 + 1 + 16;

impl ScaleOffset {
    /// The filter with these parameters; `None` for a variant that the library itself does not write,
    /// and for parameters that are invalid.
    pub(crate) fn new(parameters: &[u32]) -> Option<Self> {
        let [kind, factor, count, class, element_len, _sign, order, has_fill, rest @ ..] =
            parameters
        else {
            return None;
        };
        let factor = factor.cast_signed();
        let bits = element_len.checked_mul(8)?;
        let scale = match (kind, class, element_len) {
            (0, 1, 4 | 8) => Scale::Decimals(factor),
            (2, 0, 1 | 2 | 4 | 8) => {
                Scale::Integer { is_plain: u32::try_from(factor).ok()? == bits }
            }
            _ => return None,
        };
        // An absent word is 0.
        let word = |at: usize| rest.get(at).copied().map_or(0, u64::from);
        Some(ScaleOffset {
            scale,
            count: usize::try_from(*count).ok()?,
            element_len: usize::try_from(*element_len).ok()?,
            byte_order: if *order == 1 { ByteOrder::Big } else { ByteOrder::Little },
            fill: (*has_fill != 0).then(|| word(0) | word(1) << 32),
        })
    }

    /// The elements of a chunk of `byte_len` bytes; `None` if `bytes` are invalid or too few.
    pub(crate) fn decode(&self, bytes: Vec<u8>, byte_len: usize) -> Option<Vec<u8>> {
        if self.scale == (Scale::Integer { is_plain: true }) {
            return Some(bytes);
        }
        if self.count.checked_mul(self.element_len)? != byte_len {
            return None;
        }
        let (head, stored) = bytes.split_at_checked(HEAD_LEN)?;
        let (width, rest) = head.split_first_chunk::<4>()?;
        let (_, rest) = rest.split_first()?;
        let width = u32::from_le_bytes(*width);
        let least = u64::from_le_bytes(*rest.first_chunk()?);
        let element_bits = u32::try_from(self.element_len.checked_mul(8)?).ok()?;
        let mut out = Vec::new();
        out.try_reserve_exact(byte_len).ok()?;
        let mut bits = Bits::new(stored);
        if width >= element_bits {
            // The elements as they are, in the byte order of the writer, which is little-endian.
            for element in stored.chunks_exact(self.element_len).take(self.count) {
                let number = number(element, ByteOrder::Little);
                put(&mut out, number, self.element_len, self.byte_order);
            }
            return Some(out);
        }
        // All bits set; 0 without bits.
        let greatest = u64::MAX.checked_shr(64u32.checked_sub(width)?).unwrap_or(0);
        for _ in 0..self.count {
            let difference = bits.next(width)?;
            let number = match self.fill.filter(|_| difference == greatest) {
                Some(fill) => fill,
                None => self.restore(difference, least),
            };
            put(&mut out, number, self.element_len, self.byte_order);
        }
        Some(out)
    }

    /// The bits of an element.
    fn restore(&self, difference: u64, least: u64) -> u64 {
        let [a, b, c, d, ..] = least.to_le_bytes();
        match (self.scale, self.element_len) {
            (Scale::Integer { .. }, _) => least.wrapping_add(difference),
            // The library computes floats as floats.
            (Scale::Decimals(decimals), 4) => {
                let least = f32::from_le_bytes([a, b, c, d]);
                let [e, f, g, h, ..] = difference.to_le_bytes();
                let difference = i32::from_le_bytes([e, f, g, h]);
                #[expect(clippy::cast_precision_loss, reason = "the library rounds so, too")]
                #[expect(clippy::cast_possible_truncation, reason = "a power of ten as f32")]
                let value = difference as f32 / 10f64.powi(decimals) as f32 + least;
                value.to_bits().into()
            }
            (Scale::Decimals(decimals), _) => {
                #[expect(clippy::cast_precision_loss, reason = "the library rounds so, too")]
                let scaled = difference.cast_signed() as f64 / 10f64.powi(decimals);
                (scaled + f64::from_bits(least)).to_bits()
            }
        }
    }
}
