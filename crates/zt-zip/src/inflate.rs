//! The content of a deflated member, as a source: made when it is read, and not kept.
//!
//! Deflate has no index: what lies behind is made out of what lies before. Reading on from where
//! the last read ended costs nothing twice. For other places the state of the decoder is kept every
//! so often, so that jumping back costs a fraction of the member instead of its beginning anew:
//! slices read backwards, views in another order.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use zt::{Error, Source, Span};

use crate::Violation;
use crate::crc::crc32;
use crate::violation::Deflate;

/// Stored bytes that are fetched at a time.
const PIECE: usize = 64 << 10;

/// Content between two kept states, at least. A state takes 43 KiB.
const DISTANCE: u64 = 4 << 20;

/// Kept states, at most.
const STATES: u64 = 64;

/// Up to here beginning anew is cheaper than keeping a state: many members are only begun, because
/// they have a header to be looked at.
const NEAR: u64 = 64 << 10;

/// A deflated member. Whenever its end is reached, its length and its CRC-32 have been compared.
pub(super) struct Inflated {
    archive: Arc<dyn Source>,
    stored: Span,
    byte_len: u64,
    crc: u32,
    decoder: Mutex<Decoder>,
}

#[derive(Default)]
struct Decoder {
    cursor: Option<Cursor>,
    kept: Vec<Cursor>,
    /// The stored bytes that `piece` holds.
    window: Span,
    piece: Vec<u8>,
}

/// The decoder at one place of the content.
#[derive(Clone)]
struct Cursor {
    state: Box<InflateState>,
    /// Stored bytes taken in.
    input: u64,
    /// Bytes of content given out.
    output: u64,
    /// Of these.
    crc: crc32fast::Hasher,
}

impl Inflated {
    pub(super) fn new(archive: Arc<dyn Source>, stored: Span, byte_len: u64, crc: u32) -> Self {
        Inflated {
            archive,
            stored,
            byte_len,
            crc,
            decoder: Mutex::default(),
        }
    }

    fn fill(&self, decoder: &mut Decoder, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut cursor = decoder.nearest(offset);
        let mut scratch = Vec::new();
        while cursor.output < offset {
            let skipped = offset.saturating_sub(cursor.output).min(PIECE as u64);
            scratch.resize(usize::try_from(skipped).unwrap_or(0), 0);
            self.advance(decoder, &mut cursor, &mut scratch)?;
        }
        for part in out.chunks_mut(PIECE) {
            self.advance(decoder, &mut cursor, part)?;
        }
        if cursor.output == self.byte_len {
            self.finish(decoder, cursor)?;
            // All of it has been read: what is read next is more likely its beginning.
            *decoder = Decoder::default();
        } else if cursor.output > NEAR {
            decoder.cursor = Some(cursor);
        }
        Ok(())
    }

    /// Fills `out` with what comes next, and keeps a state where one is due.
    fn advance(
        &self,
        decoder: &mut Decoder,
        cursor: &mut Cursor,
        out: &mut [u8],
    ) -> io::Result<()> {
        let (found, _) = self.inflate(decoder, cursor, out)?;
        if found < out.len() {
            let (declared, found) = (self.byte_len, cursor.output);
            return Err(self.fault(Deflate::Short { declared, found }));
        }
        let distance = DISTANCE.max(self.byte_len / STATES);
        let kept = decoder.kept.last().map_or(0, |cursor| cursor.output);
        if cursor.output >= kept.saturating_add(distance) {
            decoder.kept.push(cursor.clone());
        }
        Ok(())
    }

