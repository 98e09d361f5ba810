//! A component in pieces: one thread reads the next ones while the caller takes the last one.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::foreign::{FileBuilder, Kind};
use zt::{Blob, Component, DType, File, Memory, Object, OpenOptions, Source, Span};

/// Longer pieces are read ahead.
const WORTH_A_THREAD: usize = 256 << 10;

/// Bytes of which those from `end` on cannot be read, and how often someone tried.
struct Failing {
    bytes: Vec<u8>,
    end: u64,
    failures: Arc<AtomicU64>,
}

impl Source for Failing {
    fn byte_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset + buf.len() as u64 > self.end {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::other("no more"));
        }
        Memory::new(&self.bytes[..]).read_at(offset, buf)
    }
}

/// A file with an object `x` of these bytes.
fn file(source: impl Source + 'static) -> File {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let len = source.byte_len();
    let component = Component::new(DType::U8, Blob::raw(Span::new(0, len).unwrap()));
    let source = builder.source(source);
    builder.object("x", Object::new([len], "dense").with_component("data", component), source);
    builder.build().unwrap()
}

fn for_each_piece(
    file: &File,
    piece_len: usize,
    take: impl FnMut(&[u8]) -> zt::Result<()>,
) -> zt::Result<()> {
    file.tensor("x").unwrap().reader("data").unwrap().for_each_piece(piece_len, take)
}

#[test]
fn pieces_come_whole_and_in_order() {
    let content: Vec<u8> = (0..5_000_003u32).map(|at| at.to_le_bytes()[1]).collect();
    for len in [0, 1, 1000, WORTH_A_THREAD, 1 << 20, (1 << 20) + 1, content.len()] {
        for piece_len in [1000, 1 << 20] {
            let mut found = Vec::new();
            let take = |bytes: &[u8]| {
                assert_eq!(found.len() % piece_len, 0, "only the last one is shorter");
                found.extend_from_slice(bytes);
                Ok(())
            };
            let source = Memory::new(Vec::from(&content[..len]));
            for_each_piece(&file(source), piece_len, take).unwrap();
            assert!(found == content[..len], "{len} by {piece_len}");
        }
    }
}

#[test]
fn errors_come_in_their_place_and_nothing_is_read_behind_them() {
    for piece_len in [64 << 10, 1 << 20] {
        let failures = Arc::new(AtomicU64::new(0));
        let source =
            Failing { bytes: vec![7; 5 << 20], end: 2 << 20, failures: Arc::clone(&failures) };
        let mut count = 0;
        let take = |_: &[u8]| {
            count += 1;
            Ok(())
        };
        for_each_piece(&file(source), piece_len, take).unwrap_err();
        assert_eq!(count, (2 << 20) / piece_len, "what was read before the error is handed on");
        assert_eq!(failures.load(Ordering::Relaxed), 1);
    }
}

/// The error may come before or after the next pieces are read.
#[test]
fn an_error_behind_any_piece_ends_the_reader() {
    let file = file(Memory::new(vec![7; 12 << 20]));
    for piece_len in [1000, 1 << 20] {
        for last in 1..6 {
            let mut taken = 0;
            let take = |_: &[u8]| {
                taken += 1;
                if taken == last { Err(io::Error::other("enough").into()) } else { Ok(()) }
            };
            for_each_piece(&file, piece_len, take).unwrap_err();
            assert_eq!(taken, last);
        }
    }
}
