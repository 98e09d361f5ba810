//! Frames of zstd: what is written, what is refused, and where frames are found.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_container::codec::{FRAME_CONTENT, Frame, FrameCompressor, SeekTable, decode_into, frames};
use zt_container::{Blob, Encoding, Error, Memory, Misuse, Span};

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

/// The stored length and the content of each frame, for content of this length.
fn walked(stored: &[u8], decoded_len: u64) -> Option<Vec<(u64, u64)>> {
    let blob = Blob { decoded_len: Some(decoded_len), ..blob(stored) };
    let frames = frames(&Memory::new(stored), &blob).unwrap()?;
    Some(frames.iter().map(|it| (it.stored.byte_len(), it.content.byte_len())).collect())
}

/// What the table of three frames says. Without a table that is used, it is a frame of its own.
fn listed(stored: &[u8]) -> Option<Vec<Frame>> {
    found(stored).filter(|frames| frames.len() == 3)
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

#[test]
fn frames_of_every_kind_are_walked_as_libzstd_does() {
    use zstd::zstd_safe::find_frame_compressed_size;
    let noise = (0..700_000u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]);
    let noise: Vec<u8> = noise.collect();
    let skippable = [&[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    let mut stored = skippable.clone();
    let mut expected = vec![(skippable.len() as u64, 0)];
    let repeated = [(7, 300_000), (0, 0), (1, 255), (2, 256), (3, 65_792)];
    let repeated = repeated.map(|(byte, len)| vec![byte; len]);
    for content in std::iter::once(&noise).chain(&repeated) {
        for frame in [framed(content), zstd::bulk::compress(content, 1).unwrap()] {
            let len = find_frame_compressed_size(&frame).unwrap();
            expected.push((len as u64, content.len() as u64));
            stored.extend(frame);
        }
    }
    let content = |frames: &[(u64, u64)]| frames.iter().map(|(_, content)| content).sum::<u64>();
    assert_eq!(walked(&stored, content(&expected)), Some(expected.clone()));
    // A cut row of frames is none, wherever it is cut; between two frames it is a shorter row.
    let mut ends = vec![0];
    ends.extend(expected.iter().scan(0, |end, (len, _)| {
        *end += len;
        Some(*end)
    }));
    let cuts = (0..stored.len()).rev().take(70_000).step_by(97).map(|len| len as u64);
    for len in cuts.chain(ends.clone()) {
        let whole = ends.iter().rposition(|end| *end <= len).unwrap();
        let frames = &expected[..whole];
        let found = walked(&stored[..usize::try_from(len).unwrap()], content(frames));
        assert_eq!(found, (ends[whole] == len).then(|| frames.to_vec()), "{len}");
    }
}

#[test]
fn a_frame_that_does_not_say_its_content_is_not_walked() {
    let mut stored = Vec::new();
    zstd::stream::copy_encode(&b"streamed"[..], &mut stored, 1).unwrap();
    assert_eq!(walked(&stored, 8), None);
}

/// A list of frames takes four times the memory of a skippable frame of no bytes.
#[test]
fn frames_that_are_too_many_for_their_bytes_are_not_listed() {
    let skippable = [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    for (count, is_listed) in [(4000, true), (5000, false)] {
        let mut stored = skippable.repeat(count);
        let mut table = SeekTable::default();
        for _ in 0..count {
            table.push(skippable.len(), 0).unwrap();
        }
        let content = framed(&[7; 18]);
        table.push(content.len(), 18).unwrap();
        stored.extend(content);
        let frames = is_listed.then_some(count + 1);
        assert_eq!(found(&stored).map(|frames| frames.len()), frames);
        decode_into(&stored, &mut [0; 18]).unwrap();
        stored.extend(table.to_frame());
        assert_eq!(found(&stored).map(|frames| frames.len()), frames);
    }
}

#[cfg(target_pointer_width = "64")]
#[test]
fn a_table_has_room_for_frames_below_4_gib() {
    let mut table = SeekTable::default();
    for (stored, content) in [(1 << 32, 0), (0, 1 << 32)] {
        let error = table.push(stored, content).unwrap_err();
        assert!(matches!(error, Error::Misuse(Misuse::TooLong)), "{error}");
    }
    table.push((1 << 32) - 1, (1 << 32) - 1).unwrap();
    assert_eq!(table.to_frame()[8..20], [[255; 8].as_slice(), &[1, 0, 0, 0]].concat());
}

/// Spec: the format's own text, "Seek_Table_Descriptor": bit 7 is the checksum flag, the five
/// below are reserved, the last two unused.
#[test]
fn a_table_with_checksums_is_read_and_one_of_another_kind_is_not() {
    const SKIPPABLE: u32 = 0x184D_2A5E;
    const SEEKABLE: u32 = 0x8F92_EAB1;
    let plain = three(true);
    let (frames, plain_table) = plain.split_at(three(false).len());
    let entries = plain_table.get(8..plain_table.len() - 9).unwrap();
    let table = |magic: u32, descriptor: u8, checksum: &[u8], more: u32| {
        let entries = entries.chunks(8).flat_map(|entry| [entry, checksum]);
        let entries: Vec<u8> = entries.flatten().copied().collect();
        let payload = u32::try_from(entries.len()).unwrap() + 9 + more;
        [
            frames,
            &magic.to_le_bytes(),
            &payload.to_le_bytes(),
            &entries,
            &[3, 0, 0, 0, descriptor],
            &SEEKABLE.to_le_bytes(),
        ]
        .concat()
    };
    let expected = listed(&plain);
    assert!(expected.is_some());
    assert_eq!(table(SKIPPABLE, 0, &[], 0), plain);
    assert_eq!(listed(&table(SKIPPABLE, 0, &[], 8)), None, "longer than it is");
    for (magic, descriptor, checksum, is_known) in [
        (SKIPPABLE, 0x80, &[0xAB; 4][..], true),
        (SKIPPABLE, 0x83, &[0xAB; 4], true),
        (SKIPPABLE, 0x03, &[], true),
        (SKIPPABLE, 0x80, &[], false), // Said to have checksums, and has none.
        (SKIPPABLE, 0x00, &[0xAB; 4], false),
        (SKIPPABLE, 0x40, &[], false),
        (SKIPPABLE, 0x04, &[], false),
        (SKIPPABLE - 1, 0x00, &[], false), // A skippable frame of some other use.
    ] {
        let stored = table(magic, descriptor, checksum, 0);
        let expected = expected.clone().filter(|_| is_known);
        assert_eq!(listed(&stored), expected, "{magic:#x} {descriptor:#x}");
    }
}

#[test]
fn a_frame_header_cut_anywhere_is_not_walked() {
    // A dictionary of 4 bytes, a window, a content size of 8 bytes; one empty raw block, which
    // is the last; a checksum.
    let header = [0x28, 0xB5, 0x2F, 0xFD, 0xC7, 0x58, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    let stored = [&header[..], &[1, 0, 0], &[0; 4]].concat();
    assert_eq!(walked(&stored, 0), Some(vec![(25, 0)]));
    for len in 1..stored.len() {
        assert_eq!(walked(&stored[..len], 0), None, "{len}");
    }
    // Nor is what would end beyond the last address.
    let span = Span::new(u64::MAX - 3, 3).unwrap();
    let beyond = Blob { span, ..blob(&stored) };
    assert_eq!(frames(&Memory::new(&stored), &beyond).unwrap(), None);
}

#[test]
fn a_table_that_does_not_add_up_is_no_table() {
    let mut stored = three(true);
    let entry = stored.len() - 9 - 8 + 4; // The content length of the last frame.
    *stored.get_mut(entry).unwrap() = 6;
    // A skippable frame has no content, which walking finds out.
    assert_eq!(found(&stored).map(|frames| frames.len()), Some(4));
    for count in [0u32, 4, u32::MAX] {
        let mut stored = three(true);
        let at = stored.len() - 9;
        let field = stored.get_mut(at..at + 4).unwrap();
        field.copy_from_slice(&count.to_le_bytes());
        assert_eq!(listed(&stored), None, "{count}");
    }
}
