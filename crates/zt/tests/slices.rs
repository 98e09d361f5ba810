//! Parts of objects: the same values as cutting them out of the whole, and less read.
#![cfg(feature = "zstd")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod common;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use common::{agree, any_slice, counted, every_source, files_of, graph, span_of, written};
use proptest::prelude::*;
use zt::container::codec::FrameCompressor;
use zt::foreign::{FileBuilder, Kind};
use zt::ggml::{BlockType, Blocks};
use zt::{
    Attributes, Blob, ByteOrder, Component, DType, Dense, Elements, Encoding, File, Limits, Memory,
    NewObject, Object, ObjectFormat, OpenOptions, Parts, Planes, Quantized4Bit, Registry,
    Signature, Slice, Source, Span, View as _, WriteOptions,
};

const SHAPE: [u64; 3] = [900, 40, 50];

/// 7.2 MB: several frames. None ends where a row ends.
fn file_of(options: WriteOptions) -> (Vec<u8>, Dense<'static>) {
    let values: Vec<f32> = (0..1_800_000u32).map(|value| (value / 3) as f32).collect();
    let dense = Dense::from_slice(&SHAPE, &values)
        .unwrap()
        .into_owned()
        .unwrap();
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", &dense).unwrap();
    writer.add("graph", &graph()).unwrap();
    writer.finish().unwrap();
    (bytes, dense)
}

#[test]
fn parts_are_those_of_the_whole_from_every_source_and_encoding() {
    let texts = [
        "",
        "0",
        "-1",
        "3:7",
        "::300",
        "::-250,5,::-1",
        "...,7",
        "899,39,49",
        "5:5",
        "10:12,:,3:4",
        ":,20,20",
        "0:900:899,1:3",
        "300:700",
    ];
    for options in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let (bytes, dense) = file_of(options);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            for text in texts {
                let slices = Slice::parse_list(text).unwrap();
                let part = file.tensor("x").unwrap().slice(&slices).unwrap();
                assert!(part == dense.slice(&slices).unwrap(), "{source}: {text}");
            }
        }
    }
}

#[test]
fn any_slices_are_those_of_the_whole() {
    let (bytes, dense) = file_of(WriteOptions::new().zstd(1));
    let packed = File::from_bytes(bytes).unwrap();
    let (bytes, _) = file_of(WriteOptions::new());
    let raw = OpenOptions::new()
        .open_source(common::ByPosition(bytes))
        .unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(60));
    let slices = prop::collection::vec(any_slice(900), 0..=3);
    let same = |slices: Vec<Slice>| {
        let expected = dense.slice(&slices);
        for file in [&packed, &raw] {
            match (file.tensor("x").unwrap().slice(&slices), &expected) {
                (Ok(part), Ok(expected)) => prop_assert!(part == *expected),
                (part, expected) => prop_assert_eq!(part.is_err(), expected.is_err()),
            }
        }
        Ok(())
    };
    runner.run(&slices, same).unwrap();
}

#[test]
fn sparse_objects_have_parts_like_the_others() {
    let (bytes, _) = file_of(WriteOptions::new());
    let file = File::from_bytes(bytes).unwrap();
    let slices = Slice::parse_list("1,:2").unwrap();
    let part = file.tensor("graph").unwrap().slice(&slices).unwrap();
    assert_eq!(*part.as_slice::<i32>().unwrap(), [8, 0]);
}

#[test]
fn only_what_a_part_needs_is_read() {
    for (options, most) in [
        (WriteOptions::new().chunk_digests(None), 200_000),
        // The chunk that it is in, and the table.
        (WriteOptions::new(), 1_100_000),
        (WriteOptions::new().zstd(1), 1_200_000),
    ] {
        let (bytes, _) = file_of(options);
        let (file, count) = counted(bytes);
        let tensor = file.tensor("x").unwrap();
        let part = tensor
            .slice(&Slice::parse_list("500:508").unwrap())
            .unwrap();
        assert_eq!(part.shape(), [8, 40, 50]);
        let read = count.load(Ordering::Relaxed);
        assert!(read < most, "{read} bytes for a part of 64,000");
    }
}

#[test]
fn a_part_is_not_verified_and_says_so() {
    let (mut bytes, _) = file_of(WriteOptions::new());
    let span = span_of(&File::from_bytes(bytes.clone()).unwrap(), "x", "data");
    bytes[span.end() as usize - 1] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.slice(&[Slice::Index(0)]).is_ok());
    assert!(!tensor.is_verified("data").unwrap());
    assert_eq!(tensor.bytes("data").unwrap_err().code(), "digest-mismatch");
    let graph = file.tensor("graph").unwrap();
    graph.bytes("values").unwrap();
    assert!(graph.is_verified("values").unwrap());
}