    /// As many bytes as there are, up to all of `out`; and whether the deflated data has ended.
    fn inflate(
        &self,
        decoder: &mut Decoder,
        cursor: &mut Cursor,
        out: &mut [u8],
    ) -> io::Result<(usize, bool)> {
        let mut filled = 0usize;
        loop {
            let input = decoder.input(&*self.archive, self.stored, cursor.input)?;
            let is_last = input.is_empty();
            let rest = out.get_mut(filled..).unwrap_or_default();
            let result = inflate(&mut cursor.state, input, rest, MZFlush::None);
            let written = rest.get(..result.bytes_written).unwrap_or_default();
            cursor.crc.update(written);
            cursor.input = cursor.input.saturating_add(result.bytes_consumed as u64);
            cursor.output = cursor.output.saturating_add(result.bytes_written as u64);
            filled = filled.saturating_add(result.bytes_written);
            match result.status {
                Ok(MZStatus::StreamEnd) => return Ok((filled, true)),
                Ok(_) | Err(MZError::Buf) if filled == out.len() => return Ok((filled, false)),
                Ok(_) | Err(MZError::Buf) if is_last && result.bytes_written == 0 => {
                    return Ok((filled, false));
                }
                Ok(_) | Err(MZError::Buf) => {}
                Err(_) => return Err(self.fault(Deflate::Damaged { at: cursor.output })),
            }
        }
    }

    /// Nothing may come behind the declared length, neither content nor stored bytes, and all of it
    /// has to be what was put in.
    fn finish(&self, decoder: &mut Decoder, mut cursor: Cursor) -> io::Result<()> {
        let found = cursor.crc.clone().finalize();
        let declared = self.byte_len;
        match self.inflate(decoder, &mut cursor, &mut [0])? {
            (0, true) => {}
            (0, false) => return Err(self.fault(Deflate::Unended { declared })),
            _ => return Err(self.fault(Deflate::Long { declared })),
        }
        let behind = self.stored.byte_len().saturating_sub(cursor.input);
        if behind > 0 {
            return Err(self.fault(Deflate::After { bytes: behind }));
        }
        if found != self.crc {
            let mismatch = zt::container::Error::DigestMismatch {
                expected: crc32(self.crc),
                found: crc32(found),
            };
            return Err(Error::from(mismatch).into());
        }
        Ok(())
    }

    fn fault(&self, fault: Deflate) -> io::Error {
        Error::from(Violation::Deflate(fault))
            .with_span(self.stored)
            .into()
    }
}

impl Decoder {
    /// The nearest place before `offset` that a state is known of. The cursor is taken: after an
    /// error there is none, and the next read starts from a sound place.
    fn nearest(&mut self, offset: u64) -> Cursor {
        let usable = |cursor: &Cursor| cursor.output <= offset;
        let cursor = self.cursor.take().filter(usable);
        let kept = self.kept.iter().rev().find(|cursor| usable(cursor));
        match (cursor, kept) {
            (Some(cursor), Some(kept)) if cursor.output < kept.output => kept.clone(),
            (Some(cursor), _) => cursor,
            (None, Some(kept)) => kept.clone(),
            (None, None) => Cursor {
                state: InflateState::new_boxed(DataFormat::Raw),
                input: 0,
                output: 0,
                crc: crc32fast::Hasher::new(),
            },
        }
    }

    /// Stored bytes from `at` on; none at the end.
    fn input(&mut self, archive: &dyn Source, stored: Span, at: u64) -> io::Result<&[u8]> {
        let offset = stored.offset().saturating_add(at);
        if !(self.window.offset()..self.window.end()).contains(&offset) {
            let len = stored.end().saturating_sub(offset).min(PIECE as u64);
            self.window = Span::default();
            self.piece.resize(usize::try_from(len).unwrap_or(0), 0);
            archive.read_at(offset, &mut self.piece)?;
            self.window = Span::new(offset, len).unwrap_or_default();
        }
        let skip = offset.saturating_sub(self.window.offset());
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(self.piece.get(skip..).unwrap_or_default())
    }
}

