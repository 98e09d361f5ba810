//! A range of bytes in a file, whose end fits into a `u64`.

use crate::magic::ALIGNMENT;

/// `byte_len` bytes from the absolute `offset` on.
///
/// Invariant: `offset + byte_len` does not overflow, so [`Span::end`] needs no check. Whether the bytes exist
/// is checked with [`Span::contains`], once, when a span is read from a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    offset: u64,
    byte_len: u64,
}

impl Span {
    /// A span, or `None` if its end would exceed `u64::MAX`.
    pub const fn new(offset: u64, byte_len: u64) -> Option<Self> {
        match offset.checked_add(byte_len) {
            Some(_) => Some(Span { offset, byte_len }),
            None => None,
        }
    }

    /// The span from `start` up to `end`, or `None` if they are in the wrong order.
    pub const fn between(start: u64, end: u64) -> Option<Self> {
        match end.checked_sub(start) {
            Some(byte_len) => Some(Span { offset: start, byte_len }),
            None => None,
        }
    }

    /// The span of numbers that were checked before.
    ///
    /// # Panics
    ///
    /// If the end would exceed `u64::MAX`.
    #[track_caller]
    #[expect(clippy::expect_used, reason = "a wrong span would go unnoticed")]
    pub const fn exact(offset: u64, byte_len: u64) -> Self {
        Span::new(offset, byte_len).expect("the end of checked numbers fits")
    }

    /// The span from `start` up to `end`, whose order was checked before.
    ///
    /// # Panics
    ///
    /// If they are in the wrong order.
    #[track_caller]
    #[expect(clippy::expect_used, reason = "a wrong span would go unnoticed")]
    pub const fn exact_between(start: u64, end: u64) -> Self {
        Span::between(start, end).expect("a span ends behind its start")
    }

    /// The absolute offset of the first byte.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// The number of bytes.
    pub const fn byte_len(self) -> u64 {
        self.byte_len
    }

    /// The absolute offset one past the last byte.
    pub const fn end(self) -> u64 {
        // The invariant of the type: this does not overflow.
        self.offset.strict_add(self.byte_len)
    }

    /// Whether the span has no bytes.
    pub const fn is_empty(self) -> bool {
        self.byte_len == 0
    }

    /// Whether every byte of `other` lies within `self`. An empty `other` may lie at the end.
    pub const fn contains(self, other: Span) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }

    /// Whether the two share at least one byte.
    pub const fn overlaps(self, other: Span) -> bool {
        self.offset < other.end()
            && other.offset < self.end()
            && !self.is_empty()
            && !other.is_empty()
    }

    /// Whether the first byte is on the 64-byte grid.
    pub const fn is_aligned(self) -> bool {
        self.offset.is_multiple_of(ALIGNMENT)
    }
}
