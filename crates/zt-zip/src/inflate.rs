//! A deflated member as a source, which inflates the bytes that are read and keeps none.
//!
//! Deflate has no index: every byte depends on the bytes before it. A read that continues the last
//! one goes on from there. For other reads, such as of a view in another order, copies of the
//! decoder's state are kept at intervals. Then a jump back inflates only part of the member again.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use zt_container::memory::{end_of_read, in_memory};
use zt_container::{Source, Span};

use crate::crc;
use crate::error::{Deflate, Error, ZipViolation};

/// Bytes that are read, or inflated only to be skipped, at a time.
const PIECE: usize = 64 << 10;

/// The least distance of two kept states in the content. A state takes 43 KiB.
const DISTANCE: u64 = 4 << 20;

/// The most kept states.
const STATES: u64 = 64;

/// No state is kept up to this offset: many members are only opened for their header, and to
/// inflate so few bytes again is cheaper than a state.
const NEAR: u64 = 64 << 10;

/// A deflated member. A read that reaches its end compares its length and its CRC-32.
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
    /// Stored bytes from `piece_at` on.
    piece: Vec<u8>,
    piece_at: u64,
}

/// The decoder at one offset of the content.
#[derive(Clone)]
struct Cursor {
    state: Box<InflateState>,
    /// Stored bytes read so far.
    input: u64,
    /// Bytes of content inflated so far.
    output: u64,
    /// The CRC-32 of these bytes.
    crc: crc32fast::Hasher,
}

impl Inflated {
    pub(super) fn new(archive: Arc<dyn Source>, stored: Span, byte_len: u64, crc: u32) -> Self {
        Inflated { archive, stored, byte_len, crc, decoder: Mutex::default() }
    }

    fn fill(&self, decoder: &mut Decoder, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut cursor = decoder.nearest(offset);
        let mut scratch = Vec::new();
        while cursor.output < offset {
            let skipped = offset.strict_sub(cursor.output);
            scratch.resize(in_memory(skipped.min(PIECE as u64)), 0);
            self.advance(decoder, &mut cursor, &mut scratch)?;
        }
        for part in out.chunks_mut(PIECE) {
            self.advance(decoder, &mut cursor, part)?;
        }
        if cursor.output == self.byte_len {
            self.finish(decoder, cursor)?;
            // The whole member has been read: the next read is more likely at its beginning.
            *decoder = Decoder::default();
        } else if cursor.output > NEAR {
            decoder.cursor = Some(cursor);
        }
        Ok(())
    }

    /// Fills `out` with the next bytes, and keeps a state if the last one is far enough.
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
        let ahead = cursor.output.checked_sub(kept);
        if ahead.is_some_and(|ahead| ahead >= distance) {
            decoder.kept.push(cursor.clone());
        }
        Ok(())
    }

    /// Inflates up to all of `out`: the number of bytes, and whether the deflated data has ended.
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
            cursor.input = cursor.input.strict_add(result.bytes_consumed as u64);
            cursor.output = cursor.output.strict_add(result.bytes_written as u64);
            filled = filled.strict_add(result.bytes_written);
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

    /// Checks that content and data end here, and that the CRC-32 is correct.
    fn finish(&self, decoder: &mut Decoder, mut cursor: Cursor) -> io::Result<()> {
        let found = cursor.crc.clone().finalize();
        let declared = self.byte_len;
        match self.inflate(decoder, &mut cursor, &mut [0])? {
            (0, true) => {}
            (0, false) => return Err(self.fault(Deflate::Unended { declared })),
            _ => return Err(self.fault(Deflate::Long { declared })),
        }
        let bytes = self.stored.byte_len().strict_sub(cursor.input);
        if bytes > 0 {
            return Err(self.fault(Deflate::After { bytes }));
        }
        crc::expect(self.crc, found)
    }

    fn fault(&self, fault: Deflate) -> io::Error {
        let stored = self.stored;
        Error::from(ZipViolation::Deflate { fault, stored }).into()
    }
}

impl Decoder {
    /// The nearest state at or before `offset`. The cursor is taken, so that a read that fails
    /// leaves none.
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

    /// Stored bytes before the nearest state at or before `offset`.
    fn input_before(&self, offset: u64) -> u64 {
        let states = self.cursor.iter().chain(&self.kept);
        let usable = states.filter(|state| state.output <= offset);
        usable.map(|state| state.input).max().unwrap_or(0)
    }

    /// Stored bytes from `at` on; none at the end.
    fn input(&mut self, archive: &dyn Source, stored: Span, at: u64) -> io::Result<&[u8]> {
        let skip = at.checked_sub(self.piece_at).and_then(|skip| usize::try_from(skip).ok());
        let skip = match skip.filter(|skip| *skip < self.piece.len()) {
            Some(skip) => skip,
            None => {
                let left = stored.byte_len().strict_sub(at);
                self.piece.resize(in_memory(left.min(PIECE as u64)), 0);
                archive.read_at(stored.offset().strict_add(at), &mut self.piece)?;
                self.piece_at = at;
                0
            }
        };
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

    fn is_remote(&self) -> bool {
        self.archive.is_remote()
    }

    fn will_read_all(&self, spans: &[Span]) {
        let first = spans.iter().map(|span| span.offset()).min().unwrap_or(0);
        let decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let start = decoder.input_before(first);
        drop(decoder);
        if let Some(span) = announced(self.stored, self.byte_len, start, spans) {
            self.archive.will_read_all(&[span]);
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        end_of_read(self.byte_len, offset, buf)?;
        // A panic cannot make the state wrong: the CRC-32 is checked at the end of the content.
        let mut decoder = self.decoder.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = self.fill(&mut decoder, offset, buf);
        if filled.is_err() {
            *decoder = Decoder::default();
        }
        filled
    }
}

/// The stored bytes from `start` up to the end of `spans` of the content, which lies where it would if all
/// of the content were compressed alike. `start` counts from the first stored byte.
pub(super) fn announced(stored: Span, byte_len: u64, start: u64, spans: &[Span]) -> Option<Span> {
    let last = spans.iter().map(|span| span.end()).max().unwrap_or(0);
    let stored_len = stored.byte_len();
    let end = u128::from(stored_len).strict_mul(last.into());
    let end = u64::try_from(end.div_ceil(byte_len.max(1).into()));
    let end = end.map_or(stored_len, |end| end.min(stored_len));
    let len = end.checked_sub(start).filter(|len| *len > 0)?;
    Some(Span::exact(stored.offset().strict_add(start), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_read_only_at_its_beginning_keeps_no_state() {
        let content: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
        let stored = miniz_oxide::deflate::compress_to_vec(&content, 1);
        let span = Span::new(0, stored.len() as u64).unwrap();
        let archive = Arc::new(zt_container::Memory::new(stored));
        let source = Inflated::new(archive, span, 1 << 20, crc32fast::hash(&content));
        source.read_at(0, &mut [0; 128]).unwrap();
        assert!(source.decoder.lock().unwrap().cursor.is_none());
    }
}
