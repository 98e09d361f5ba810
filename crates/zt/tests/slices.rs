//! Parts of objects: the same values as cutting them out of the whole, and less read.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use std::sync::atomic::Ordering;

use common::{agree, any_slice, counted, every_source, files_of, graph, span_of, written};
use proptest::prelude::*;
use zt::foreign::{FileBuilder, Kind};
use zt::ggml::{BlockType, Blocks};
use zt::{
    Attributes, Blob, Component, DType, Dense, Elements, ErrorKind, File, Limits, Memory,
    NewObject, Object, ObjectFormat, OpenOptions, Parts, Planes, Quantized4Bit, Registry,
    Signature, Slice, Span, View as _, WriteOptions,
};

const SHAPE: [u64; 3] = [900, 40, 50];

/// 7.2 MB: several frames. None ends where a row ends.
fn file_of(options: WriteOptions) -> (Vec<u8>, Dense<'static>) {
    let values: Vec<f32> = (0..1_800_000u32).map(|value| (value / 3) as f32).collect();
    let dense = Dense::from_slice(&SHAPE, &values).unwrap().into_owned().unwrap();
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
    let raw = OpenOptions::new().open_source(common::ByPosition(bytes)).unwrap();
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
        let part = tensor.slice(&Slice::parse_list("500:508").unwrap()).unwrap();
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
    let elements = Elements { logical_type: None, ..tensor.elements(role).unwrap() };
    let count = elements.bytes.len() / elements.dtype.byte_len();
    let whole = Dense::from_elements([count as u64], elements).unwrap();
    [part, whole.slice(&slices).unwrap()]
}

#[test]
fn parts_of_components_are_those_of_all_elements_from_every_source() {
    for options in
        [WriteOptions::new(), WriteOptions::new().chunk_digests(None), WriteOptions::new().zstd(1)]
    {
        for (kind, file) in every_source(&file_of(options).0, &OpenOptions::new()) {
            let file = file.unwrap();
            for text in ["", "0", "-1", "1000:1003", "::-700000", "-3:", "7:7", "::-1"] {
                let [part, expected] = part_of_component(&file, "data", text);
                assert_eq!(part, expected, "{kind}: {text}");
            }
        }
    }
}

#[test]
fn a_part_of_a_component_reads_what_it_needs() {
    for options in [WriteOptions::new().chunk_digests(None), WriteOptions::new().zstd(1)] {
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
    let packed: Vec<u32> =
        (0..count / 5).map(|at| (at as u32).wrapping_mul(2_654_435_761)).collect();
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
    for text in ["0", "5998:", "17:4000:13,::-2", "-1:-4:-1", "3:3", "2999", ":,2"] {
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
    let block = |at: u8| [0, 0x3c].into_iter().chain((0..32).map(move |value| value ^ at));
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
    let many: Vec<u8> = blocks.iter().copied().cycle().take(34 * 6 * 10_000).collect();
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

/// Two values in a byte: a sound object, and nobody here knows where a value begins.
#[test]
fn parts_of_packed_values_of_an_unknown_type_are_unsupported() {
    let nibbles = Elements::new(DType::U8, &[0x21, 0x43][..]).with_logical_type("acme.nib");
    let dense = written(&Dense::from_elements([2, 2], nibbles).unwrap(), WriteOptions::new());
    let corpus = "../../conformance/corpus/own/valid/csr_unknown_logical_values.zt";
    for file in [File::from_bytes(dense).unwrap(), File::open(corpus).unwrap()] {
        let tensor = file.tensors().next().unwrap().unwrap();
        for text in ["0:1", "0,1"] {
            let slices = Slice::parse_list(text).unwrap();
            let error = tensor.slice(&slices).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}: {error}");
            let planned = file.plan([(tensor, slices)]).for_each(|_, dense| dense.map(drop));
            assert_eq!(planned.unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
        }
    }
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
    for (file, value_len) in
        [(file("dense", &["data"]), 1), (file(Planes::FORMAT, &["plane0", "plane1"]), 2)]
    {
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
    let limits = Limits::default().with_decoded_len(192 * 4);
    let options = OpenOptions::new().limits(limits);
    let file = options.open_bytes(written(&rows, WriteOptions::new()));
    let file = file.unwrap();
    let tensor = file.tensor("x").unwrap();
    let slice = |text: &str| tensor.slice(&Slice::parse_list(text).unwrap());
    assert_eq!(slice("3").unwrap().shape(), [192]);
    let error = slice("2:").unwrap_err();
    assert_eq!(error.code(), "decompression-limit");
}
