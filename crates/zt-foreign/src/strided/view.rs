//! Where the elements of a view are.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Source, Span};

use super::cut::{BAND_MAX, Band, Cut, SEQUENTIAL_BAND, share};
use super::step::Step;

/// Where bytes are resident, a band need only be so high that no cache line is fetched twice.
const RESIDENT_BAND: u64 = 1 << 20;
const CACHE_LINE: u64 = 64;

/// A view of elements: where the first lies, and how far the others are apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub(super) offset: u64,
    /// Bytes that lie together: an element, or several that are neighbours in both orders.
    pub(super) run: u64,
    /// Outermost first; none of them is 1.
    pub(super) dimensions: Vec<Dimension>,
    pub(super) byte_len: u64,
    pub(super) end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) count: u64,
    /// Bytes from one to the next.
    pub(super) stride: u64,
}

impl View {
    /// Elements of `element_len` bytes, the first at `offset`, `strides` bytes apart; shape and
    /// strides outermost first. `None` where a byte would lie behind 2^64, or where there are other
    /// than as many strides as dimensions.
    pub fn new(offset: u64, element_len: u64, shape: &[u64], strides: &[u64]) -> Option<Self> {
        let elements = shape
            .iter()
            .try_fold(1u64, |n, count| n.checked_mul(*count))?;
        let byte_len = elements.checked_mul(element_len)?;
        if shape.len() != strides.len() {
            return None;
        }
        let mut end = offset;
        let mut dimensions: Vec<Dimension> = Vec::new();
        for (count, stride) in shape.iter().zip(strides) {
            if elements == 0 || *count == 1 {
                continue;
            }
            end = end.checked_add(stride.checked_mul(count.checked_sub(1)?)?)?;
            let inner = Dimension {
                count: *count,
                stride: *stride,
            };
            match dimensions.last_mut() {
                // The outer one goes on where the inner one ends: they are one.
                Some(outer) if Some(outer.stride) == stride.checked_mul(*count) => {
                    outer.count = outer.count.checked_mul(*count)?;
                    outer.stride = *stride;
                }
                _ => dimensions.push(inner),
            }
        }
        if elements > 0 {
            end = end.checked_add(element_len)?;
        }
        let mut run = element_len;
        if let Some(inner) = dimensions.pop_if(|inner| inner.stride == element_len) {
            run = run.checked_mul(inner.count)?;
        }
        Some(View {
            offset,
            run,
            dimensions,
            byte_len,
            end,
        })
    }

    /// An array of Fortran: the first dimension is the innermost.
    pub fn fortran(offset: u64, element_len: u64, shape: &[u64]) -> Option<Self> {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = element_len;
        for count in shape {
            strides.push(stride);
            stride = stride.checked_mul(*count)?;
        }
        View::new(offset, element_len, shape, &strides)
    }

    /// How it is cut into bands of what its base gives.
    pub(super) fn cut(&self, base: &dyn Source) -> Cut {
        let first = Span::new(self.offset, 1).unwrap_or_default();
        let room = if base.is_sequential() {
            SEQUENTIAL_BAND
        } else if base.slice(first).is_some() {
            RESIDENT_BAND
        } else {
            share()
        };
        let counts: Vec<u64> = self.dimensions.iter().map(|axis| axis.count).collect();
        let cut = Cut::within(&counts, self.run, room);
        let line = CACHE_LINE.checked_div(self.run).unwrap_or(1);
        let high = cut.row.checked_mul(line);
        match high.is_some_and(|bytes| bytes <= BAND_MAX) {
            true => {
                let rows = cut.rows.max(line);
                cut.with_rows(rows)
            }
            false => cut,
        }
    }

    /// Where in the base the first element of a band is.
    pub(super) fn first_of(&self, band: &Band) -> u64 {
        let axes = band.place.iter().zip(&self.dimensions);
        axes.fold(self.offset, |first, (at, axis)| {
            first.saturating_add(at.saturating_mul(axis.stride))
        })
    }

    /// The dimensions of a band of so many rows, as steps in the base and in the band; in the order in which
    /// the bytes lie in the base.
    pub(super) fn steps(&self, cut: &Cut, rows: u64) -> Vec<Step> {
        let mut to = self.run;
        let mut steps = Vec::new();
        let inner = self.dimensions.iter().enumerate().skip(cut.axis);
        for (axis, dimension) in inner.rev() {
            let count = if axis == cut.axis {
                rows
            } else {
                dimension.count
            };
            steps.push(Step {
                count,
                from: dimension.stride,
                to,
            });
            to = to.saturating_mul(count);
        }
        steps.reverse();
        steps.sort_by_key(|step| std::cmp::Reverse(step.from));
        steps
    }

    /// Where its bytes are, if they lie in row-major order as they are.
    pub fn as_span(&self) -> Option<Span> {
        let is_plain = self.byte_len == 0 || self.dimensions.is_empty();
        is_plain
            .then(|| Span::new(self.offset, self.byte_len))
            .flatten()
    }

    /// Bytes of its elements.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// One past the last byte that it touches.
    #[cfg(test)]
    pub fn end(&self) -> u64 {
        self.end
    }
}