/// A part of a component, by the call and out of all its elements.
fn part_of_component(file: &File, role: &str, text: &str) -> [Dense<'static>; 2] {
    let tensor = file.tensor("x").unwrap();
    let slices = Slice::parse_list(text).unwrap();
    let part = tensor.slice_component(role, &slices).unwrap();
    let elements = Elements {
        logical_type: None,
        ..tensor.elements(role).unwrap()
    };
    let count = elements.bytes.len() / elements.dtype.byte_len();
    let whole = Dense::from_elements([count as u64], elements).unwrap();
    [part, whole.slice(&slices).unwrap()]
}

#[test]
fn parts_of_components_are_those_of_all_elements_from_every_source() {
    for options in [
        WriteOptions::new(),
        WriteOptions::new().chunk_digests(None),
        WriteOptions::new().zstd(1),
    ] {
        for (kind, file) in every_source(&file_of(options).0, &OpenOptions::new()) {
            let file = file.unwrap();
            for text in [
                "",
                "0",
                "-1",
                "1000:1003",
                "::-700000",
                "-3:",
                "7:7",
                "::-1",
            ] {
                let [part, expected] = part_of_component(&file, "data", text);
                assert_eq!(part, expected, "{kind}: {text}");
            }
        }
    }
}

#[test]
fn a_part_of_a_component_reads_what_it_needs() {
    for options in [
        WriteOptions::new().chunk_digests(None),
        WriteOptions::new().zstd(1),
    ] {
        let (file, count) = counted(file_of(options).0);
        let tensor = file.tensor("x").unwrap();
        let slices = Slice::parse_list("1000000:1000003").unwrap();
        tensor.slice_component("data", &slices).unwrap();
        let read = count.load(Ordering::Relaxed);
        assert!(read < 1_200_000, "{read} bytes for a part of 12");
        assert!(!tensor.is_verified("data").unwrap());
    }
}

#[test]
fn all_of_a_component_is_verified_and_a_part_is_not() {
    let (mut bytes, _) = file_of(WriteOptions::new().chunk_digests(None));
    let span = span_of(&File::from_bytes(bytes.clone()).unwrap(), "x", "data");
    bytes[span.end() as usize - 1] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    let code = |text: &str| {
        let slices = Slice::parse_list(text).unwrap();
        let part = tensor.slice_component("data", &slices);
        part.map_err(|error| error.code()).err()
    };
    assert_eq!(code("-3:"), None);
    assert_eq!(code(""), Some("digest-mismatch"));
    assert_eq!(code("::-1"), Some("digest-mismatch"));
}

#[test]
fn parts_of_big_endian_and_of_broken_components_are_their_elements() {
    let component = |byte_len: u64| {
        let span = Span::new(0, byte_len).unwrap();
        Component {
            byte_order: ByteOrder::Big,
            ..Component::new(DType::I16, Blob::raw(span))
        }
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

#[test]
fn slices_that_do_not_fit_are_the_callers_fault() {
    let (bytes, _) = file_of(WriteOptions::new());
    let file = File::from_bytes(bytes).unwrap();
    for text in ["900", "0,0,0,0", "...,..."] {
        let slices = Slice::parse_list(text).unwrap();
        assert_eq!(
            file.tensor("x").unwrap().slice(&slices).unwrap_err().code(),
            "misuse",
            "{text}"
        );
    }
}

#[test]
fn rows_of_quantized_objects_are_decoded_without_the_others() {
    // 6 bits in groups of 12 over rows of 10: only every sixth row ends with a group.
    let count = 6000u64 * 10;
    let packed: Vec<u32> = (0..count / 5)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761))
        .collect();
    let scales: Vec<f32> = (0..count / 12).map(|at| at as f32 / 8.0).collect();
    let attributes: Attributes = [
        ("bits", zt::Value::from(6u64)),
        ("group_size", zt::Value::from(12u64)),
        ("packing", zt::Value::from("5_per_u32")),
    ]
    .into_iter()
    .collect();
    let object = NewObject {
        shape: vec![6000, 10].into(),
        format: "quantized_group".into(),
        attributes: Some(attributes),
        components: vec![
            ("packed_weight".into(), Elements::from(&packed)),
            ("scales".into(), Elements::from(&scales)),
        ],
    };
    for text in [
        "0",
        "5998:",
        "17:4000:13,::-2",
        "-1:-4:-1",
        "3:3",
        "2999",
        ":,2",
    ] {
        agree(&files_of(&object), &Slice::parse_list(text).unwrap()).unwrap();
    }
    let (file, count) = counted(written(&object, WriteOptions::new()));
    let tensor = file.tensor("x").unwrap();
    tensor.slice(&[Slice::Index(3000)]).unwrap();
    let read = count.load(Ordering::Relaxed);
    assert!(read <= 2 * (64 << 10), "{read}");
}

