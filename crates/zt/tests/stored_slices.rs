//! Parts of components that are stored in frames, in another byte order, or made in order: the same values as
//! cutting them out of the whole.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use zt::container::codec::FrameCompressor;
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Blob, ByteOrder, Component, DType, Dense, Encoding, File, Memory, Object, OpenOptions, Slice,
    Source, Span,
};

/// 24 MB of i64, each its own place.
fn numbers() -> Vec<i64> {
    (0..3_000_000).collect()
}

/// A file of one component of 3000 by 1000 numbers.
fn file_of_component(source: impl Source + 'static, component: Component) -> File {
    let mut builder = FileBuilder::new(Kind::new("numbers"), OpenOptions::new());
    let source = builder.source(source);
    let object = Object::new([3000, 1000], "dense").with_component("data", component);
    builder.object("x", object, source);
    builder.build().unwrap()
}

fn expect_numbers(file: &File, text: &str, expected: impl Iterator<Item = i64>) {
    let slices = Slice::parse_list(text).unwrap();
    let part = file.tensor("x").unwrap().slice(&slices).unwrap();
    assert!(part.as_slice::<i64>().unwrap().iter().copied().eq(expected), "{text}");
}

#[test]
fn one_large_frame_is_decoded_as_far_as_a_part_needs_it() {
    let mut state = 1i64;
    let noise = numbers().into_iter().map(|at| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(at);
        at ^ (state >> 33 << 32)
    });
    let bytes: Vec<u8> = noise.flat_map(i64::to_le_bytes).collect();
    let low = |at: i64| u32::try_from(at).unwrap();
    let mut stored = Vec::new();
    let mut compressor = FrameCompressor::new(1).unwrap();
    compressor.compress(&bytes, &mut stored).unwrap();
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(bytes.len() as u64),
        ..Blob::raw(Span::new(0, stored.len() as u64).unwrap())
    };
    let all = stored.len() as u64;
    let read = Arc::new(AtomicU64::new(0));
    let source = common::Counted(stored, Arc::clone(&read));
    let file = file_of_component(source, Component::new(DType::I64, blob));
    let part = |text: &str| {
        read.store(0, Ordering::Relaxed);
        let slices = Slice::parse_list(text).unwrap();
        let part = file.tensor("x").unwrap().slice(&slices).unwrap();
        let values = part.as_slice::<i64>().unwrap();
        let values: Vec<u32> = values.iter().map(|value| *value as u32).collect();
        (values, read.load(Ordering::Relaxed))
    };
    let (values, read) = part("100,5:8");
    assert_eq!(values, [100_005, 100_006, 100_007].map(low));
    // The frame's blocks are walked as well, a look at each.
    assert!(read < all / 3, "{read} of {all}");
    // Also of the beginning.
    let (values, read) = part("0,:3");
    assert_eq!(values, [0, 1, 2].map(low));
    assert!(read < all / 3, "{read} of {all}");
    let (values, read) = part("::-1000,1");
    assert_eq!(values, [2_999_001, 1_999_001, 999_001].map(low));
    assert!(read < 3 * all, "{read} of {all}");
}

#[test]
fn parts_of_big_endian_components_are_turned() {
    let bytes: Vec<u8> = numbers().into_iter().flat_map(i64::to_be_bytes).collect();
    let span = Span::new(0, bytes.len() as u64).unwrap();
    let component =
        Component { byte_order: ByteOrder::Big, ..Component::new(DType::I64, Blob::raw(span)) };
    let lent = file_of_component(Memory::new(bytes.clone()), component.clone());
    let fetched = file_of_component(common::ByPosition(bytes), component);
    for file in [lent, fetched] {
        expect_numbers(
            &file,
            "::-1500,::999",
            [2_999_000, 2_999_999, 1_499_000, 1_499_999].into_iter(),
        );
        expect_numbers(&file, "2:20", 2000..20_000);
    }
}

#[test]
fn parts_of_what_is_made_in_order_seldom_go_back() {
    let bytes: Vec<u8> = numbers().into_iter().flat_map(i64::to_le_bytes).collect();
    let len = bytes.len() as u64;
    let (source, made) = common::InOrder::new(bytes);
    let span = Span::new(0, len).unwrap();
    let file = file_of_component(source, Component::new(DType::I64, Blob::raw(span)));
    expect_numbers(&file, "::2,7", (0..1500).map(|row| row * 2000 + 7));
    assert!(made.swap(0, Ordering::Relaxed) <= len);
    expect_numbers(&file, "::-1", (0..3000).rev().flat_map(|row| row * 1000..row * 1000 + 1000));
    // Six windows, each made out of those before it, and again for a row on the border of two.
    assert!(made.load(Ordering::Relaxed) < 10 * len);
}

#[test]
fn parts_of_compressed_big_endian_components_are_turned() {
    let bytes: Vec<u8> = numbers().into_iter().flat_map(i64::to_be_bytes).collect();
    let mut stored = Vec::new();
    // The first frame ends within an element.
    let mut compressor = FrameCompressor::new(1).unwrap();
    for content in [&bytes[..1_000_003], &bytes[1_000_003..]] {
        let mut frame = Vec::new();
        compressor.compress(content, &mut frame).unwrap();
        stored.extend_from_slice(&frame);
    }
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(bytes.len() as u64),
        ..Blob::raw(Span::new(0, stored.len() as u64).unwrap())
    };
    let component = Component { byte_order: ByteOrder::Big, ..Component::new(DType::I64, blob) };
    let file = file_of_component(Memory::new(stored), component);
    expect_numbers(&file, "120:130", 120_000..130_000);
    expect_numbers(&file, "::-1500,5", [2_999_005, 1_499_005].into_iter());

    // Of single bytes there is nothing to turn.
    let span = Span::new(0, 3_000_000).unwrap();
    let component =
        Component { byte_order: ByteOrder::Big, ..Component::new(DType::U8, Blob::raw(span)) };
    let file = file_of_component(Memory::new(bytes.clone()), component);
    let part = file.tensor("x").unwrap();
    let part = part.slice(&Slice::parse_list("2,:2000").unwrap()).unwrap();
    assert!(*part.as_slice::<u8>().unwrap() == bytes[2000..3000]);
}

