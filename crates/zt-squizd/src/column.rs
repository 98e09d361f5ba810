//! Scales and zeros, which lie in turns in the tables, as columns of their own.

use std::io;
use std::sync::Arc;

use zt::{Source, Span};

use crate::scales::ENTRY_LEN;

/// Entries that follow each other in a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// Where the first one is.
    pub(super) entry: u64,
    pub(super) count: u64,
}

impl Run {
    /// Where the last one ends.
    pub(super) fn end(self) -> u64 {
        self.entry
            .saturating_add(self.count.saturating_mul(ENTRY_LEN as u64))
    }
}

/// Bytes of a number.
const VALUE_LEN: usize = 4;

/// Which of an entry's numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Scale = 8,
    Zero = 12,
}

/// A source of the columns of a file, one after the other, gathered from the tables when they are
/// read. What a table costs in memory does not depend on its length.
pub(super) struct Columns {
    source: Arc<dyn Source>,
    /// By offset in this source.
    pieces: Vec<Piece>,
    byte_len: u64,
}

/// Numbers from entries that follow each other.
struct Piece {
    /// Where they are in this source.
    offset: u64,
    /// Where the first one is in the file.
    first: u64,
    count: u64,
}

impl Columns {
    /// No columns yet of the tables in `source`.
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Columns {
            source,
            pieces: Vec::new(),
            byte_len: 0,
        }
    }

    /// Adds a column, the field of all these entries; where in this source it is.
    pub(super) fn add(&mut self, runs: &[Run], field: Field) -> Span {
        let start = self.byte_len;
        for run in runs {
            self.pieces.push(Piece {
                offset: self.byte_len,
                first: run.entry.saturating_add(field as u64),
                count: run.count,
            });
            let byte_len = run.count.saturating_mul(VALUE_LEN as u64);
            self.byte_len = self.byte_len.saturating_add(byte_len);
        }
        Span::between(start, self.byte_len).unwrap_or_default()
    }

    /// Fills `out` from the byte `skip` of the number at `place` on, as far as `scratch` goes; how
    /// many bytes that is.
    fn gather(
        &self,
        piece: &Piece,
        within: u64,
        out: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        const ENTRIES: u64 = 4096;
        // Numbers have four bytes.
        let (number, skip) = (within >> 2, within & 3);
        let wanted = (out.len() as u64)
            .saturating_add(skip)
            .div_ceil(VALUE_LEN as u64);
        let left = piece.count.saturating_sub(number);
        let count = wanted.min(left).min(ENTRIES);
        let stored = count.saturating_sub(1).saturating_mul(ENTRY_LEN as u64);
        let stored = usize::try_from(stored.saturating_add(VALUE_LEN as u64)).unwrap_or(0);
        scratch.resize(stored, 0);
        let start = piece
            .first
            .saturating_add(number.saturating_mul(ENTRY_LEN as u64));
        self.source.read_at(start, scratch)?;
        let numbers = scratch.chunks(ENTRY_LEN);
        let bytes = numbers.flat_map(|entry| entry.iter().take(VALUE_LEN));
        let bytes = bytes.skip(usize::try_from(skip).unwrap_or(0));
        let filled = out.iter_mut().zip(bytes).map(|(out, byte)| *out = *byte);
        Ok(filled.count())
    }
}

impl Source for Columns {
    fn byte_len(&self) -> u64 {
        self.byte_len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let (mut offset, mut buf) = (offset, buf);
        let mut scratch = Vec::new();
        while !buf.is_empty() {
            let after = self.pieces.partition_point(|piece| piece.offset <= offset);
            let piece = after.checked_sub(1).and_then(|at| self.pieces.get(at));
            let piece = piece.ok_or(io::ErrorKind::UnexpectedEof)?;
            let within = offset.saturating_sub(piece.offset);
            let byte_len = piece.count.saturating_mul(VALUE_LEN as u64);
            if within >= byte_len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let filled = self.gather(piece, within, buf, &mut scratch)?;
            offset = offset.saturating_add(filled as u64);
            buf = buf.get_mut(filled..).unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn columns_are_gathered_from_any_byte_on() {
        // Entry n: an id, n as the scale's four bytes, and their complement as the zero's.
        let entry = |n: u8| [[9; 8].as_slice(), &[n; 4], &[!n; 4]].concat();
        let table: Vec<u8> = (0..20).flat_map(entry).collect();
        let mut columns = Columns::new(Arc::new(zt::Memory::new(table)));
        let run = |entry: u64, count| Run {
            entry: entry * 16,
            count,
        };
        let scales = columns.add(&[run(3, 2), run(10, 5)], Field::Scale);
        let zeros = columns.add(&[run(0, 1)], Field::Zero);
        let numbers = [3u8, 4, 10, 11, 12, 13, 14, !0];
        let expected: Vec<u8> = numbers.iter().flat_map(|n| [*n; 4]).collect();
        assert_eq!((scales.byte_len(), zeros.offset()), (28, 28));
        for start in 0..expected.len() {
            for end in start..=expected.len() {
                let mut out = vec![0; end - start];
                columns.read_at(start as u64, &mut out).unwrap();
                assert_eq!(out, expected[start..end], "{start}..{end}");
            }
        }
        assert!(columns.read_at(30, &mut [0; 3]).is_err());
    }
}
