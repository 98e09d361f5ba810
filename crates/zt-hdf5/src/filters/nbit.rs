//! The filter n-bit, which stores only the significant bits of every element: `H5Znbit.c`.

use zt::ByteOrder;

use crate::bytes::bits::{Bits, put};

/// The parameters of the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nbit {
    /// Whether the bytes are stored as they are.
    is_plain: bool,
    /// Bytes of an element, and its significant bits.
    element_len: usize,
    precision: u32,
    offset: u32,
    byte_order: ByteOrder,
}

impl Nbit {
    /// The filter with these parameters; `None` for records, and for parameters that are invalid.
    pub(crate) fn new(parameters: &[u32]) -> Option<Self> {
        const ATOMIC: u32 = 1;
        const ARRAY: u32 = 2;
        let (is_plain, mut rest) = match parameters {
            [_, flag, _, rest @ ..] => (*flag != 0, rest),
            _ => return None,
        };
        // The elements of an array follow each other.
        while let [ARRAY, _, inner @ ..] = rest {
            rest = inner;
        }
        let (element_len, byte_order, precision, offset) = match *rest {
            [ATOMIC, element_len, order, precision, offset, ..] => {
                let is_big = order == 1;
                let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
                (element_len, order, precision, offset)
            }
            _ if is_plain => (1, ByteOrder::Little, 8, 0),
            _ => return None,
        };
        let bits = element_len.checked_mul(8)?;
        let is_valid = (1..=8).contains(&element_len)
            && precision > 0
            && precision.checked_add(offset)? <= bits;
        // Longer elements, such as a long double, are only stored as they are.
        (is_valid || is_plain).then_some(Nbit {
            is_plain,
            element_len: usize::try_from(element_len).ok()?,
            precision,
            offset,
            byte_order,
        })
    }

    /// The elements of a chunk of `byte_len` bytes; `None` if `bytes` has too few.
    pub(crate) fn decode(&self, bytes: Vec<u8>, byte_len: usize) -> Option<Vec<u8>> {
        if self.is_plain {
            return Some(bytes);
        }
        let mut out = Vec::new();
        out.try_reserve_exact(byte_len).ok()?;
        let mut bits = Bits::new(&bytes);
        for _ in 0..byte_len.checked_div(self.element_len)? {
            let number = bits.next(self.precision)?.checked_shl(self.offset)?;
            put(&mut out, number, self.element_len, self.byte_order);
        }
        Some(out)
    }
}
