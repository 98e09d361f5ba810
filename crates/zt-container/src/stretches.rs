//! Bytes in stretches of equal length: the chunks of a blob, the leaves of a seal, the pieces of a long read.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::span::Span;

/// A span in stretches of equal length. The last one may be shorter.
///
/// ```
/// use zt_container::{Span, Stretches};
///
/// let span = |offset, byte_len| Span::new(offset, byte_len).unwrap();
/// let stretches = Stretches::new(span(100, 25), 10);
/// assert_eq!(stretches.count(), 3);
/// assert_eq!((stretches.get(2), stretches.get(3)), (Some(span(120, 5)), None));
/// assert_eq!(stretches.touched(span(109, 2)), 0..2);
/// assert_eq!(stretches.around(span(119, 2)), span(110, 15));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Stretches {
    whole: Span,
    byte_len: u64,
}

impl Stretches {
    /// Stretches of `byte_len` bytes, which are not 0.
    pub const fn new(whole: Span, byte_len: u64) -> Self {
        Stretches { whole, byte_len }
    }

    /// Their number.
    pub const fn count(&self) -> u64 {
        self.whole.byte_len().div_ceil(self.byte_len)
    }

    /// The bytes of one.
    pub fn get(&self, at: u64) -> Option<Span> {
        let start = at.checked_mul(self.byte_len)?;
        let left = self.whole.byte_len().checked_sub(start).filter(|left| *left > 0)?;
        Span::new(self.whole.offset().checked_add(start)?, left.min(self.byte_len))
    }

    /// The numbers of those with bytes of `span`, which lies in the whole.
    pub const fn touched(&self, span: Span) -> Range<u64> {
        let start = span.offset().saturating_sub(self.whole.offset());
        let end = span.end().saturating_sub(self.whole.offset());
        start.strict_div(self.byte_len)..end.div_ceil(self.byte_len)
    }

    /// All bytes of those that have bytes of `span`.
    pub fn around(&self, span: Span) -> Span {
        let Range { start, end } = self.touched(span);
        let ends = self.get(start).zip(end.checked_sub(1).and_then(|last| self.get(last)));
        let around = ends.and_then(|(first, last)| Span::between(first.offset(), last.end()));
        around.unwrap_or(span)
    }
}

/// Which stretches were found right. Threads share it.
#[derive(Debug, Default)]
pub struct Right(Box<[AtomicU64]>);

impl Right {
    /// None of `count`.
    pub fn none_of(count: u64) -> Self {
        Right((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    fn bit(&self, at: u64) -> Option<(&AtomicU64, u64)> {
        Some((self.0.get(usize::try_from(at / 64).ok()?)?, 1 << (at % 64)))
    }

    /// Whether one was found right.
    pub fn has(&self, at: u64) -> bool {
        self.bit(at).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// One was found right.
    pub fn add(&self, at: u64) {
        if let Some((word, bit)) = self.bit(at) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }
}
