//! Operations that torch defers: a view is marked as conjugated or negated, and its storage is not
//! changed.

use std::io;
use std::sync::Arc;

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
            Deferred {
                is_conjugated: true,
                ..
            } => Some("conj"),
            Deferred {
                is_negated: true, ..
            } => Some("neg"),
            _ => None,
        }
    }

    /// The bits of an element that the operations flip: the signs of its parts. `None` for elements
    /// that are not floating-point.
    pub(super) fn mask(self, element: &ElementType, byte_order: ByteOrder) -> Option<Vec<u8>> {
        let Meaning::Values(dtype, _) = element.meaning else {
            return None;
        };
        if !matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16) {
            return None;
        }
        let part_len = dtype.byte_len();
        let mut mask = vec![0; usize::try_from(element.byte_len).ok()?];
        for (at, part) in mask.chunks_mut(part_len).enumerate() {
            // The second part of a complex number is the imaginary one.
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

/// The elements in a range of a source, with flipped bits.
pub(super) struct Flipped {
    base: Arc<dyn Source>,
    span: Span,
    /// The bits that are flipped in every element.
    mask: Vec<u8>,
}

impl Flipped {
    /// The elements in `span`, each as long as `mask`.
    pub(super) const fn new(base: Arc<dyn Source>, span: Span, mask: Vec<u8>) -> Self {
        Flipped { base, span, mask }
    }
}

impl Source for Flipped {
    fn byte_len(&self) -> u64 {
        self.span.byte_len()
    }

    fn is_sequential(&self) -> bool {
        self.base.is_sequential()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.span.byte_len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.base
            .read_at(self.span.offset().strict_add(offset), buf)?;
        let skipped = offset.checked_rem(self.mask.len() as u64).unwrap_or(0);
        let mask = self.mask.iter().cycle();
        let mask = mask.skip(usize::try_from(skipped).unwrap_or(0));
        for (byte, flipped) in buf.iter_mut().zip(mask) {
            *byte ^= flipped;
        }
        Ok(())
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
        let deferred = Deferred {
            is_conjugated,
            is_negated,
        };
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
            (
                "complex64",
                true,
                false,
                Little,
                &[0, 0, 0, 0, 0, 0, 0, 0x80],
            ),
            ("complex64", true, false, Big, &[0, 0, 0, 0, 0x80, 0, 0, 0]),
            (
                "complex64",
                false,
                true,
                Little,
                &[0, 0, 0, 0x80, 0, 0, 0, 0x80],
            ),
            (
                "complex64",
                true,
                true,
                Little,
                &[0, 0, 0, 0x80, 0, 0, 0, 0],
            ),
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
        let source = Flipped::new(base, Span::new(2, 16).unwrap(), vec![0, 0, 0, 0x80]);
        let read = |offset, len| {
            let mut bytes = vec![0; len];
            source.read_at(offset, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(0, 5).unwrap(), [2, 3, 4, 0x85, 6]);
        assert_eq!(read(3, 2).unwrap(), [0x85, 6]);
        assert_eq!(read(15, 1).unwrap(), [0x91]);
        assert!(read(15, 2).is_err() && read(u64::MAX, 2).is_err());
    }
}
