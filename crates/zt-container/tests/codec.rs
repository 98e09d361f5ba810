//! Frames of zstd: what is written, what is refused, and where frames are found.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_container::codec::{FRAME_CONTENT, Frame, FrameCompressor, SeekTable, decode_into, frames};
use zt_container::{Blob, Encoding, Memory, Span};

fn framed(content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut compressor = FrameCompressor::new(3).unwrap();
    compressor.compress(content, &mut frame).unwrap();
    frame
}

/// What `frames` finds.
fn found(stored: &[u8]) -> Option<Vec<Frame>> {
    frames(&Memory::new(stored), &blob(stored)).unwrap()
}

/// Three frames, with their table or without.
fn three(with_table: bool) -> Vec<u8> {
    let mut table = SeekTable::default();
    let mut stored = Vec::new();
    for part in [&b"first "[..], b"second ", b"third"] {
        let frame = framed(part);
        table.push(frame.len(), part.len()).unwrap();
        stored.extend(frame);
    }
    if with_table {
        stored.extend(table.to_frame());
    }
    stored
}

fn blob(stored: &[u8]) -> Blob {
    let span = Span::new(0, stored.len() as u64).unwrap();
    Blob { span, encoding: Encoding::Zstd, decoded_len: Some(18), digest: None, chunks: None }
}

#[test]
fn frames_and_their_seek_table_are_one_plain_stream() {
    let mut out = [0; 18];
    decode_into(&three(true), &mut out).unwrap();
    assert_eq!(&out, b"first second third");
}

#[test]
fn only_zstd_of_a_known_length_has_frames() {
    let stored = three(true);
    let (mut raw, mut unknown) = (blob(&stored), blob(&stored));
    (raw.encoding, unknown.decoded_len) = (Encoding::Raw, None);
    for blob in [raw, unknown] {
        let found = frames(&Memory::new(&stored), &blob).unwrap();
        assert_eq!(found, None, "{blob:?}");
    }
}

#[test]
fn frames_are_found_by_their_table_and_by_walking() {
    let by_table = found(&three(true)).unwrap();
    assert_eq!(found(&three(false)).unwrap(), by_table);
    let contents = by_table.iter().map(|frame| frame.content.offset());
    assert_eq!(contents.collect::<Vec<_>>(), [0, 6, 13]);
}

#[test]
fn refuses_another_length_than_asked_for() {
    let stored = framed(b"eight by");
    for (len, words) in [(7, "more than the expected 7"), (9, "hold 8 bytes, expected 9")] {
        let error = decode_into(&stored, &mut vec![0; len]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The upper bytes of bf16 values that are nearly normally distributed: sums of uniform values.
fn upper_bytes_of_weights(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut byte = || {
        let sum: f32 = (0..12).map(|_| uniform()).sum();
        ((sum - 6.0) * 0.02).to_bits().to_be_bytes()[0]
    };
    (0..len).map(|_| byte()).collect()
}

#[test]
fn entropy_coding_is_plain_zstd_and_as_small_as_frequencies_allow() {
    let content = upper_bytes_of_weights(1 << 20);
    let mut frame = Vec::new();
    let mut compressor = FrameCompressor::entropy_only().unwrap();
    compressor.compress(&content, &mut frame).unwrap();

    let mut counts = [0u32; 256];
    for byte in &content {
        counts[usize::from(*byte)] += 1;
    }
    let len = content.len() as f64;
    let bits_of = |count: &u32| f64::from(*count) * (len / f64::from(*count).max(1.0)).log2();
    let entropy = counts.iter().map(bits_of).sum::<f64>() / 8.0;
    let len = frame.len();
    assert!((len as f64) < entropy * 1.03, "{len} for {entropy}");
    assert!(len < framed(&content).len(), "less than searching");

    let mut decoded = vec![0; content.len()];
    decode_into(&frame, &mut decoded).unwrap();
    assert_eq!(decoded, content);
    // libzstd's own decoder in one call, and as a stream.
    let decoded = zstd::bulk::decompress(&frame, content.len()).unwrap();
    assert_eq!(decoded, content);
    assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), content);
}

/// RFC 8878, section 3.1.1.1: without a single segment, the window's descriptor comes sixth.
#[test]
fn no_window_is_longer_than_the_frame_of_a_large_component() {
    let content = vec![7; 2 * FRAME_CONTENT];
    for level in [-7, 0, 1, 2, 3, 9, 22] {
        let mut frame = Vec::new();
        let mut compressor = FrameCompressor::new(level).unwrap();
        compressor.compress(&content, &mut frame).unwrap();
        assert_eq!(frame[4] >> 5 & 1, 0, "level {level}");
        assert!(10 + (frame[5] >> 3) <= 20, "level {level}");
    }
}

#[test]
fn refuses_every_cut_and_every_tail() {
    let stored = framed(&[7; 1000]);
    for len in 1..stored.len() {
        let error = decode_into(&stored[..len], &mut [0; 1000]).unwrap_err();
        assert_eq!(error.code(), "zstd", "{len}");
    }
    let tail = [&stored[..], &[0; 64]].concat();
    let error = decode_into(&tail, &mut [0; 1000]).unwrap_err();
    assert_eq!(error.code(), "zstd");
}
