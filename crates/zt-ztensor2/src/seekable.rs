//! `zt.zstd-seekable/1`: the decoded bytes of a part, as a source that decodes on reading.
//!
//! This is a source and no blob of our encoding `zstd`, because the digests of zTensor 2 cover decoded
//! bytes. They cover all bytes of this source, so reading, streaming and verification compare them.
//!
//! Frames are independent and have equal lengths. A place is found by division, cores decode different
//! frames, and a slice decodes only its frames.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use zt::container::check_declared;
use zt::container::codec::{Frame, decode_into, frames};
use zt::container::memory::{bytes_of, end_of_read, zeroed};
use zt::{Blob, Encoding, Error, Limits, Result, Source, Span};

use crate::violation::Violation;

/// The longest content of a frame. `zt.zstd-seekable-1.md`, "Rules".
const FRAME_MAX: u64 = 16 << 20;

/// The number of decoded frames that are kept for a file, while they are read in part.
const KEPT: usize = 8;

/// The decoded bytes of one part.
pub(super) struct Seekable {
    stored: Arc<dyn Source>,
    blob: Blob,
    decoded_len: u64,
    limits: Limits,
    frames: OnceLock<Vec<Frame>>,
    kept: Kept,
}

impl Seekable {
    /// The part with the stored bytes `span` of `stored`. Reads nothing yet. A declared length
    /// above the limit is refused, and so is one that the stored bytes cannot have.
    pub(super) fn new(
        stored: Arc<dyn Source>,
        span: Span,
        decoded_len: u64,
        limits: &Limits,
        kept: &Kept,
    ) -> Result<Self> {
        let blob =
            Blob { encoding: Encoding::Zstd, decoded_len: Some(decoded_len), ..Blob::raw(span) };
        check_declared(&blob, limits)?;
        Ok(Seekable {
            stored,
            blob,
            decoded_len,
            limits: *limits,
            frames: OnceLock::new(),
            kept: kept.clone(),
        })
    }

    /// The table, read once. Decoding a frame checks its entry.
    fn frames(&self) -> Result<&[Frame]> {
        if let Some(known) = self.frames.get() {
            return Ok(known);
        }
        let refused = |rule| Error::from(Violation::SeekTable(rule)).with_span(self.blob.span);
        let found = frames(&self.stored, &self.blob)?.unwrap_or_default();
        // Without a table, the frames would reach to the end.
        let end = found.last().map_or(self.blob.span.offset(), |last| last.stored.end());
        let content_end = found.last().map_or(0, |last| last.content.end());
        if end == self.blob.span.end() || content_end != self.decoded_len {
            return Err(refused("has no table of its frames at the end"));
        }
        let content_len = frame_len(&found);
        let full = found.split_last().map_or(&[][..], |(_, full)| full);
        if full.iter().any(|frame| frame.content.byte_len() != content_len) {
            return Err(refused("has frames of different length before the last"));
        }
        for frame in &found {
            if frame.content.byte_len() > FRAME_MAX.min(content_len) {
                return Err(refused("has a frame longer than 16 MiB or than the first frame"));
            }
            // Before memory is allocated for it.
            let blob = Blob {
                span: frame.stored,
                decoded_len: Some(frame.content.byte_len()),
                ..self.blob.clone()
            };
            check_declared(&blob, &self.limits)?;
        }
        Ok(self.frames.get_or_init(|| found))
    }

    /// Fills the start of `out` from `offset` of the content on, within one frame. Returns the number
    /// of bytes.
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "the offset is within the frame, which has at most FRAME_MAX bytes"
    )]
    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let frames = self.frames()?;
        let at = offset.checked_div(frame_len(frames));
        let at = at.and_then(|at| usize::try_from(at).ok());
        let frame = at.and_then(|at| frames.get(at));
        let ended = || Error::from(Violation::SeekTable("ends early")).with_span(self.blob.span);
        let frame = frame.filter(|frame| offset < frame.content.end());
        let frame = frame.ok_or_else(ended)?;
        let skip = (offset - frame.content.offset()) as usize;
        let len = out.len().min((frame.content.end() - offset) as usize);
        let (out, _) = out.split_at_mut(len);
        if skip == 0 && len as u64 == frame.content.byte_len() {
            self.decode(frame, out)?;
            return Ok(len);
        }
        let slot = self.kept.slot(self.key(frame));
        let mut held = lock(&slot);
        if held.bytes.is_empty() {
            let mut bytes = zeroed(frame.content.byte_len())?;
            self.decode(frame, &mut bytes)?;
            *held = Held { left: bytes.len(), bytes };
        }
        let bytes = held.bytes.get(skip..).and_then(|bytes| bytes.get(..len));
        out.copy_from_slice(bytes.ok_or_else(ended)?);
        held.left = held.left.saturating_sub(len); // Some bytes are read twice.
        if held.left == 0 {
            self.kept.release(self.key(frame));
        }
        Ok(len)
    }

    fn decode(&self, frame: &Frame, out: &mut [u8]) -> Result<()> {
        let stored = bytes_of(&self.stored, frame.stored)?;
        let decoded = decode_into(&stored, out);
        decoded.map_err(|error| Error::from(error).with_span(frame.stored))
    }

    /// The key of a frame, which parts of one blob share.
    fn key(&self, frame: &Frame) -> Key {
        let place: *const dyn Source = Arc::as_ptr(&self.stored);
        (place.addr(), frame.stored.offset())
    }
}

impl Source for Seekable {
    fn byte_len(&self) -> u64 {
        self.decoded_len
    }

    #[expect(clippy::arithmetic_side_effects, reason = "the end was checked")]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len(), offset, buf)?;
        let (mut offset, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let len = self.fill(offset, rest)?;
            offset += len as u64;
            rest = rest.split_at_mut(len).1;
        }
        Ok(())
    }
}

/// The content length of all frames except the last.
fn frame_len(frames: &[Frame]) -> u64 {
    frames.first().map_or(0, |first| first.content.byte_len())
}

/// A source, and the offset of a frame in it.
type Key = (usize, u64);

/// Decoded frames that are read in part. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Vec<(Key, Slot)>>>);

type Slot = Arc<Mutex<Held>>;

#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// The bytes that are still unread, if each is read once.
    left: usize,
}

impl Kept {
    /// The slot of a frame. The first thread that locks it fills it.
    fn slot(&self, key: Key) -> Slot {
        let mut slots = lock(&self.0);
        let slot = match slots.iter().position(|(known, _)| *known == key) {
            Some(at) => slots.remove(at).1,
            None => Slot::default(),
        };
        if slots.len() >= KEPT {
            slots.remove(0);
        }
        slots.push((key, Arc::clone(&slot)));
        slot
    }

    fn release(&self, key: Key) {
        lock(&self.0).retain(|(known, _)| *known != key);
    }
}

/// Locks a mutex. A panic leaves its value empty or complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
