//! Locating frames by the headers of their blocks, without decoding: RFC 8878 §3.1.

use std::io;

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
    let mut walker = Walker { source, rest: span, window: [0; WINDOW], held: Span::default() };
    match walker.frames(most_frames(span)) {
        Ok(frames) => Ok(Some(frames)),
        Err(Stop::NoFrames) => Ok(None),
        Err(Stop::Io(error)) => Err(error.into()),
    }
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

/// Why a walk ends early.
enum Stop {
    NoFrames,
    Io(io::Error),
}

impl<S: Source + ?Sized> Walker<'_, S> {
    fn frames(&mut self, most: usize) -> Result<Vec<(u64, u64)>, Stop> {
        let mut frames = Vec::new();
        while !self.rest.is_empty() {
            let start = self.rest.offset();
            let content = self.frame()?;
            if frames.len() >= most {
                return Err(Stop::NoFrames);
            }
            frames.push((self.rest.offset().strict_sub(start), content));
        }
        Ok(frames)
    }

    /// Passes one frame and returns the length of its content.
    fn frame(&mut self) -> Result<u64, Stop> {
        let magic = self.take(4)?;
        if magic & 0xFFFF_FFF0 == SKIPPABLE_MAGIC.into() {
            let len = self.take(4)?;
            self.pass(len)?;
            return Ok(0);
        }
        let descriptor = u8::try_from(self.take(1)?).map_err(|_| Stop::NoFrames)?;
        if magic != FRAME_MAGIC.into() {
            return Err(Stop::NoFrames);
        }
        let descriptor = Descriptor::of(descriptor);
        self.pass(u64::from(descriptor.window_len).strict_add(descriptor.dictionary_len.into()))?;
        let field = self.take(descriptor.content_size_len.into())?;
        let content = descriptor.content_size(field).ok_or(Stop::NoFrames)?;
        loop {
            let block = self.take(3)?;
            self.pass(match block >> 1 & 3 {
                0 | 2 => block >> 3,
                1 => 1, // One byte, repeated.
                _ => return Err(Stop::NoFrames),
            })?;
            if block & 1 != 0 {
                self.pass(if descriptor.has_checksum { 4 } else { 0 })?;
                return Ok(content);
            }
        }
    }

    /// Passes over `len` bytes, if there are so many.
    fn pass(&mut self, len: u64) -> Result<(), Stop> {
        let start = self.rest.offset().checked_add(len);
        let rest = start.and_then(|start| Span::between(start, self.rest.end()));
        self.rest = rest.ok_or(Stop::NoFrames)?;
        Ok(())
    }

    /// The next `len` bytes, of up to 8, as a little-endian number.
    fn take(&mut self, len: u64) -> Result<u64, Stop> {
        let wanted = Span::new(self.rest.offset(), len);
        let wanted = wanted.filter(|wanted| self.rest.contains(*wanted));
        let wanted = wanted.ok_or(Stop::NoFrames)?;
        if !self.held.contains(wanted) {
            let byte_len = self.rest.byte_len().min(WINDOW as u64);
            let held = Span::exact(self.rest.offset(), byte_len);
            let window = self.window.get_mut(..in_memory(byte_len));
            let read = self.source.read_at(held.offset(), window.unwrap_or_default());
            read.map_err(Stop::Io)?;
            self.held = held;
        }
        let at = in_memory(wanted.offset().strict_sub(self.held.offset()));
        let bytes = self.window.get(at..at.strict_add(in_memory(len)));
        let number = bytes.map(number).ok_or(Stop::NoFrames)?;
        self.pass(len)?;
        Ok(number)
    }
}