#[test]
fn rows_of_blocks_and_of_half_bytes_are_those_of_the_whole() {
    let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    // The scale of each block is 1.0 as f16.
    let block = |at: u8| {
        [0, 0x3c]
            .into_iter()
            .chain((0..32).map(move |value| value ^ at))
    };
    let blocks: Vec<u8> = (0..24).flat_map(block).collect();
    let nibbles: Vec<u8> = (0..=255).chain(0..59).collect();
    let scale: Vec<f32> = (0..90u8).map(f32::from).collect();
    for text in ["1", "2:", "3:1:-1", "-1,5", "0:0", ":, ::9"] {
        let slices = Slice::parse_list(text).unwrap();
        let rows = Blocks::new(q8_0, [4, 192], &blocks[..]).unwrap();
        agree(&files_of(&rows), &slices).unwrap();
        // Rows of an odd length: two rows share a byte.
        let rows = Quantized4Bit::new([90, 7], &nibbles, &scale, &scale).unwrap();
        agree(&files_of(&rows), &slices).unwrap();
    }
    for text in ["40", "700:10:-3", "5:6", "767"] {
        let row = Blocks::new(q8_0, [768], &blocks[..]).unwrap();
        agree(&files_of(&row), &Slice::parse_list(text).unwrap()).unwrap();
    }
    let many: Vec<u8> = blocks
        .iter()
        .copied()
        .cycle()
        .take(34 * 6 * 10_000)
        .collect();
    let rows = Blocks::new(q8_0, [10_000, 192], &many[..]).unwrap();
    let options = WriteOptions::new().chunk_digests(None);
    let (file, count) = counted(written(&rows, options));
    for at in [-7, -1] {
        let tensor = file.tensor("x").unwrap();
        tensor.slice(&[Slice::Index(at)]).unwrap();
        let read = count.swap(0, Ordering::Relaxed);
        assert!(read <= 64 << 10, "{read}");
    }
}

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
    assert!(
        part.as_slice::<i64>().unwrap().iter().copied().eq(expected),
        "{text}"
    );
}