impl Source for Inflated {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.byte_len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // What a panic left behind is a state that decodes on, or fails by itself.
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = self.fill(&mut decoder, offset, buf);
        if filled.is_err() {
            *decoder = Decoder::default();
        }
        filled
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "small numbers"
)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use zt::ErrorKind;

    use super::*;

    /// Content that does not repeat, and longer than what is kept apart.
    fn content(len: usize) -> Vec<u8> {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 27) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn inflated(content: &[u8], change: impl FnOnce(&mut Vec<u8>), byte_len: u64) -> Inflated {
        let mut stored = miniz_oxide::deflate::compress_to_vec(content, 1);
        change(&mut stored);
        let span = Span::new(0, stored.len() as u64).unwrap();
        let archive = Arc::new(zt::Memory::new(stored));
        Inflated::new(archive, span, byte_len, crc32fast::hash(content))
    }

    fn refusal(source: &Inflated) -> zt::Error {
        let mut all = vec![0; usize::try_from(source.byte_len).unwrap()];
        let error = zt::Error::from(source.read_at(0, &mut all).unwrap_err());
        assert_ne!(error.kind(), ErrorKind::Io);
        error
    }

    #[test]
    fn every_part_is_the_same_in_any_order() {
        let whole = content(10 << 20);
        let source = inflated(&whole, |_| {}, whole.len() as u64);
        let mut part = vec![0; 100_000];
        for offset in [
            9_000_000, 0, 100_000, 4_200_000, 8_388_608, 8_300_000, 10_385_760, 3,
        ] {
            source.read_at(offset, &mut part).unwrap();
            let at = usize::try_from(offset).unwrap();
            assert_eq!(part, whole[at..at + part.len()], "{offset}");
        }
        assert!(source.read_at(10 << 20, &mut [0]).is_err());
    }

    #[test]
    fn the_end_is_reached_only_by_what_was_put_in() {
        let whole = content(5000);
        let len = whole.len() as u64;
        let bytes = |change: fn(&mut Vec<u8>), len| inflated(&whole, change, len);
        for (source, expected) in [
            (bytes(|_| {}, len - 1), Deflate::Long { declared: len - 1 }),
            (
                bytes(|_| {}, len + 1),
                Deflate::Short {
                    declared: len + 1,
                    found: len,
                },
            ),
            (
                bytes(|stored| stored.push(0), len),
                Deflate::After { bytes: 1 },
            ),
            (
                bytes(|stored| stored.truncate(stored.len() - 1), len),
                Deflate::Unended { declared: len },
            ),
            (
                bytes(|stored| stored[0] = 7, len),
                Deflate::Damaged { at: 0 },
            ),
        ] {
            let error = refusal(&source);
            let fault = error.inner().and_then(|fault| fault.downcast_ref());
            assert_eq!(fault, Some(&Violation::Deflate(expected)));
            assert_eq!(error.code(), "deflate");
        }

        let mut other = inflated(&whole, |_| {}, len);
        other.crc ^= 1;
        assert_eq!(refusal(&other).code(), "digest-mismatch");
    }

    /// The bytes, and how many of them were read.
    struct Counted(Vec<u8>, AtomicU64);

    impl Source for Counted {
        fn byte_len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
            zt::Memory::new(&self.0[..]).read_at(offset, buf)
        }
    }

    /// The nearest that is known, whether that was kept or is where the last read ended.
    #[test]
    fn a_read_begins_at_the_nearest_state() {
        let whole = content(16 << 20);
        let stored = miniz_oxide::deflate::compress_to_vec(&whole, 1);
        let span = Span::new(0, stored.len() as u64).unwrap();
        let archive = Arc::new(Counted(stored, AtomicU64::new(0)));
        let base: Arc<dyn Source> = Arc::clone(&archive) as _;
        let (len, crc) = (whole.len() as u64, crc32fast::hash(&whole));
        let source = Inflated::new(base, span, len, crc);
        assert!(source.is_sequential());
        let read = |offset: u64| {
            let before = archive.1.load(Ordering::Relaxed);
            source.read_at(offset, &mut [0; 1000]).unwrap();
            archive.1.load(Ordering::Relaxed) - before
        };
        let last = len - (1 << 20);
        let all = read(last);
        // Forwards from where the last read ended, and back to a state that was kept.
        assert!(read(last + 1000) < all / 8);
        let half = read(len / 2);
        assert!(half < all * 3 / 8, "{half} of {all}");
        // What was kept is nearer than where that read ended.
        let forth = read(last);
        assert!(forth < all * 3 / 8, "{forth} of {all}");
    }

    #[test]
    fn members_that_are_only_begun_keep_nothing() {
        let whole = content(1 << 20);
        let source = inflated(&whole, |_| {}, whole.len() as u64);
        source.read_at(0, &mut [0; 128]).unwrap();
        assert!(source.decoder.lock().unwrap().cursor.is_none());
    }
}
