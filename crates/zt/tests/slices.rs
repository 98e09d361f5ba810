//! Parts of objects: the same values as cutting them out of the whole, and less read.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod common;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{every_source, graph, span_of};
use proptest::prelude::*;
use zt::{Dense, File, OpenOptions, Slice, Source, Span, WriteOptions};

const SHAPE: [u64; 3] = [900, 40, 50];

/// 7.2 MB: several frames, none of which ends where a row does.
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

fn slice() -> impl Strategy<Value = Slice> {
    let bound = || prop::option::of(-1000i64..1000);
    let range = (bound(), bound(), prop_oneof![1i64..60, -60i64..0]);
    prop_oneof![
        4 => range.prop_map(|(start, stop, step)| Slice::Range { start, stop, step }),
        1 => (-40i64..40).prop_map(Slice::Index),
        1 => Just(Slice::ALL),
    ]
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
    let slices = prop::collection::vec(slice(), 0..=3);
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
fn other_objects_are_made_dense_first() {
    let (bytes, _) = file_of(WriteOptions::new());
    let file = File::from_bytes(bytes).unwrap();
    let slices = Slice::parse_list("1,:2").unwrap();
    let part = file.tensor("graph").unwrap().slice(&slices).unwrap();
    assert_eq!(*part.as_slice::<i32>().unwrap(), [8, 0]);
}

/// Counts what is read of a file.
struct Counted(Vec<u8>, Arc<AtomicU64>);

impl Source for Counted {
    fn byte_len(&self) -> u64 {
        self.0.len() as u64
    }
    fn slice(&self, _: Span) -> Option<&[u8]> {
        None
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.1.fetch_add(buf.len() as u64, Ordering::Relaxed);
        zt::Memory::new(&self.0[..]).read_at(offset, buf)
    }
}

#[test]
fn only_what_a_part_needs_is_read() {
    for (options, most) in [
        (WriteOptions::new(), 200_000),
        (WriteOptions::new().zstd(1), 1_200_000),
    ] {
        let (bytes, _) = file_of(options);
        let count = Arc::new(AtomicU64::new(0));
        let source = Counted(bytes, Arc::clone(&count));
        let file = OpenOptions::new().open_source(source).unwrap();
        let tensor = file.tensor("x").unwrap();
        count.store(0, Ordering::Relaxed);
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
