//! Scales and zeros, which alternate in the tables, as columns of their own.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "runs and pieces are ranges of tables, which are ranges of the file"
)]

use std::io;
use std::sync::Arc;

use zt::{Source, Span};

use crate::scales::ENTRY_LEN;

/// Consecutive entries of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryRun {
    /// The offset of the first entry.
    pub(super) entry: u64,
    pub(super) count: u64,
}

impl EntryRun {
    pub(super) fn end(self) -> u64 {
        self.entry + self.count * ENTRY_LEN as u64
    }
}

/// Bytes of a number.
const VALUE_LEN: usize = 4;

/// A number of an entry, by its offset in the entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Scale = 8,
    Zero = 12,
}

/// A source of all columns of a file, gathered from the tables as they are read. Memory does not grow
/// with the length of the tables.
pub(super) struct Columns {
    source: Arc<dyn Source>,
    /// By offset in this source.
    pieces: Vec<Piece>,
    byte_len: u64,
}

/// Numbers of consecutive entries.
struct Piece {
    /// The offset in this source.
    offset: u64,
    /// The offset of the first number in the file.
    first: u64,
    count: u64,
}

impl Columns {
    /// No columns yet, for tables in `source`.
    pub(super) fn new(source: Arc<dyn Source>) -> Self {
        Columns { source, pieces: Vec::new(), byte_len: 0 }
    }

    /// Adds a column with this field of all entries. Returns its span in this source.
    #[expect(clippy::expect_used, reason = "the source only grows")]
    pub(super) fn add(&mut self, runs: &[EntryRun], field: Field) -> Span {
        let start = self.byte_len;
        for run in runs {
            self.pieces.push(Piece {
                offset: self.byte_len,
                first: run.entry + field as u64,
                count: run.count,
            });
            self.byte_len += run.count * VALUE_LEN as u64;
        }
        Span::between(start, self.byte_len).expect("the end is not before the start")
    }

    /// Fills the start of `out` from the byte `within` of a piece on. Returns the number of bytes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most ENTRIES numbers, and a part of one"
    )]
    fn gather(
        &self,
        piece: &Piece,
        within: u64,
        out: &mut [u8],
        scratch: &mut Vec<u8>,
    ) -> io::Result<usize> {
        const ENTRIES: u64 = 4096;
        let value_len = VALUE_LEN as u64;
        let (number, skip) = (within / value_len, within % value_len);
        let wanted = (out.len() as u64 + skip).div_ceil(value_len);
        let count = wanted.min(piece.count - number).min(ENTRIES) as usize;
        scratch.resize((count - 1) * ENTRY_LEN + VALUE_LEN, 0);
        let start = piece.first + number * ENTRY_LEN as u64;
        self.source.read_at(start, scratch)?;
        let numbers = scratch.chunks(ENTRY_LEN);
        let bytes = numbers.flat_map(|entry| entry.iter().take(VALUE_LEN));
        let bytes = bytes.skip(skip as usize);
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
            let within = offset - piece.offset;
            if within >= piece.count * VALUE_LEN as u64 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let filled = self.gather(piece, within, buf, &mut scratch)?;
            offset += filled as u64;
            buf = buf.split_at_mut(filled).1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::*;

    #[test]
    fn columns_are_gathered_from_any_byte_on() {
        // Entry n: an id, n as the scale's four bytes, and their complement as the zero's.
        let entry = |n: u8| [[9; 8].as_slice(), &[n; 4], &[!n; 4]].concat();
        let table: Vec<u8> = (0..20).flat_map(entry).collect();
        let mut columns = Columns::new(Arc::new(zt::Memory::new(table)));
        let run = |entry: u64, count| EntryRun { entry: entry * 16, count };
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
