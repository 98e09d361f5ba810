//! The coordinates of a sparse tensor, in the order of `sparse_coo`.
//!
//! In ONNX every value has one index into the flat tensor, or one per dimension. `sparse_coo` has all
//! indices of the first dimension, then all of the second, and so on.

use std::io;
use std::sync::Arc;

use zt::container::memory::{in_memory, read_whole};
use zt::{Error, Source};

use crate::fault::OnnxFault;

/// Bytes of an index.
const WIDTH: u64 = 8;

/// Indices that are read at a time.
const PIECE: u64 = 8 << 10;

/// Coordinates, `u64`, which are made of flat indices when they are read.
pub(super) struct Unravelled {
    /// Indices: `i64`, one for each value.
    flat: Arc<dyn Source>,
    offset: u64,
    count: u64,
    /// The size and the stride of every dimension, outermost first.
    dimensions: Vec<(u64, u64)>,
}

impl Unravelled {
    /// The coordinates of `count` indices, from `offset` of `flat` on. `None` if the shape has no
    /// dimensions, or if its number of elements overflows.
    pub(super) fn new(
        flat: Arc<dyn Source>,
        offset: u64,
        count: u64,
        shape: &[u64],
    ) -> Option<Self> {
        let mut stride = 1u64;
        let mut dimensions = Vec::with_capacity(shape.len());
        for dimension in shape.iter().rev() {
            dimensions.push((*dimension, stride));
            stride = stride.checked_mul(*dimension)?;
        }
        dimensions.reverse();
        count.checked_mul(WIDTH)?.checked_mul(dimensions.len() as u64)?;
        let coords = Unravelled { flat, offset, count, dimensions };
        (!coords.dimensions.is_empty()).then_some(coords)
    }

    /// The coordinates in one dimension of the values from `first` on.
    fn fill(&self, axis: u64, first: u64, out: &mut [u8]) -> io::Result<()> {
        self.flat.read_at(self.offset.strict_add(first.strict_mul(WIDTH)), out)?;
        let dimension = self.dimensions.get(in_memory(axis)).copied();
        let (size, stride) = dimension.ok_or(io::ErrorKind::UnexpectedEof)?;
        // An index outside the tensor leaves the outermost dimension.
        let limit = if axis == 0 { size } else { u64::MAX };
        let (indices, _) = out.as_chunks_mut::<8>();
        for index in indices {
            let value = i64::from_le_bytes(*index);
            // In a tensor without elements a stride or a size is 0, and every index is outside.
            let row = u64::try_from(value)
                .ok()
                .and_then(|value| value.checked_div(stride))
                .filter(|row| *row < limit);
            let coordinate = row.and_then(|row| row.checked_rem(size));
            let coordinate = coordinate.ok_or_else(|| Error::from(OnnxFault::Index { value }))?;
            *index = coordinate.to_le_bytes();
        }
        Ok(())
    }
}

impl Source for Unravelled {
    fn byte_len(&self) -> u64 {
        self.count.strict_mul(self.dimensions.len() as u64).strict_mul(WIDTH)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        read_whole(self.byte_len(), in_memory(WIDTH), offset, buf, |mut number, mut out| {
            while !out.is_empty() {
                let (axis, first) = (number.strict_div(self.count), number.strict_rem(self.count));
                let wanted = out.len() as u64 / WIDTH;
                let count = wanted.min(PIECE).min(self.count.strict_sub(first));
                let (here, rest) = out.split_at_mut(in_memory(count.strict_mul(WIDTH)));
                self.fill(axis, first, here)?;
                (out, number) = (rest, number.strict_add(count));
            }
            Ok(())
        })
    }
}
