//! Operations that torch defers: a view is marked as conjugated or negated, and its storage is not
//! changed.

use std::io;
use std::sync::Arc;

use zt::container::memory::read_whole;
use zt::{ByteOrder, DType, Source, Span};

use crate::element::{ElementType, Meaning};

/// The operations that a view is marked with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Deferred {
    pub(super) is_conjugated: bool,
    pub(super) is_negated: bool,
}

impl Deferred {
    /// The operation in torch, for messages; `None` if there is none.
    pub(super) const fn name(self) -> Option<&'static str> {
        match self {
            Deferred { is_conjugated: true, .. } => Some("conj"),
            Deferred { is_negated: true, .. } => Some("neg"),
            _ => None,
        }
    }

    /// What the operations do to an element; `None` if it has no negative.
    pub(super) fn change(self, element: &ElementType, byte_order: ByteOrder) -> Option<Change> {
        let Meaning::Values(dtype, logical_type) = element.meaning else {
            return None;
        };
        if dtype.is_float() {
            return self.mask(element, byte_order).map(Change::Flip);
        }
        // A conjugate of a real number is itself.
        let is_integer = logical_type.is_none() && dtype != DType::Bool && self.is_negated;
        let byte_len = dtype.byte_len();
        is_integer.then_some(Change::Negate { byte_len, byte_order })
    }

    /// The bits of an element that the operations flip: the signs of its parts. `None` for elements
    /// that are not floating-point.
    fn mask(self, element: &ElementType, byte_order: ByteOrder) -> Option<Vec<u8>> {
        let Meaning::Values(dtype, _) = element.meaning else {
            return None;
        };
        if !matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16) {
            return None;
        }
        let part_len = dtype.byte_len();
        let mut mask = vec![0; usize::try_from(element.byte_len).ok()?];
        for (at, part) in mask.chunks_mut(part_len).enumerate() {
            // The second part of a complex number is the imaginary one. A zero gets a sign, as IEEE 754 negates. torch 2.15
            // does so for the elements at the end of a tensor, and computes `0 - x` of those that fill a vector register.
            let is_flipped = self.is_negated != (self.is_conjugated && at == 1);
            let sign = match byte_order {
                ByteOrder::Big => part.first_mut(),
                _ => part.last_mut(),
            };
            if let Some(sign) = sign.filter(|_| is_flipped) {
                *sign = 0x80;
            }
        }
        Some(mask)
    }
}

/// A change of every element.
pub(super) enum Change {
    /// These bits are flipped.
    Flip(Vec<u8>),
    /// An integer is negated. As in torch, the lowest one is its own negative.
    Negate { byte_len: usize, byte_order: ByteOrder },
}

impl Change {
    /// Bytes of an element: one at least.
    const fn byte_len(&self) -> usize {
        match self {
            Change::Flip(mask) => mask.len(),
            Change::Negate { byte_len, .. } => *byte_len,
        }
    }

    /// Changes whole elements.
    fn apply(&self, bytes: &mut [u8]) {
        for element in bytes.chunks_mut(self.byte_len()) {
            match self {
                Change::Flip(mask) => {
                    for (byte, flipped) in element.iter_mut().zip(mask) {
                        *byte ^= flipped;
                    }
                }
                Change::Negate { byte_order, .. } => {
                    if *byte_order == ByteOrder::Big {
                        element.reverse();
                    }
                    let mut carry = true;
                    for byte in &mut *element {
                        (*byte, carry) = (!*byte).overflowing_add(carry.into());
                    }
                    if *byte_order == ByteOrder::Big {
                        element.reverse();
                    }
                }
            }
        }
    }
}

/// The elements in a range of a source, changed.
pub(super) struct Changed {
    base: Arc<dyn Source>,
    span: Span,
    change: Change,
}

impl Changed {
    /// The elements in `span`.
    pub(super) const fn new(base: Arc<dyn Source>, span: Span, change: Change) -> Self {
        Changed { base, span, change }
    }
}

