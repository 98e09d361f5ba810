//! The elements of all slices of a tensor, as one source.

use std::io;
use std::sync::Arc;

use zt::container::memory::{end_of_read, in_memory};
use zt::{Source, Span};

use super::{Slice, SliceFault, check};
use crate::strided::divided;

/// Bytes of a slice that are read at once if they go to several places.
///
/// Pays: not measured.
const WINDOW: u64 = 256 << 10;

/// A tensor in row-major order whose elements are in slices. A read takes bytes only from the slices that
/// it meets.
///
/// The elements of a slice have the same order in the slice and in the tensor. So any range of the tensor is
/// a range of every slice, and a reader from the first byte to the last reads every slice so.
pub struct Assembled {
    byte_len: u64,
    parts: Vec<PlacedSlice>,
}

impl Assembled {
    /// A tensor of `shape`, with elements of `element_len` bytes. The source of a slice has its elements and
    /// nothing else.
    ///
    /// # Errors
    ///
    /// As [`check`]; [`SliceFault::Overflow`].
    pub fn new(
        shape: &[u64],
        element_len: u64,
        slices: Vec<(Slice, Arc<dyn Source>)>,
    ) -> Result<Self, SliceFault> {
        check(shape, slices.iter().map(|(slice, _)| slice))?;
        let byte_len = byte_len(shape, element_len).ok_or(SliceFault::Overflow)?;
        let slices = slices.into_iter();
        let some = slices.filter(|(slice, _)| !slice.is_empty());
        let part = |(slice, source)| PlacedSlice::new(shape, element_len, &slice, source);
        Ok(Assembled { byte_len, parts: some.map(part).collect() })
    }
}

impl Source for Assembled {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        self.parts.iter().any(|part| part.source.is_sequential())
    }

    fn made_of(&self, span: Span) -> Option<Vec<(Arc<dyn Source>, Span)>> {
        let of_part = |part: &PlacedSlice| {
            let start = part.before(span.offset());
            let span = Span::new(start, part.before(span.end()).strict_sub(start))?;
            let made_of = || part.source.made_of(span);
            let own = || vec![(Arc::clone(&part.source), span)];
            Some(if span.is_empty() { Vec::new() } else { made_of().unwrap_or_else(own) })
        };
        Some(self.parts.iter().filter_map(of_part).flatten().collect())
    }

    fn is_remote(&self) -> bool {
        self.parts.iter().any(|part| part.source.is_remote())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = end_of_read(self.byte_len, offset, out)?;
        for part in &self.parts {
            part.copy(offset, end, out)?;
        }
        Ok(())
    }
}

/// The bytes of all elements; `None` beyond 2^64.
pub fn byte_len(shape: &[u64], element_len: u64) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let mut sizes = shape.iter();
    sizes.try_fold(element_len, |len, size| len.checked_mul(*size))
}

/// A slice that is not empty, and its elements.
struct PlacedSlice {
    /// Outermost first. The innermost has bytes in place of elements.
    axes: Vec<Axis>,
    source: Arc<dyn Source>,
}

/// A dimension of the tensor, or several that the slice does not cut.
#[derive(Debug, Clone, Copy)]
struct Axis {
    /// The first index of the slice.
    offset: u64,
    /// The indices of the slice, and those of the tensor.
    size: u64,
    count: u64,
    /// Bytes from one index to the next, in the slice and in the tensor.
    step: u64,
    stride: u64,
}

impl PlacedSlice {
    /// A slice that was checked: no product exceeds the bytes of the tensor.
    fn new(shape: &[u64], element_len: u64, slice: &Slice, source: Arc<dyn Source>) -> Self {
        let mut inner =
            Axis { offset: 0, size: element_len, count: element_len, step: 1, stride: 1 };
        let mut axes = Vec::new();
        for ((offset, size, _), count) in slice.axes().zip(shape).rev() {
            let count = *count;
            if inner.size == inner.count {
                // Rows that are whole follow each other, in the slice and in the tensor.
                inner.offset = offset.strict_mul(inner.count);
                inner.size = size.strict_mul(inner.count);
                inner.count = count.strict_mul(inner.count);
                continue;
            }
            axes.push(inner);
            inner = Axis {
                offset,
                size,
                count,
                step: inner.step.strict_mul(inner.size),
                stride: inner.stride.strict_mul(inner.count),
            };
        }
        axes.push(inner);
        axes.reverse();
        PlacedSlice { axes, source }
    }

    /// How many bytes of the slice are before the byte at `at` of the tensor.
    fn before(&self, at: u64) -> u64 {
        let (mut rest, mut before) = (at, 0u64);
        for axis in &self.axes {
            let index;
            (index, rest) = divided(rest, axis.stride);
            let Some(index) = index.checked_sub(axis.offset) else {
                return before;
            };
            before = before.strict_add(index.min(axis.size).strict_mul(axis.step));
            if index >= axis.size {
                return before;
            }
        }
        before
    }

    /// Where the byte at `number` of the slice is in the tensor, and how many bytes follow it in both.
    fn place(&self, number: u64) -> (u64, u64) {
        let (mut rest, mut at, mut run) = (number, 0u64, 0);
        for axis in &self.axes {
            let index;
            (index, rest) = divided(rest, axis.step);
            run = axis.size.strict_sub(index);
            at = at.strict_add(axis.offset.strict_add(index).strict_mul(axis.stride));
        }
        (at, run)
    }

    /// Copies what the slice has of the bytes from `offset` to `end` of the tensor.
    fn copy(&self, offset: u64, end: u64, out: &mut [u8]) -> io::Result<()> {
        let (mut number, last) = (self.before(offset), self.before(end));
        let mut window = Vec::new();
        while number < last {
            let (_, run) = self.place(number);
            let left = last.strict_sub(number);
            if run.min(left) >= WINDOW || run >= left {
                let len = run.min(left);
                let target = target(out, self.place(number).0.strict_sub(offset), len)?;
                self.source.read_at(number, target)?;
                number = number.strict_add(len);
                continue;
            }
            window.resize(in_memory(left.min(WINDOW)), 0);
            self.source.read_at(number, &mut window)?;
            let mut bytes = &window[..];
            while !bytes.is_empty() {
                let (at, run) = self.place(number);
                let len = run.min(bytes.len() as u64);
                let (source, further) = bytes.split_at(in_memory(len));
                target(out, at.strict_sub(offset), len)?.copy_from_slice(source);
                number = number.strict_add(len);
                bytes = further;
            }
        }
        Ok(())
    }
}

fn target(out: &mut [u8], at: u64, len: u64) -> io::Result<&mut [u8]> {
    let target = out.get_mut(in_memory(at)..);
    let target = target.and_then(|target| target.get_mut(..in_memory(len)));
    target.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
