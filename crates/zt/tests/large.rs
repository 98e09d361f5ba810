//! Components that are large enough to be read on several cores.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use common::{every_source, span_of};
use zt::{Dense, DigestAlgorithm, Encoding, File, OpenOptions, WriteOptions};

const COUNT: usize = 1_500_000;

fn values() -> Vec<u32> {
    (0..1_500_000u32).map(|value| value / 7).collect()
}

fn file_of(options: WriteOptions, values: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    writer.add("x", &Dense::from_slice(&[COUNT as u64], values).unwrap()).unwrap();
    writer.finish().unwrap();
    bytes
}

fn every_option() -> Vec<(&'static str, WriteOptions)> {
    let raw = WriteOptions::new;
    vec![
        ("raw", raw().digest(None)),
        ("raw crc32c", raw()),
        ("raw sha256", raw().digest(Some(DigestAlgorithm::Sha256))),
        ("zstd", raw().zstd(1).digest(None)),
        ("zstd crc32c", raw().zstd(1)),
        ("zstd sha256", raw().zstd(1).digest(Some(DigestAlgorithm::Sha256))),
    ]
}

#[test]
fn every_source_and_encoding_gives_the_same_values() {
    let values = values();
    for (name, options) in every_option() {
        let bytes = file_of(options, &values);
        for (source, file) in every_source(&bytes, &OpenOptions::new()) {
            let file = file.unwrap();
            let read = file.tensor("x").unwrap().values::<u32>().unwrap();
            assert!(*read == values, "{name}, {source}");
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_a_wrong_digest() {
    let values = values();
    for (name, options) in every_option().into_iter().filter(|(name, _)| name.contains(' ')) {
        let bytes = file_of(options, &values);
        let span = span_of(&File::from_bytes(bytes.clone()).unwrap(), "x", "data");
        let (start, len) = (span.offset() as usize, span.byte_len() as usize);
        for at in [0, 5, len / 3, len / 2, len - 30, len - 1] {
            let mut flipped = bytes.clone();
            flipped[start + at] ^= 4;
            for (source, file) in every_source(&flipped, &OpenOptions::new()) {
                let file = file.unwrap();
                let error = file.tensor("x").unwrap().bytes("data").unwrap_err();
                assert_eq!(error.code(), "digest-mismatch", "{name}, {source}, {at}");
                assert_eq!(error.offset(), Some(span.offset()), "{name}, {source}, {at}");
            }
        }
    }
}

/// The table is a convenience: what frames hold is decided by the frames.
#[test]
fn a_seek_table_that_lies_gives_an_error_or_the_right_values() {
    let values = values();
    let bytes = file_of(WriteOptions::new().zstd(1).digest(None), &values);
    let file = File::from_bytes(bytes.clone()).unwrap();
    assert_eq!(file.tensor("x").unwrap().component("data").unwrap().blob.encoding, Encoding::Zstd);
    let span = span_of(&file, "x", "data");
    let end = span.end() as usize;
    for back in (1..20).chain([25, 33, 41, 57]) {
        let mut changed = bytes.clone();
        changed[end - back] ^= 1;
        for (source, file) in every_source(&changed, &OpenOptions::new()) {
            match file.unwrap().tensor("x").unwrap().values::<u32>() {
                Ok(read) => assert!(*read == values, "{source}, {back}"),
                Err(error) => assert_eq!(error.code(), "zstd", "{source}, {back}"),
            }
        }
    }
}