impl Source for Changed {
    fn byte_len(&self) -> u64 {
        self.span.byte_len()
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let len = self.change.byte_len();
        read_whole(self.span.byte_len(), len, offset, buf, |number, elements| {
            let at = self.span.offset().strict_add(number.strict_mul(len as u64));
            self.base.read_at(at, elements)?;
            self.change.apply(elements);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(
        name: &str,
        is_conjugated: bool,
        is_negated: bool,
        order: ByteOrder,
    ) -> Option<Vec<u8>> {
        let deferred = Deferred { is_conjugated, is_negated };
        deferred.mask(ElementType::from_name(name).unwrap(), order)
    }

    #[test]
    fn the_signs_of_the_parts_are_flipped() {
        use ByteOrder::{Big, Little};
        for (name, conj, neg, order, expected) in [
            ("float32", false, true, Little, &[0, 0, 0, 0x80][..]),
            ("float32", false, true, Big, &[0x80, 0, 0, 0]),
            ("bfloat16", false, true, Little, &[0, 0x80]),
            ("float32", true, false, Little, &[0; 4]),
            ("complex64", true, false, Little, &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            ("complex64", true, false, Big, &[0, 0, 0, 0, 0x80, 0, 0, 0]),
            ("complex64", false, true, Little, &[0, 0, 0, 0x80, 0, 0, 0, 0x80]),
            ("complex64", true, true, Little, &[0, 0, 0, 0x80, 0, 0, 0, 0]),
        ] {
            assert_eq!(mask(name, conj, neg, order).unwrap(), expected, "{name}");
        }
        for name in ["int64", "bool", "float8_e5m2", "qint8"] {
            assert_eq!(mask(name, false, true, Little), None, "{name}");
        }
    }

    #[test]
    fn any_part_of_the_elements_can_be_read() {
        let base = Arc::new(zt::Memory::new((0..20).collect::<Vec<u8>>()));
        let flip = Change::Flip(vec![0, 0, 0, 0x80]);
        let source = Changed::new(base, Span::new(2, 16).unwrap(), flip);
        let read = |offset, len| {
            let mut bytes = vec![0; len];
            source.read_at(offset, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(0, 5).unwrap(), [2, 3, 4, 0x85, 6]);
        assert_eq!(read(3, 2).unwrap(), [0x85, 6]);
        assert_eq!(read(15, 1).unwrap(), [0x91]);
        assert!(read(15, 2).is_err() && read(u64::MAX, 2).is_err());
    }
    #[test]
    fn integers_are_negated_as_torch_does() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let values = [0, 1, -1, 256, i32::MAX, i32::MIN];
            let bytes = values.map(|value: i32| match order {
                ByteOrder::Big => value.to_be_bytes(),
                _ => value.to_le_bytes(),
            });
            let expected = values.map(|value| match order {
                ByteOrder::Big => value.wrapping_neg().to_be_bytes(),
                _ => value.wrapping_neg().to_le_bytes(),
            });
            let expected = expected.concat();
            let deferred = Deferred { is_conjugated: false, is_negated: true };
            let change = deferred.change(ElementType::from_name("int32").unwrap(), order);
            let base = Arc::new(zt::Memory::new(bytes.concat()));
            let source = Changed::new(base, Span::new(0, 24).unwrap(), change.unwrap());
            for (start, end) in [(0, 24), (1, 24), (4, 8), (3, 9), (5, 7)] {
                let mut found = vec![0; end - start];
                source.read_at(start as u64, &mut found).unwrap();
                assert_eq!(Some(&*found), expected.get(start..end), "{start}..{end}");
            }
        }
        let negated = Deferred { is_conjugated: false, is_negated: true };
        for name in ["bool", "float8_e5m2", "qint8"] {
            let element = ElementType::from_name(name).unwrap();
            assert!(negated.change(element, ByteOrder::Little).is_none(), "{name}");
        }
    }
}
