//! Numbers of any number of bits, one after the other, the highest bit first.

use zt::ByteOrder;

/// Packed numbers.
pub(crate) struct Bits<'b> {
    bytes: std::slice::Iter<'b, u8>,
    /// The bits of the current byte that are left, as the lowest ones.
    held: u8,
    count: u32,
}

impl<'b> Bits<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Bits { bytes: bytes.iter(), held: 0, count: 0 }
    }

    /// The next number of `wanted` bits, 64 at most; `None` if fewer are left.
    pub(crate) fn next(&mut self, mut wanted: u32) -> Option<u64> {
        let mut number = 0u64;
        while wanted > 0 {
            if self.count == 0 {
                (self.held, self.count) = (*self.bytes.next()?, u8::BITS);
            }
            let taken = wanted.min(self.count);
            self.count = self.count.checked_sub(taken)?;
            wanted = wanted.checked_sub(taken)?;
            let low = u64::from(self.held).checked_shr(self.count)?;
            let mask = u64::from(u8::MAX).checked_shr(u8::BITS.checked_sub(taken)?)?;
            number = number << taken | low & mask;
        }
        Some(number)
    }
}

/// The number in at most eight bytes.
pub(crate) fn number(bytes: &[u8], byte_order: ByteOrder) -> u64 {
    let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    match byte_order {
        ByteOrder::Little => bytes.iter().rev().fold(0, push),
        ByteOrder::Big => bytes.iter().fold(0, push),
    }
}

/// Appends the low `len` bytes of a number.
pub(crate) fn put(out: &mut Vec<u8>, number: u64, len: usize, byte_order: ByteOrder) {
    let bytes = number.to_le_bytes();
    let bytes = bytes.iter().take(len);
    match byte_order {
        ByteOrder::Little => out.extend(bytes),
        ByteOrder::Big => out.extend(bytes.rev()),
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn numbers_begin_in_the_middle_of_a_byte() {
        let mut bits = Bits::new(&[0b1010_0110, 0b1100_0011, 0xFF]);
        assert_eq!(bits.next(3), Some(0b101));
        assert_eq!(bits.next(0), Some(0));
        assert_eq!(bits.next(9), Some(0b0_0110_1100));
        assert_eq!(bits.next(4), Some(0b0011));
        assert_eq!(bits.next(9), None);
    }
}
