//! Streams of frames, and the tables that find them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zt::Slice;
use zt::container::codec::FrameCompressor;
use zt_conformance::position::Counted;
use zt_conformance::zt2::{dense, part, seek_table, seekable};

use super::{code, one, open, path};

/// A stream of frames of this content, and its table.
fn stream(contents: &[&[u8]]) -> Vec<u8> {
    let (mut stored, mut table) = (Vec::new(), Vec::new());
    for content in contents {
        let mut frame = Vec::new();
        let mut compressor = FrameCompressor::new(3).unwrap();
        compressor.compress(content, &mut frame).unwrap();
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        table.push((len(&frame), len(content)));
        stored.extend(frame);
    }
    stored.extend(seek_table(&table));
    stored
}

fn encoded(stored: &[u8], decoded_len: u64) -> Vec<u8> {
    let data = part("u8", 4096, stored.len() as u64, &seekable(decoded_len));
    one(stored, dense(&[decoded_len], data))
}

#[test]
fn a_seekable_stream_is_what_its_table_says() {
    let sound = stream(&[&[1; 500], &[2; 500], &[3; 100]]);
    assert_eq!(code(encoded(&sound, 1100)), "sound");
    assert_eq!(code(encoded(&stream(&[]), 0)), "sound");
    let frames = sound.len() - seek_table(&[(0, 0); 3]).len();
    let with_table = |table: &[(u32, u32)]| [&sound[..frames], &seek_table(table)].concat();
    let len = u32::try_from(frames).unwrap();
    let cases: [(&str, Vec<u8>, u64); 8] = [
        ("another length", sound.clone(), 1000),
        ("no table", sound[..frames].to_vec(), 1100),
        ("a table of one frame", with_table(&[(len, 1100)]), 1101),
        ("frames of different content", stream(&[&[1; 500], &[2; 400], &[3; 100]]), 1000),
        ("a last frame of more", stream(&[&[1; 100], &[2; 500]]), 600),
        ("a table that ends early", with_table(&[(len - 1, 1100)]), 1100),
        ("a frame of more than 16 MiB", stream(&[&vec![0; (16 << 20) + 1]]), (16 << 20) + 1),
        ("another content than declared", with_table(&[(len, 1099)]), 1099),
    ];
    for (what, stored, decoded_len) in cases {
        assert_eq!(code(encoded(&stored, decoded_len)), "verify zstd", "{what}");
    }
    let mut damaged = sound;
    damaged[frames / 2] ^= 0xFF;
    assert_eq!(code(encoded(&damaged, 1100)), "verify zstd");
}

/// zTensor 2.1 reserves what the table adds up to: 2 TiB for a file of 1 MB, and aborts.
#[test]
fn a_seek_table_reserves_nothing_that_its_frames_cannot_hold() {
    let frames = vec![(0, 16 << 20); 100_000];
    let table = seek_table(&frames);
    let total = frames.len() as u64 * (16 << 20);
    assert_eq!(code(encoded(&table, total)), "object decompression-limit");
    // Below the limits of the whole, and a frame of nothing is still no 16 MiB.
    let mut frames = vec![(0, 16 << 20); 100];
    frames.push((1 << 20, 16 << 20));
    let stored = [vec![0; 1 << 20], seek_table(&frames)].concat();
    let total = frames.len() as u64 * (16 << 20);
    assert_eq!(code(encoded(&stored, total)), "verify decompression-limit");
}

#[test]
fn a_slice_decodes_its_frames_alone() {
    let mut bytes = fs::read(path("encoded.zt2")).unwrap();
    let place = {
        // The longest blob but those in the grid's first places: found by its frames' magic.
        let magic = [0x28, 0xB5, 0x2F, 0xFD];
        let starts = (4096..bytes.len()).step_by(4096);
        let mut blobs = starts.filter(|at| bytes[*at..].starts_with(&magic));
        blobs.next_back().unwrap()
    };
    let file = open(bytes.clone()).unwrap();
    let whole = file.tensor("four").unwrap().to_vec::<u32>().unwrap();
    assert_eq!(whole.len(), 800_000);
    bytes[place + 20] ^= 0xFF;
    let file = open(bytes).unwrap();
    let tensor = file.tensor("four").unwrap();
    assert_eq!(tensor.to_vec::<u32>().unwrap_err().code(), "zstd");
    // The first frame has the first 2^18 elements.
    for range in [262_144..262_150, 500_000..530_000, 799_990..800_000] {
        let slice = Slice::Range {
            start: i64::try_from(range.start).ok(),
            stop: i64::try_from(range.end).ok(),
            step: 1,
        };
        let slice = tensor.slice(&[slice]).unwrap();
        assert_eq!(*slice.as_slice::<u32>().unwrap(), whole[range]);
    }
}

/// A frame that is read in parts is decoded once, as long as few others are read in between.
#[test]
fn parts_of_a_frame_decode_it_once() {
    const LEN: usize = 4 << 20;
    let stored = stream(&[&vec![1; LEN], &vec![2; LEN]]);
    let count = Arc::new(AtomicU64::new(0));
    let source = Counted(encoded(&stored, 2 * LEN as u64), Arc::clone(&count));
    let file = zt_convert::open_source(source).unwrap();
    let tensor = file.tensor("t").unwrap();
    let is_read = |start: usize| {
        let slice = Slice::Range {
            start: i64::try_from(start).ok(),
            stop: i64::try_from(start + 500).ok(),
            step: 1,
        };
        let slice = tensor.slice(&[slice]).unwrap();
        let value = if start < LEN { 1 } else { 2 };
        *slice.as_slice::<u8>().unwrap() == [value; 500]
    };
    assert!(is_read(500) && is_read(LEN + 500));
    let once = count.load(Ordering::Relaxed);
    for start in [1 << 20, LEN + (1 << 20), 2 << 20, LEN + (2 << 20)] {
        assert!(is_read(start));
    }
    assert_eq!(count.load(Ordering::Relaxed), once);
}
