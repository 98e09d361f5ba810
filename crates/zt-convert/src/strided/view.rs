//! Where the elements of a view are.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::Span;

/// A view of elements: where the first lies, and how far the others are apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
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
    pub(crate) fn new(
        offset: u64,
        element_len: u64,
        shape: &[u64],
        strides: &[u64],
    ) -> Option<Self> {
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
    pub(crate) fn fortran(offset: u64, element_len: u64, shape: &[u64]) -> Option<Self> {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = element_len;
        for count in shape {
            strides.push(stride);
            stride = stride.checked_mul(*count)?;
        }
        View::new(offset, element_len, shape, &strides)
    }

    /// Where its bytes are, if they lie in row-major order as they are.
    pub(crate) fn as_span(&self) -> Option<Span> {
        let is_plain = self.byte_len == 0 || self.dimensions.is_empty();
        is_plain
            .then(|| Span::new(self.offset, self.byte_len))
            .flatten()
    }

    /// Bytes of its elements.
    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// One past the last byte that it touches.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }
}