#[test]
fn one_large_frame_is_decoded_as_far_as_a_part_needs_it() {
    let mut state = 1i64;
    let noise = numbers().into_iter().map(|at| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(at);
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
    let component = Component {
        byte_order: ByteOrder::Big,
        ..Component::new(DType::I64, Blob::raw(span))
    };
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
    expect_numbers(
        &file,
        "::-1",
        (0..3000)
            .rev()
            .flat_map(|row| row * 1000..row * 1000 + 1000),
    );
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
    let component = Component {
        byte_order: ByteOrder::Big,
        ..Component::new(DType::I64, blob)
    };
    let file = file_of_component(Memory::new(stored), component);
    expect_numbers(&file, "120:130", 120_000..130_000);
    expect_numbers(&file, "::-1500,5", [2_999_005, 1_499_005].into_iter());

    // Of single bytes there is nothing to turn.
    let span = Span::new(0, 3_000_000).unwrap();
    let component = Component {
        byte_order: ByteOrder::Big,
        ..Component::new(DType::U8, Blob::raw(span))
    };
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
    let whole = Dense::from_slice(&[3000, 1000], &numbers())
        .unwrap()
        .into_owned()
        .unwrap();
    // Frames that end where elements end, and frames that do not.
    for content_len in [1 << 18, 1_000_003] {
        let (stored, component) = framed(content_len);
        let lent = file_of_component(Memory::new(stored.clone()), component.clone());
        let fetched = file_of_component(common::ByPosition(stored), component);
        for text in [
            "1:2999",
            "2500:300:-1",
            "::7",
            ":,3",
            "::-1,990:",
            ":,::-250",
            ":,998:2",
        ] {
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

/// Arrays of bytes, in a format that somebody has made, which may say how many of them a row has.
struct Made(Option<u64>);

impl ObjectFormat for Made {
    fn id(&self) -> &str {
        "test.made/1"
    }
    fn check(&self, signature: &Signature<'_>, _: &Registry) -> zt::formats::Result<()> {
        signature.component("data").map(drop)
    }
    fn to_dense(&self, parts: Parts<'_>) -> zt::formats::Result<Dense<'static>> {
        let elements = parts.component("data")?.borrow();
        Dense::from_elements(&parts.shape[..], elements)?.into_owned()
    }
    fn row_unit(&self, _: &Signature<'_>, _: &Registry) -> Option<u64> {
        Some(1)
    }
    fn expected_len(&self, _: &str, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        signature.shape.first()?.checked_mul(self.0?)
    }
}

/// What a format says of its rows decides what is read, and not what comes out of it.
#[test]
fn rows_of_a_format_that_is_wrong_about_them_come_out_of_the_whole() {
    let slice = |row_len: Option<u64>, shape: &[u64], text: &str| {
        let registry = Registry::builtin().with_format(Made(row_len));
        let options = OpenOptions::new().registry(registry);
        let mut builder = FileBuilder::new(Kind::new("test"), options);
        let source = builder.source(Memory::new((0..200).collect::<Vec<u8>>()));
        let blob = Blob::raw(Span::new(0, 200).unwrap());
        let component = Component::new(DType::U8, blob);
        let object = Object::new(shape, "test.made/1").with_component("data", component);
        builder.object("x", object, source);
        let file = builder.build().unwrap();
        let slices = Slice::parse_list(text).unwrap();
        file.tensor("x").unwrap().slice(&slices)
    };
    // Right, unknown, and more than there is.
    for row_len in [Some(2), None, Some(3)] {
        let part = slice(row_len, &[100, 2], "98:").unwrap();
        assert_eq!(*part.as_slice::<u8>().unwrap(), [196, 197, 198, 199]);
    }
    // An array of no dimensions has no rows, and two hundred bytes are no scalar.
    let error = slice(Some(2), &[], "").unwrap_err();
    assert_eq!(error.code(), "shape-size-mismatch");
}

/// For an unknown type, only the shape gives the number of bytes of a value.
#[test]
fn parts_of_values_of_an_unknown_type_are_those_of_the_whole() {
    let file = |format: &'static str, roles: &[&'static str]| {
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new((0..24).collect::<Vec<u8>>()));
        let mut object = Object::new([3, 4], format);
        for (role, start) in roles.iter().zip([0, 12]) {
            let blob = Blob::raw(Span::new(start, 12).unwrap());
            let mut component = Component::new(DType::U8, blob);
            component.logical_type = (format == "dense").then_some("test.alien".into());
            object = object.with_component(*role, component);
        }
        if format == Planes::FORMAT {
            let mut attributes = Attributes::new();
            attributes.insert("dtype", "f16");
            attributes.insert("type", "test.alien");
            object.attributes = Some(attributes);
        }
        builder.object("x", object, source);
        builder.build().unwrap()
    };
    let slices = Slice::parse_list("1:,::2").unwrap();
    for (file, value_len) in [
        (file("dense", &["data"]), 1),
        (file(Planes::FORMAT, &["plane0", "plane1"]), 2),
    ] {
        let tensor = file.tensor("x").unwrap();
        let part = tensor.slice(&slices).unwrap();
        assert_eq!(part, tensor.to_dense().unwrap().slice(&slices).unwrap());
        let elements = part.elements();
        assert_eq!(elements.logical_type(), Some("test.alien"));
        assert_eq!(elements.bytes.len(), 4 * value_len);
    }
    // An unknown format has none.
    let error = file("test.unknown/1", &["data"]);
    let error = error.tensor("x").unwrap().slice(&slices).unwrap_err();
    assert_eq!(error.code(), "unsupported");
}

/// Whatever the whole is: its rows are dequantized without the others.
#[test]
fn a_part_larger_than_the_limits_allow_is_refused() {
    let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    let rows = Blocks::new(q8_0, [4, 192], &[0; 34 * 6 * 4][..]).unwrap();
    let limits = Limits {
        decoded_len: 192 * 4,
        ..Limits::default()
    };
    let options = OpenOptions::new().limits(limits);
    let file = options.open_bytes(written(&rows, WriteOptions::new()));
    let file = file.unwrap();
    let tensor = file.tensor("x").unwrap();
    let slice = |text: &str| tensor.slice(&Slice::parse_list(text).unwrap());
    assert_eq!(slice("3").unwrap().shape(), [192]);
    let error = slice("2:").unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
}