/// Numbers in frames with so many bytes of content.
fn framed(content_len: usize) -> (Vec<u8>, Component) {
    let bytes: Vec<u8> = numbers().into_iter().flat_map(i64::to_le_bytes).collect();
    let mut compressor = FrameCompressor::new(1).unwrap();
    let mut stored = Vec::new();
    for content in bytes.chunks(content_len) {
        let mut frame = Vec::new();
        compressor.compress(content, &mut frame).unwrap();
        stored.extend_from_slice(&frame);
    }
    let blob = Blob {
        encoding: Encoding::Zstd,
        decoded_len: Some(bytes.len() as u64),
        ..Blob::raw(Span::new(0, stored.len() as u64).unwrap())
    };
    (stored, Component::new(DType::I64, blob))
}

fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

#[test]
fn parts_of_many_frames_are_the_same_for_any_number_of_threads() {
    let whole = Dense::from_slice(&[3000, 1000], &numbers()).unwrap().into_owned().unwrap();
    // Frames that end where elements end, and frames that do not.
    for content_len in [1 << 18, 1_000_003] {
        let (stored, component) = framed(content_len);
        let lent = file_of_component(Memory::new(stored.clone()), component.clone());
        let fetched = file_of_component(common::ByPosition(stored), component);
        for text in ["1:2999", "2500:300:-1", "::7", ":,3", "::-1,990:", ":,::-250", ":,998:2"] {
            let slices = Slice::parse_list(text).unwrap();
            let expected = whole.slice(&slices).unwrap();
            for (threads, file) in [(1, &lent), (5, &fetched)] {
                let part = on_threads(threads, || file.tensor("x").unwrap().slice(&slices));
                assert!(part.unwrap() == expected, "{text} on {threads} threads");
            }
        }
    }
}

#[test]
fn damage_in_one_of_many_frames_is_the_same_error_for_any_number_of_threads() {
    let (mut stored, component) = framed(1 << 18);
    let middle = stored.len() / 2;
    stored[middle] ^= 1;
    let file = file_of_component(Memory::new(stored), component);
    let slices = Slice::parse_list("10:2990").unwrap();
    let part = |threads| on_threads(threads, || file.tensor("x").unwrap().slice(&slices));
    let alone = part(1).unwrap_err().to_string();
    assert_eq!(part(4).unwrap_err().to_string(), alone);
    // What lies before the damage is read as before.
    let slices = Slice::parse_list("10:1000").unwrap();
    assert!(on_threads(4, || file.tensor("x").unwrap().slice(&slices)).is_ok());
}

/// A source that lends nothing and notes which threads read it.
struct Watched(Vec<u8>, Arc<Mutex<HashSet<ThreadId>>>);

impl Source for Watched {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.lock().unwrap().insert(thread::current().id());
        Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

#[test]
fn a_part_of_two_frames_is_read_by_the_calling_thread() {
    let (stored, component) = framed(1 << 20);
    let readers = Arc::default();
    let file = file_of_component(Watched(stored, Arc::clone(&readers)), component);
    // 1.6 MB, from the second frame and the third.
    let slices = Slice::parse_list("140:340").unwrap();
    file.tensor("x").unwrap().slice(&slices).unwrap();
    let readers = readers.lock().unwrap();
    assert_eq!(*readers, HashSet::from([thread::current().id()]));
}

#[test]
fn parts_of_big_endian_and_of_broken_components_are_their_elements() {
    let component = |byte_len: u64| {
        let span = Span::new(0, byte_len).unwrap();
        Component { byte_order: ByteOrder::Big, ..Component::new(DType::I16, Blob::raw(span)) }
    };
    // The second ends in the middle of an element, and lacks all others of its object.
    for byte_len in [6, 5] {
        let source = common::ByPosition(vec![0, 1, 0, 2, 0, 3]);
        let file = file_of_component(source, component(byte_len));
        let tensor = file.tensor("x").unwrap();
        assert!(tensor.fault().is_some());
        for (text, expected) in [("", &[1i16, 2, 3][..]), ("1:", &[2, 3]), ("0", &[1])] {
            let slices = Slice::parse_list(text).unwrap();
            let part = tensor.slice_component("data", &slices).unwrap();
            let whole = expected.iter().take_while(|at| **at as u64 * 2 <= byte_len);
            let values = part.as_slice::<i16>().unwrap();
            assert!(values.iter().eq(whole), "{text}: {values:?}");
        }
        let fault = |role: &str, text: &str| {
            let slices = Slice::parse_list(text).unwrap();
            tensor.slice_component(role, &slices).unwrap_err().code()
        };
        assert_eq!(fault("data", "0,0"), "misuse");
        assert_eq!(fault("data", "3"), "misuse");
        assert_eq!(fault("none", ""), "not-found");
    }
}
