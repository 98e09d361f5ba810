//! From safetensors to `.zt` and back.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "safetensors")]

use std::fs;
use std::path::{Path, PathBuf};

use zt::{File, HashOptions, Memory, OpenOptions, WriteOptions};
use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS, ZT};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../conformance/corpus/foreign/safetensors")
        .join(name)
}

fn to(options: &ConvertOptions<'_>, input: Input) -> Vec<u8> {
    let mut bytes = Vec::new();
    let summary = Kinds::builtin().convert(&[input], &mut bytes, options).unwrap();
    assert_eq!(summary.byte_len, bytes.len() as u64);
    assert!(summary.warnings.is_empty());
    bytes
}

fn content(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

fn reopen(bytes: Vec<u8>) -> File {
    zt_convert::open_source(Memory::new(bytes)).unwrap()
}

/// Files of the official writer with at most one metadata, because it randomises the order of more.
const OFFICIAL: [&str; 6] =
    ["empty_tensors", "many", "model_tied", "names", "no_tensors", "torch_dtypes"];

#[test]
fn files_of_the_official_writer_come_back_byte_for_byte() {
    for name in OFFICIAL {
        let path = data(name).with_extension("safetensors");
        let original = fs::read(&path).unwrap();
        let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
        for write in [WriteOptions::new(), WriteOptions::new().zstd(3)] {
            let mut options = ConvertOptions::new(ZT);
            options.write = write;
            let ours = reopen(to(&options, input.clone()));
            assert_eq!(ours.kind(), ZT);
            assert_eq!(content(&ours), content(input.file()), "{name}");
            let theirs = to(&ConvertOptions::new(SAFETENSORS), ours.into());
            assert!(theirs == original, "{name}");
        }
    }
}

#[test]
fn other_files_come_back_with_equal_tensors_and_attributes() {
    let names =
        ["extra_field", "misaligned", "numpy_dtypes", "padded_header", "pretty_header", "unsorted"];
    for name in names {
        let path = data(name).with_extension("safetensors");
        let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
        let ours = reopen(to(&ConvertOptions::new(ZT), input.clone()));
        let theirs = reopen(to(&ConvertOptions::new(SAFETENSORS), ours.into()));
        assert_eq!(content(&theirs), content(input.file()), "{name}");
        assert_eq!(theirs.attributes().unwrap(), input.file().attributes().unwrap(), "{name}");
    }
}

#[test]
fn a_sharded_set_becomes_one_file() {
    let path = data("sharded/model.safetensors.index.json");
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    assert_eq!(input.paths().len(), 4);
    let whole = reopen(to(&ConvertOptions::new(SAFETENSORS), input.clone()));
    assert_eq!(content(&whole), content(input.file()));
}

#[test]
fn threads_do_not_change_the_bytes() {
    let path = data("many.safetensors");
    let input = zt_convert::Kinds::builtin().open(&path, OpenOptions::new()).unwrap();
    for zstd in [false, true] {
        let written = |threads| {
            let mut options = ConvertOptions::new(ZT);
            options.write = WriteOptions::new().threads(threads);
            if zstd {
                options.write = options.write.zstd(3);
            }
            to(&options, input.clone())
        };
        assert!(written(1) == written(2));
    }
}

#[test]
fn converting_a_converted_file_gives_the_same_file() {
    let first =
        to(&ConvertOptions::new(ZT), zt_convert::open(data("many.safetensors")).unwrap().into());
    let second = to(&ConvertOptions::new(ZT), reopen(first.clone()).into());
    assert!(first == second);
}
