//! What holds for every file: what is written is read, from anywhere, on any number of threads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its files are small"
)]

use std::io::Write;

use proptest::prelude::*;
use zt::{
    Compression, DType, Dense, DigestAlgorithm, File, OpenOptions, VerifyOptions, WriteOptions,
};
use zt_conformance::cbor::{map, text, uint};
use zt_conformance::digest;
use zt_conformance::draft::{Draft, Item};
use zt_conformance::fuzz::assert_same;
use zt_conformance::observe::observe;
use zt_conformance::strategies;
use zt_conformance::written::{NewFile, Options};

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back_value_for_value(file in strategies::file()) {
        file.assert_is(&file.write(1).unwrap());
    }

    #[test]
    fn the_same_calls_give_the_same_bytes_on_any_number_of_threads(file in strategies::file()) {
        let bytes = file.write(1).unwrap();
        for threads in [1, 2, 3] {
            prop_assert!(file.write(threads).unwrap() == bytes, "{} threads", threads);
        }
    }

    #[test]
    fn attributes_of_every_kind_survive(attributes in strategies::attributes()) {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        writer.set_attributes(attributes.clone()).unwrap();
        writer.finish().unwrap();
        prop_assert_eq!(File::from_bytes(bytes).unwrap().attributes().unwrap(), Some(attributes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_map_a_file_and_memory_show_the_same(file in strategies::file()) {
        let bytes = file.write(2).unwrap();
        let mut on_disk = tempfile::NamedTempFile::new().unwrap();
        on_disk.write_all(&bytes).unwrap();
        let memory = observe(File::from_bytes(bytes));
        prop_assert!(memory.is_clean());
        prop_assert_eq!(&memory, &observe(File::open(on_disk.path())));
        // SAFETY: the file is this test's own, and nothing changes it.
        let map = unsafe { zt::Map::open(on_disk.path()) }.unwrap();
        prop_assert_eq!(&memory, &observe(OpenOptions::new().open_source(map)));
    }

    /// A file that is copied object by object says the same.
    #[test]
    fn a_copy_of_a_file_is_the_file(file in strategies::file()) {
        let bytes = file.write(1).unwrap();
        let read = File::from_bytes(bytes.clone()).unwrap();
        let mut copy = Vec::new();
        let options = file.options.write_options();
        let mut writer = options.to_writer(&mut copy).unwrap();
        if let Some(attributes) = read.attributes().unwrap() {
            writer.set_attributes(attributes).unwrap();
        }
        for (name, _) in &file.objects {
            let tensor = read.tensor(name).unwrap();
            writer.copy(name, &tensor).unwrap();
        }
        writer.finish().unwrap();
        file.assert_is(&copy);
        prop_assert_eq!(observe(Ok(read)).content, observe(File::from_bytes(copy)).content);
    }
}

/// More than a batch of frames, and a last one that is not whole.
#[test]
fn frames_of_large_components_do_not_depend_on_threads() {
    let content: Vec<u32> = (0..5_000_003u32).map(|at| at / 7 % 1000).collect();
    let write = |threads| {
        let mut bytes = Vec::new();
        let mut writer =
            WriteOptions::new().zstd(1).threads(threads).to_writer(&mut bytes).unwrap();
        let shape = [content.len() as u64];
        writer.add("ramp", &Dense::from_slice(&shape, &content).unwrap()).unwrap();
        writer.add("again", &Dense::from_slice(&shape, &content).unwrap()).unwrap();
        writer.finish().unwrap();
        bytes
    };
    let bytes = write(1);
    assert!(bytes == write(2) && bytes == write(3));
    assert!(bytes.len() < content.len());
    let file = File::from_bytes(bytes).unwrap();
    assert!(*file.tensor("ramp").unwrap().values::<u32>().unwrap() == *content);
    assert!(file.tensor("again").unwrap().to_vec::<u32>().unwrap() == content);
}

/// One object of each way to be stored, all of them with a digest.
fn small_file(compression: Compression) -> (NewFile, Vec<u8>) {
    let object = |shape: &[u64], bytes: &[u8]| zt::NewObject {
        shape: shape.to_vec().into(),
        format: "dense".into(),
        attributes: None,
        components: vec![(
            "data".into(),
            zt::Elements::new(zt::DType::U8, zt::Buffer::try_from_slice(bytes).unwrap()),
        )],
    };
    let file = NewFile {
        attributes: None,
        objects: vec![
            ("zeros".to_owned(), object(&[80], &[0; 80])),
            ("text".to_owned(), object(&[3, 5], b"fifteen bytes..")),
            ("scalar".to_owned(), object(&[], &[200])),
        ],
        options: Options {
            digest: Some(DigestAlgorithm::Crc32c),
            compression,
            alignment: None,
            deduplicate: false,
            planes: None,
        },
    };
    let bytes = file.write(1).unwrap();
    (file, bytes)
}

/// Spec: §2.1. A file that ends early is refused wherever it ends.
#[test]
fn every_truncation_is_refused() {
    for compression in [Compression::None, Compression::Zstd(3)] {
        let (_, bytes) = small_file(compression);
        for len in 0..bytes.len() {
            let error = File::from_bytes(bytes[..len].to_vec()).unwrap_err();
            assert_eq!(error.kind(), zt::ErrorKind::Malformed, "{len}: {error}");
        }
    }
}

/// Whatever a flipped bit in the manifest or the trailer does, no component of a sound object reads
/// as other bytes.
#[test]
fn no_bit_of_the_manifest_changes_what_is_read() {
    for compression in [Compression::None, Compression::Zstd(3)] {
        let (file, bytes) = small_file(compression);
        let read = File::from_bytes(bytes.clone()).unwrap();
        let data = read.data_region().unwrap();
        let contents: Vec<_> = file
            .objects
            .iter()
            .map(|(_, object)| zt_conformance::observe::Content::of(&object.components[0].1.bytes))
            .collect();
        for at in (0..8).chain(data.end() as usize..bytes.len()) {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let seen = observe(File::from_bytes(flipped));
                let sound = seen.objects.values().filter(|it| it.fault.is_none());
                let components = sound.flat_map(|object| object.components.values());
                for component in components {
                    let Ok(content) = &component.content else {
                        continue;
                    };
                    assert!(contents.contains(content), "byte {at}, bit {bit}: {seen:?}");
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_of_a_component_is_a_digest_mismatch() {
    for compression in [Compression::None, Compression::Zstd(3)] {
        let (file, bytes) = small_file(compression);
        let read = File::from_bytes(bytes.clone()).unwrap();
        for (name, _) in &file.objects {
            let span = read.tensor(name).unwrap().component("data").unwrap().blob.span;
            for at in span.offset() as usize..span.end() as usize {
                for bit in 0..8 {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    let flipped = File::from_bytes(flipped).unwrap();
                    let error = flipped.tensor(name).unwrap().bytes("data").unwrap_err();
                    assert_eq!(error.code(), "digest-mismatch", "byte {at}, bit {bit}");
                    assert_eq!(error.object(), Some(name.as_str()));
                    let report = flipped.verify(&zt::VerifyOptions::default()).unwrap();
                    assert_eq!(report.problems.len(), 1);
                }
            }
        }
    }
}

/// Only strict verification looks between blobs. Spec: §4.
#[test]
fn every_flipped_bit_of_the_padding_is_found_by_strict_verification() {
    let (_, bytes) = small_file(Compression::None);
    let read = File::from_bytes(bytes.clone()).unwrap();
    let spans: Vec<_> = read
        .entries()
        .iter()
        .map(|entry| entry.object().unwrap().components[0].1.blob.span)
        .collect();
    let data = read.data_region().unwrap();
    let is_padding = |at: &u64| !spans.iter().any(|span| (span.offset()..span.end()).contains(at));
    for at in (data.offset()..data.end()).filter(is_padding) {
        let mut flipped = bytes.clone();
        flipped[at as usize] ^= 0x10;
        let seen = observe(File::from_bytes(flipped));
        assert!(seen.is_clean());
        let codes: Vec<&str> = seen.strict_problems.iter().map(|p| p.code.as_str()).collect();
        assert_eq!(codes, ["padding"], "byte {at}");
    }
}

/// Of a right table, and of damage to it, to a chunk and to the key. Spec: §6.1.
#[test]
fn a_plain_reader_judges_tables_of_chunk_digests_as_ours() {
    for algorithm in [DigestAlgorithm::Crc32c, DigestAlgorithm::Sha256] {
        let mut bytes = Vec::new();
        let options = WriteOptions::new().chunk_digests(Some(algorithm));
        let mut writer = options.to_writer(&mut bytes).unwrap();
        let values = vec![7u8; (1 << 20) + 1];
        let tensor = Dense::from_slice(&[values.len() as u64], &values).unwrap();
        writer.add("w", &tensor).unwrap();
        writer.finish().unwrap();
        let read = File::from_bytes(bytes.clone()).unwrap();
        let blob = read.tensor("w").unwrap().component("data").unwrap().blob.clone();
        let table = blob.chunks.unwrap().span;
        let key = bytes.windows(9).position(|text| text == b"zt.chunks");
        let places = [blob.span.offset(), table.offset(), table.end() - 1];
        let places = places.into_iter().map(|at| at as usize);
        assert_same(&bytes, zt::Limits::default());
        for at in places.chain(key) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_same(&damaged, zt::Limits::default());
        }
    }
}

/// The table is wrong, so a reader that uses it finds damage. Spec: §6.1.
#[test]
fn a_table_whose_key_takes_more_than_256_bytes_is_passed_over() {
    let zeros = vec![0; (1 << 20) + 1];
    for (filler, is_used) in [(0, true), (204, true), (205, false)] {
        let mut table = vec![
            (text("offset"), uint(64)),
            (text("length"), uint(8)),
            (text("digest"), text(digest(DigestAlgorithm::Crc32c, &[0; 8]))),
        ];
        if filler > 0 {
            table.push((text("filler"), text("x".repeat(filler))));
        }
        let table = map(&table);
        assert_eq!(table.len() <= 256, is_used, "{}", table.len());
        let item = Item::dense(&[zeros.len() as u64], DType::U8, &zeros);
        let item = item.change("data", |part| part.set("zt.chunks", table));
        let bytes = Draft::v1_2().with("w", item).build();
        assert_same(&bytes, zt::Limits::default());
        let report = File::from_bytes(bytes).unwrap();
        let report = report.verify(&VerifyOptions::new()).unwrap();
        assert_eq!(report.is_ok(), !is_used);
    }
}
