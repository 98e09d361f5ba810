//! Objects whose format cuts them into rows: made run by run, in memory and as a stream.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::Read as _;
use std::sync::atomic::Ordering;

use common::{counted, files_of, written};
use zt::formats::{Packing, Quantization};
use zt::ggml::{BlockType, Blocks};
use zt::manifest::Text;
use zt::{
    DType, Dense, File, NewObject, ObjectFormat, OpenOptions, Parts, QuantizedGroup, Registry,
    Signature, Slice, ToObject, WriteOptions,
};

const SHAPE: [u64; 3] = [3, 1000, 256];

fn blocks(bytes: &[u8]) -> Blocks<'_> {
    let q8_0 = BlockType::from_format("gguf.q8_0/1").unwrap();
    Blocks::new(q8_0, SHAPE, bytes).unwrap()
}

/// Several runs of them, and no whole number.
fn stored() -> Vec<u8> {
    let count: u64 = SHAPE.iter().product();
    (0..count / 32 * 34).map(|at| (at * 37 % 61) as u8).collect()
}

fn group() -> QuantizedGroup<'static> {
    let packing = Packing { per_word: 8, dtype: DType::U32 };
    let values: Vec<f32> = (0..400 * 999).map(|at| (at % 97) as f32).collect();
    // Groups and words end within rows.
    QuantizedGroup::quantize([400, 999], &values, Quantization::new(4, 96, packing)).unwrap()
}

/// What a stream gives, so many bytes at a time.
fn streamed(file: &File, piece_len: usize) -> zt::Result<Vec<u8>> {
    let mut found = Vec::new();
    let mut reader = file.tensor("x")?.dense_reader()?;
    let mut piece = vec![0; piece_len];
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(found),
            len => found.extend_from_slice(&piece[..len]),
        }
    }
}

fn expect_streams(object: &impl ToObject, dense: &Dense<'_>) {
    for (name, file) in files_of(object) {
        for piece_len in [10_001, 1 << 20] {
            let found = streamed(&file, piece_len).unwrap();
            assert!(found == dense.elements().bytes[..], "{name}, {piece_len} at a time");
        }
        for (role, _) in file.tensor("x").unwrap().components() {
            assert!(file.tensor("x").unwrap().is_verified(role).unwrap(), "{name}, {role}");
        }
        let found = file.tensor("x").unwrap().to_dense().unwrap();
        assert!(found == *dense, "{name}");
    }
}

#[test]
fn a_stream_of_runs_gives_the_bytes_of_the_whole() {
    let stored = stored();
    let blocks = blocks(&stored);
    expect_streams(&blocks, &blocks.to_dense().unwrap());
    let group = group();
    expect_streams(&group, &group.to_dense().unwrap());
}

#[test]
fn a_stream_reads_what_is_stored_once_and_in_parts() {
    let stored = stored();
    let (file, read) = counted(written(&blocks(&stored), WriteOptions::new()));
    let before = read.load(Ordering::Relaxed);
    let mut reader = file.tensor("x").unwrap().dense_reader().unwrap();
    let mut piece = vec![0; 4096];
    reader.read_exact(&mut piece).unwrap();
    let first = read.load(Ordering::Relaxed) - before;
    assert!(first <= 1 << 19, "{first}");
    while reader.read(&mut piece).unwrap() > 0 {}
    let all = read.load(Ordering::Relaxed) - before;
    assert!(all <= stored.len() as u64 + 4096, "{all}");
}

#[test]
fn damage_shows_before_the_end_of_a_stream() {
    let stored = stored();
    let mut bytes = written(&blocks(&stored), WriteOptions::new());
    let span = common::span_of(&File::from_bytes(bytes.clone()).unwrap(), "x", "data");
    bytes[usize::try_from(span.end()).unwrap() - 1] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    let error = streamed(&file, 1 << 20).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    assert_eq!((error.object(), error.component()), (Some("x"), Some("data")));
}

/// Bools, in a format of one's own that checks them. It knows the bytes of so many rows.
struct Bools(u64);

impl ObjectFormat for Bools {
    fn id(&self) -> &str {
        "test.bools/1"
    }
    fn check(&self, signature: &Signature<'_>, _: &Registry) -> zt::formats::Result<()> {
        signature.component("data").map(drop)
    }
    fn dense_type(&self, _: &Signature<'_>, _: &Registry) -> Option<(DType, Option<Text>)> {
        Some((DType::U8, None))
    }
    fn to_dense(&self, parts: Parts<'_>) -> zt::formats::Result<Dense<'static>> {
        let elements = parts.component("data")?.borrow();
        zt::formats::check_bools(&elements.bytes)?;
        Dense::from_elements(&parts.shape[..], elements)?.into_owned()
    }
    fn row_unit(&self, _: &Signature<'_>, _: &Registry) -> Option<u64> {
        Some(1)
    }
    fn expected_len(&self, _: &str, signature: &Signature<'_>, _: &Registry) -> Option<u64> {
        let rows = *signature.shape.first()?;
        (rows <= self.0).then(|| rows * 1024)
    }
}

/// A file of 3 MiB of bools. The last is neither 0 nor 1.
fn bools(known: u64) -> (Vec<u8>, OpenOptions) {
    let mut bools = vec![1u8; 3 << 20];
    *bools.last_mut().unwrap() = 9;
    let registry = Registry::builtin().with_format(Bools(known));
    let object = NewObject {
        shape: vec![3 << 10, 1024].into(),
        format: "test.bools/1".into(),
        attributes: None,
        components: vec![("data".into(), bools.into())],
    };
    let bytes = written(&object, WriteOptions::new().registry(registry.clone()));
    (bytes, OpenOptions::new().registry(registry))
}

#[test]
fn a_fault_in_a_late_run_is_the_fault_of_the_whole() {
    // Of all rows, of some of them and of none.
    for known in [u64::MAX, 2000, 0] {
        let (bytes, options) = bools(known);
        let file = options.open_bytes(bytes.clone()).unwrap();
        assert_eq!(streamed(&file, 4096).unwrap_err().code(), "bool-value", "{known}");
        let whole = file.tensor("x").unwrap().to_dense();
        assert_eq!(whole.unwrap_err().code(), "bool-value", "{known}");
        let part = file.tensor("x").unwrap().slice(&[Slice::Index(7)]);
        assert_eq!(part.is_ok(), known > 0, "{known}");

        // A wrong digest explains it.
        let mut bytes = bytes;
        let span = common::span_of(&file, "x", "data");
        bytes[usize::try_from(span.end()).unwrap() - 2] ^= 2;
        let file = options.open_bytes(bytes).unwrap();
        let error = streamed(&file, 4096).unwrap_err();
        assert_eq!(error.code(), "digest-mismatch", "{known}");
    }
}

#[test]
fn a_slice_reads_the_blocks_around_it_and_not_all_of_an_outer_row() {
    let stored = stored();
    let (file, read) = counted(written(&blocks(&stored), WriteOptions::new()));
    let whole = blocks(&stored).to_dense().unwrap();
    for text in ["1,500", "1,-3:", "2,7,40:90", "0,999,-1", "1:,3:5,::2"] {
        let slices = Slice::parse_list(text).unwrap();
        let before = read.load(Ordering::Relaxed);
        let found = file.tensor("x").unwrap().slice(&slices).unwrap();
        assert!(found == whole.slice(&slices).unwrap(), "{text}");
        let read = read.load(Ordering::Relaxed) - before;
        // Raw bytes come in windows of 16 KiB.
        assert!(text.starts_with("1:") || read <= 128 << 10, "{text}: {read}");
    }
}
