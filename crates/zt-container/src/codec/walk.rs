//! Locating frames by the headers of their blocks, without decoding: RFC 8878 §3.1.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use super::header::{Descriptor, FRAME_MAGIC, SKIPPABLE_MAGIC, number};
use super::seek::most_frames;
use crate::error::Result;
use crate::memory::in_memory;
use crate::source::Source;
use crate::span::Span;

/// The stored and the content length of each frame within `span`. A skippable frame has no content. `None`
/// if a frame does not record its content size, if the bytes are not a sequence of frames, or if there are
/// more than [`most_frames`].
///
/// Cost: one read of 4 KiB for each block, which has up to 128 KiB of content. Short blocks share a read.
pub(super) fn walk(source: &(impl Source + ?Sized), span: Span) -> Result<Option<Vec<(u64, u64)>>> {
    let mut walker = Walker {
        source,
        rest: span,
        window: [0; WINDOW],
        held: Span::default(),
    };
    let mut frames = Vec::new();
    while !walker.rest.is_empty() {
        let start = walker.rest.offset();
        let Some(content) = walker.frame()? else {
            return Ok(None);
        };
        if frames.len() >= most_frames(span) {
            return Ok(None);
        }
        frames.push((walker.rest.offset().strict_sub(start), content));
    }
    Ok(Some(frames))
}

const WINDOW: usize = 4096;

struct Walker<'s, S: ?Sized> {
    source: &'s S,
    /// The bytes that were not passed yet.
    rest: Span,
    window: [u8; WINDOW],
    /// The range of the source that is in `window`.
    held: Span,
}

impl<S: Source + ?Sized> Walker<'_, S> {
    /// Passes one frame and returns the length of its content.
    fn frame(&mut self) -> Result<Option<u64>> {
        let Some(magic) = self.take(4)? else {
            return Ok(None);
        };
        if magic & 0xFFFF_FFF0 == SKIPPABLE_MAGIC.into() {
            let Some(len) = self.take(4)? else {
                return Ok(None);
            };
            return Ok(self.pass(len).map(|()| 0));
        }
        let descriptor = self.take(1)?.filter(|_| magic == FRAME_MAGIC.into());
        let Some(descriptor) = descriptor.and_then(|byte| u8::try_from(byte).ok()) else {
            return Ok(None);
        };
        let descriptor = Descriptor::of(descriptor);
        let skip = u64::from(descriptor.window_len).strict_add(descriptor.dictionary_len.into());
        if self.pass(skip).is_none() {
            return Ok(None);
        }
        let field = self.take(descriptor.content_size_len.into())?;
        let Some(content) = field.and_then(|field| descriptor.content_size(field)) else {
            return Ok(None);
        };
        loop {
            let Some(block) = self.take(3)? else {
                return Ok(None);
            };
            let len = match block >> 1 & 3 {
                0 | 2 => block >> 3,
                1 => 1, // One byte, repeated.
                _ => return Ok(None),
            };
            if self.pass(len).is_none() {
                return Ok(None);
            }
            if block & 1 != 0 {
                let checksum_len = if descriptor.has_checksum { 4 } else { 0 };
                return Ok(self.pass(checksum_len).map(|()| content));
            }
        }
    }

    /// Passes over `len` bytes; `None` if there are fewer.
    fn pass(&mut self, len: u64) -> Option<()> {
        let start = self.rest.offset().checked_add(len)?;
        self.rest = Span::between(start, self.rest.end())?;
        Some(())
    }

    /// The next `len` bytes, of up to 8, as a little-endian number.
    fn take(&mut self, len: u64) -> Result<Option<u64>> {
        let Some(wanted) = Span::new(self.rest.offset(), len) else {
            return Ok(None);
        };
        if !self.rest.contains(wanted) {
            return Ok(None);
        }
        if !self.held.contains(wanted) {
            let byte_len = self.rest.byte_len().min(WINDOW as u64);
            let held = Span::exact(self.rest.offset(), byte_len);
            let window = self.window.get_mut(..in_memory(byte_len));
            self.source
                .read_at(held.offset(), window.unwrap_or_default())?;
            self.held = held;
        }
        let at = in_memory(wanted.offset().strict_sub(self.held.offset()));
        let bytes = self.window.get(at..at.strict_add(in_memory(len)));
        let number = bytes.map(number);
        Ok(self.pass(len).and(number))
    }
}
