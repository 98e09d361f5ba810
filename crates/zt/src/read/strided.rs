//! Values of a component at even distances, and which of them lie in which piece.

use std::ops::Range;

use zt_container::Span;
use zt_container::codec::Frame;
use zt_container::memory::in_memory;

/// Values of a component at even distances, and the memory for them.
///
/// ```text
///            at            at + step     at + 2 * step
/// component  [value].......[value].......[value]......
/// out        [value][value][value]
/// ```
///
/// With a negative step, each value lies before the last one. Neighbouring bytes are a single value.
pub(crate) struct Strided<'o> {
    /// Where in the decoded component the first value begins.
    at: u64,
    /// Bytes from the start of a value to the start of the next one.
    step: i64,
    value_len: usize,
    out: &'o mut [u8],
}

/// The bytes from the first to behind the last of `count` values, at most to the end of all numbers.
pub(crate) fn range(at: u64, step: i64, count: u64, value_len: u64) -> Range<u64> {
    let reach = step.unsigned_abs().saturating_mul(count.saturating_sub(1));
    let first = if step < 0 { at.saturating_sub(reach) } else { at };
    let last = if step < 0 { at } else { at.saturating_add(reach) };
    first..last.saturating_add(if count == 0 { 0 } else { value_len })
}

impl<'o> Strided<'o> {
    /// Neighbouring bytes, from `at` on.
    pub(crate) fn bytes(at: u64, out: &'o mut [u8]) -> Self {
        Self::values(at, 0, out.len(), out)
    }

    /// Values of `value_len` bytes, the first at `at`, the others `step` bytes from one to the next.
    pub(crate) fn values(at: u64, step: i64, value_len: usize, out: &'o mut [u8]) -> Self {
        Strided { at, step, value_len: value_len.max(1), out }
    }

    /// The memory, if all of it is for neighbouring bytes.
    pub(crate) fn as_bytes(&mut self) -> Option<&mut [u8]> {
        (self.value_len == self.out.len()).then_some(&mut *self.out)
    }

    /// The decoded bytes from the first to behind the last value.
    pub(crate) fn range(&self) -> Range<u64> {
        let count = self.out.len().div_ceil(self.value_len) as u64;
        range(self.at, self.step, count, self.value_len as u64)
    }

    /// The values piece by piece. `None` if a value is in no piece, or one of several lies across two.
    pub(crate) fn by_piece(
        wanted: &'o mut [Strided<'_>],
        piece_at: impl Fn(u64) -> Option<Frame>,
    ) -> Option<Vec<(Frame, Vec<Self>)>> {
        let mut tasks: Vec<(Frame, Vec<Self>)> = Vec::new();
        for wanted in wanted {
            let mut rest = Strided { out: &mut *wanted.out, ..*wanted };
            while !rest.out.is_empty() {
                let is_in = |content: Span| (content.offset()..content.end()).contains(&rest.at);
                if let Some((piece, parts)) =
                    tasks.last_mut().filter(|(piece, _)| is_in(piece.content))
                {
                    parts.push(rest.take_within(piece.content)?);
                    continue;
                }
                let piece = piece_at(rest.at)?;
                let parts = vec![rest.take_within(piece.content)?];
                tasks.push((piece, parts));
            }
        }
        Some(tasks)
    }

    /// The values one by one, each with its place in the component.
    pub(crate) fn each_value(&mut self) -> impl Iterator<Item = (u64, &mut [u8])> {
        let (mut at, step) = (self.at, self.step);
        self.out.chunks_mut(self.value_len).map(move |value| {
            let place = at;
            // The step after the last one may lead below 0.
            at = at.saturating_add_signed(step);
            (place, value)
        })
    }

    /// Takes the first values, as far as they lie within a piece, which has the byte `at`.
    ///
    /// ```text
    /// piece   |...............................|.........
    /// values  [value].......[value].......[value].......[value]
    /// taken   [value].......[value]
    /// ```
    ///
    /// A single value may begin in one piece and end in a later one: its first bytes are taken. One of
    /// several values must not, and is `None` where it is the first.
    fn take_within(&mut self, content: Span) -> Option<Self> {
        let room = content.end().checked_sub(self.at)?;
        let (at, value_len) = (self.at, self.value_len);
        let len = if self.out.len() <= value_len {
            let len = in_memory(room.min(self.out.len() as u64));
            self.at = at.strict_add(len as u64);
            len
        } else {
            let spare = match self.step {
                ..0 => at.checked_sub(content.offset()),
                _ => room.checked_sub(value_len as u64),
            };
            room.checked_sub(value_len as u64)?;
            let steps = spare?.checked_div(self.step.unsigned_abs())?;
            let count = steps.checked_add(1)?;
            let count = count.min(self.out.len().strict_div(value_len) as u64);
            let distance = i64::try_from(count).ok()?.checked_mul(self.step)?;
            self.at = at.saturating_add_signed(distance);
            in_memory(count.strict_mul(value_len as u64))
        };
        let (out, rest) = std::mem::take(&mut self.out).split_at_mut_checked(len)?;
        self.out = rest;
        self.value_len = value_len.min(self.out.len().max(1));
        Some(Strided { at, step: self.step, value_len: value_len.min(out.len()), out })
    }
}
