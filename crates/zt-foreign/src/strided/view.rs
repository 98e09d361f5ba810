//! The offsets of a view's elements.
use zt::{Source, Span};

use super::cut::{BAND_MAX, Band, Cut, SEQUENTIAL_BAND, share};
use super::step::Step;

/// The bytes of a band of resident bytes: enough that no cache line is fetched twice.
///
/// Pays: not measured.
const RESIDENT_BAND: u64 = 1 << 20;
const CACHE_LINE: u64 = 64;

/// A view of elements: the offset of the first, and the distances to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub(super) offset: u64,
    /// Bytes that lie together: one element, or several that are neighbours in both orders.
    pub(super) run: u64,
    /// Outermost first; none of them is 1.
    pub(super) dimensions: Vec<Dimension>,
    pub(super) byte_len: u64,
    pub(super) end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) count: u64,
    /// Bytes from one element to the next.
    pub(super) stride: u64,
}

impl View {
    /// Elements of `element_len` bytes that begin at `offset` and are `strides` bytes apart. Shape and
    /// strides are outermost first. `None` if a byte is beyond 2^64, or if the numbers of strides and
    /// dimensions differ.
    pub fn new(offset: u64, element_len: u64, shape: &[u64], strides: &[u64]) -> Option<Self> {
        let elements = shape.iter().try_fold(1u64, |n, count| n.checked_mul(*count))?;
        let byte_len = elements.checked_mul(element_len)?;
        if shape.len() != strides.len() {
            return None;
        }
        let mut end = offset;
        let mut dimensions: Vec<Dimension> = Vec::new();
        for (&count, &stride) in shape.iter().zip(strides) {
            if elements == 0 || count == 1 {
                continue;
            }
            end = end.checked_add(stride.checked_mul(count.checked_sub(1)?)?)?;
            match dimensions.last_mut() {
                // The next outer row begins where the inner ones end: both are one dimension.
                Some(outer) if Some(outer.stride) == stride.checked_mul(count) => {
                    outer.count = outer.count.checked_mul(count)?;
                    outer.stride = stride;
                }
                _ => dimensions.push(Dimension { count, stride }),
            }
        }
        if elements > 0 {
            end = end.checked_add(element_len)?;
        }
        let mut run = element_len;
        if let Some(inner) = dimensions.pop_if(|inner| inner.stride == element_len) {
            run = run.checked_mul(inner.count)?;
        }
        Some(View { offset, run, dimensions, byte_len, end })
    }

    /// A Fortran array: its first dimension is the innermost.
    pub fn fortran(offset: u64, element_len: u64, shape: &[u64]) -> Option<Self> {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = element_len;
        for count in shape {
            strides.push(stride);
            stride = stride.checked_mul(*count)?;
        }
        View::new(offset, element_len, shape, &strides)
    }

    /// The bands of this view in `base`.
    pub(super) fn cut(&self, base: &dyn Source) -> Cut {
        let first = Span::new(self.offset, 1).and_then(|first| base.slice(first));
        let room = if base.is_sequential() {
            SEQUENTIAL_BAND
        } else if first.is_some() {
            RESIDENT_BAND
        } else {
            share()
        };
        let counts: Vec<u64> = self.dimensions.iter().map(|axis| axis.count).collect();
        let cut = Cut::within(&counts, self.run, room);
        let line = CACHE_LINE.checked_div(self.run).unwrap_or(1);
        let high = cut.row.checked_mul(line);
        if high.is_some_and(|bytes| bytes <= BAND_MAX) {
            let rows = cut.rows.max(line);
            cut.with_rows(rows)
        } else {
            cut
        }
    }

    /// The offset in the base of a band's first element.
    pub(super) fn first_of(&self, band: &Band) -> u64 {
        let axes = band.place.iter().zip(&self.dimensions);
        axes.fold(self.offset, |first, (at, axis)| first.strict_add(at.strict_mul(axis.stride)))
    }

    /// The dimensions of a band of `rows`, as steps in the base and in the band, in the order of the
    /// base's bytes.
    pub(super) fn steps(&self, cut: &Cut, rows: u64) -> Vec<Step> {
        let mut to = self.run;
        let mut steps = Vec::new();
        let inner = self.dimensions.iter().enumerate().skip(cut.axis);
        for (axis, dimension) in inner.rev() {
            let (mut count, from) = (dimension.count, dimension.stride);
            if axis == cut.axis {
                count = rows;
            }
            steps.push(Step { count, from, to });
            to = to.strict_mul(count);
        }
        steps.reverse();
        steps.sort_by_key(|step| std::cmp::Reverse(step.from));
        steps
    }

    /// The span of the elements, if they lie in row-major order.
    pub fn as_span(&self) -> Option<Span> {
        let is_plain = self.byte_len == 0 || self.dimensions.is_empty();
        is_plain.then(|| Span::new(self.offset, self.byte_len)).flatten()
    }

    /// The bytes of all elements.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// One past the last byte of the base that the view reads.
    pub fn end(&self) -> u64 {
        self.end
    }
}
