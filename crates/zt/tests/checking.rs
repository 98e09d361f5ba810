//! Verification and the content identity.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{every_source, sample, span_of};
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Attributes, Blob, Component, Csr, DType, Dense, DigestAlgorithm, File, HashOptions, Limits,
    Memory, NewObject, Object, OpenOptions, Planes, Report, Span, ToObject, VerifyOptions,
    WriteOptions, Writer,
};
use zt_manifest::ManifestDigest;

fn verify(file: &File, strict: bool) -> Report {
    let options = VerifyOptions::new().strict(strict);
    file.verify(&options).unwrap()
}

fn codes(report: &Report) -> Vec<&str> {
    report.problems.iter().map(zt::Error::code).collect()
}

#[test]
fn what_we_write_is_strictly_valid() {
    for options in [
        WriteOptions::new(),
        WriteOptions::new().zstd(3),
        WriteOptions::new().digest(Some(DigestAlgorithm::Sha256)).alignment(4096),
    ] {
        for (source, file) in every_source(&sample(options), &OpenOptions::new()) {
            let report = verify(&file.unwrap(), true);
            assert!(report.is_ok(), "{source}: {report:?}");
            assert_eq!((report.objects, report.components), (4, 6), "{source}");
            assert_eq!(report.bytes, 24_000 + 3 + (8 + 16 + 24), "{source}");
            assert!(report.unverified.is_empty());
        }
    }
}

#[test]
fn components_without_a_digest_are_named() {
    let file = File::from_bytes(sample(WriteOptions::new().digest(None))).unwrap();
    let report = verify(&file, false);
    assert!(report.is_ok());
    assert!(report.unverified.contains(&("graph".into(), "indptr".into())));
    assert_eq!(report.unverified.len(), 6);
}

#[test]
fn every_damaged_component_is_found_and_the_rest_is_checked() {
    let mut bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    for (name, role) in [("flags", "data"), ("graph", "indices")] {
        bytes[usize::try_from(span_of(&file, name, role).offset()).unwrap()] ^= 0x80;
    }
    let report = verify(&File::from_bytes(bytes).unwrap(), false);
    assert!(!report.is_ok());
    assert_eq!(codes(&report), ["digest-mismatch", "digest-mismatch"]);
    let objects: Vec<_> = report.problems.iter().map(|problem| problem.object().unwrap()).collect();
    assert_eq!(objects, ["flags", "graph"]);
    assert_eq!(report.components, 6);
}

#[test]
fn digests_of_every_algorithm_are_compared_in_small_blobs_and_large_ones() {
    for algorithm in [
        DigestAlgorithm::Crc32c,
        DigestAlgorithm::Sha256,
        DigestAlgorithm::Other(&common::CHAIN),
        DigestAlgorithm::Other(&common::ADDED),
    ] {
        for (damage, expected) in [(0, &[][..]), (1, &["digest-mismatch"; 2])] {
            let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
            for (name, len) in [("small", 9_u32), ("large", 3 << 20)] {
                let mut bytes = vec![7; len as usize];
                let digest = algorithm.digest(&bytes).unwrap();
                bytes[3] ^= damage;
                let blob =
                    Blob { digest: Some(digest), ..Blob::raw(Span::new(0, len.into()).unwrap()) };
                let source = builder.source(Memory::new(bytes));
                let data = Component::new(DType::U8, blob);
                let object = Object::new([len.into()], "dense").with_component("data", data);
                builder.object(name, object, source);
            }
            let report = verify(&builder.build().unwrap(), true);
            assert_eq!(codes(&report), expected, "{algorithm:?}");
            assert!(report.unverified.is_empty());
        }
    }
}

/// What is off the grid in an old file is read, and is no fault but to who is strict.
#[test]
fn a_remark_is_in_the_report_and_that_on_a_place_a_problem_to_the_strict() {
    let text = |text: &str| [&[0x60 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let pairs = [
        ("name", text("x")),
        ("offset", vec![0x18, 72]),
        ("size", vec![2]),
        ("dtype", text("uint8")),
        ("layout", text("dense")),
        ("shape", vec![0x81, 2]),
        ("encoding", text("raw")),
        ("checksum", text("xyz:1")),
    ];
    let pairs = pairs.map(|(key, value)| [text(key), value].concat());
    let manifest = [&[0x81, 0xA8][..], &pairs.concat()].concat();
    let size = (manifest.len() as u64).to_le_bytes();
    let file = [b"ZTEN0001", &[0; 64][..], &[7, 8], &manifest, &size].concat();
    let file = File::from_bytes(file).unwrap();
    for (strict, problems) in [(false, &[][..]), (true, &["alignment"])] {
        let report = verify(&file, strict);
        let remarks = report.warnings.iter().map(|warning| warning.code);
        let mut remarks: Vec<_> = remarks.collect();
        remarks.sort_unstable();
        assert_eq!(remarks, ["alignment", "unknown-digest"]);
        assert_eq!(codes(&report), problems);
    }
}

/// Only the other components have known lengths.
#[test]
fn beside_a_damaged_component_lengths_that_are_not_said_are_no_fault() {
    let count = 3000;
    let values = vec![1i32; count];
    let indices = vec![0u64; count];
    let indptr: Vec<u64> = (0..=count as u64).collect();
    let graph = Csr::new([count as u64, 3], values, indices, indptr).unwrap();
    let mut bytes = Vec::new();
    let mut writer = WriteOptions::new().zstd(1).to_writer(&mut bytes).unwrap();
    writer.add("graph", &graph).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes.clone()).unwrap();
    let mut object = file.tensor("graph").unwrap().object().clone();
    for (_, component) in &mut object.components {
        assert_eq!(component.blob.encoding, zt::Encoding::Zstd);
        component.blob.decoded_len = None;
    }
    let span = object.components[0].1.blob.span;
    for (damage, expected) in [(0, &[][..]), (1, &["digest-mismatch"])] {
        bytes[usize::try_from(span.end()).unwrap() - 1] ^= damage;
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new(bytes.clone()));
        builder.object("graph", object.clone(), source);
        let report = verify(&builder.build().unwrap(), false);
        assert_eq!(codes(&report), expected);
    }
}

#[test]
fn contents_are_checked_where_there_is_no_digest() {
    let mut bytes = sample(WriteOptions::new().digest(None));
    let file = File::from_bytes(bytes.clone()).unwrap();
    for (name, role) in [("flags", "data"), ("graph", "indices")] {
        bytes[usize::try_from(span_of(&file, name, role).offset()).unwrap()] = 9;
    }
    let report = verify(&File::from_bytes(bytes).unwrap(), false);
    assert_eq!(codes(&report), ["bool-value", "index-value"]);
}

#[test]
fn contents_of_one_object_are_held_to_the_rules_of_its_format() {
    let mut bytes = sample(WriteOptions::new().digest(None));
    let file = File::from_bytes(bytes.clone()).unwrap();
    for name in ["graph", "ramp"] {
        file.tensor(name).unwrap().check_data().unwrap();
    }
    bytes[usize::try_from(span_of(&file, "graph", "indices").offset()).unwrap()] = 9;
    let file = File::from_bytes(bytes).unwrap();
    let error = file.tensor("graph").unwrap().check_data().unwrap_err();
    assert_eq!(error.code(), "index-value");
    assert_eq!((error.object(), error.component()), (Some("graph"), Some("indices")));
    // Values have no rule, and are not read.
    let mut bytes = sample(WriteOptions::new());
    bytes[usize::try_from(span_of(&file, "graph", "values").offset()).unwrap()] ^= 1;
    let file = File::from_bytes(bytes).unwrap();
    file.tensor("graph").unwrap().check_data().unwrap();
    assert!(file.tensor("graph").unwrap().to_dense().is_err());
    // The rules of an unknown format are unknown.
    unknown().tensor("x").unwrap().check_data().unwrap();
}

#[test]
fn an_object_at_fault_is_a_problem_whose_neighbours_are_checked() {
    let mut bytes = sample(WriteOptions::new());
    // The shape of `ramp` loses a row: [60, 100] becomes [59, 100].
    let shape = [0x82, 0x18, 60, 0x18];
    let at = bytes.windows(4).rposition(|window| window == shape);
    bytes[at.unwrap() + 2] = 59;
    ManifestDigest::renew(&mut bytes);
    let file = File::from_bytes(bytes).unwrap();
    for strict in [false, true] {
        let report = verify(&file, strict);
        assert_eq!(codes(&report)[0], "shape-size-mismatch");
        assert_eq!(report.problems[0].object(), Some("ramp"));
        // Its own, one of bools, three of the matrix, one that is empty.
        assert_eq!(report.components, 6);
    }
}

/// A file of one object of an unknown format.
fn unknown() -> File {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new([1u8, 2]));
    let component = Component::new(DType::U8, Blob::raw(Span::new(0, 2).unwrap()));
    let object = Object::new([2], "test.unknown/1").with_component("data", component);
    builder.object("x", object, source);
    builder.build().unwrap()
}

/// Also of a role that a dense object has.
#[test]
fn an_object_of_an_unknown_format_has_no_dense_hash_and_no_fault() {
    let options = HashOptions::new().dense(true);
    let hash = unknown().hash(&options).unwrap();
    assert!(hash.content.is_some() && hash.errors().next().is_none());
    let object = hash.objects[0].1.as_ref().unwrap();
    assert_eq!(object.components.len(), 1);
    assert!(object.dense.is_none() && object.dense_error.is_none());
}

#[test]
fn what_unfolds_to_more_than_the_limit_is_a_problem_of_its_object_alone() {
    let limits = Limits::default().with_decoded_len(1000);
    let options = OpenOptions::new().limits(limits);
    let file = options.open_bytes(sample(WriteOptions::new().zstd(1)));
    let report = verify(&file.unwrap(), false);
    assert_eq!(codes(&report), ["decompression-limit"]);
    assert_eq!(report.problems[0].object(), Some("ramp"));
    // The others were read: three bools, two values and indices, three pointers.
    assert_eq!(report.bytes, 3 + 2 * (4 + 8) + 3 * 8);
}

#[test]
fn only_strictness_minds_bytes_between_components() {
    let mut bytes = sample(WriteOptions::new());
    bytes[13] = 1;
    let file = File::from_bytes(bytes).unwrap();
    assert!(verify(&file, false).is_ok());
    let report = verify(&file, true);
    assert_eq!(codes(&report), ["padding"]);
    assert_eq!(report.problems[0].offset(), Some(13));
}

#[test]
fn bytes_of_an_object_at_fault_are_not_taken_for_padding() {
    let mut bytes = sample(WriteOptions::new());
    let key = b"dtype\x63";
    let at = bytes.windows(6).rposition(|window| window == key).unwrap() + 6;
    bytes[at..at + 3].copy_from_slice(b"f77");
    ManifestDigest::renew(&mut bytes);
    let report = verify(&File::from_bytes(bytes).unwrap(), true);
    assert_eq!(codes(&report), ["dtype"]);
}

fn identity(file: &File) -> [u8; 32] {
    file.hash(&HashOptions::default()).unwrap().content.unwrap()
}

#[test]
fn the_identity_is_of_the_tensors_and_not_of_the_file() {
    let plain = File::from_bytes(sample(WriteOptions::new())).unwrap();
    let packed = WriteOptions::new().zstd(9).digest(None).alignment(8192);
    let packed = File::from_bytes(sample(packed)).unwrap();
    assert_eq!(identity(&plain), identity(&packed));

    // Another order, and attributes of the file.
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let mut names: Vec<&str> = plain.names().collect();
    names.reverse();
    for name in names {
        writer.copy(name, &plain.tensor(name).unwrap()).unwrap();
    }
    let mut attributes = Attributes::new();
    attributes.insert("k", "v");
    writer.set_attributes(attributes).unwrap();
    writer.finish().unwrap();
    assert_eq!(identity(&plain), identity(&File::from_bytes(bytes).unwrap()));
}

#[test]
fn the_identity_changes_with_name_shape_type_and_value() {
    let of = |name: &str, dense: &Dense<'_>| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.add(name, dense).unwrap();
        writer.finish().unwrap();
        identity(&File::from_bytes(bytes).unwrap())
    };
    let all = [
        of("w", &Dense::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap()),
        of("v", &Dense::from_slice(&[4], &[1u8, 2, 3, 4]).unwrap()),
        of("w", &Dense::from_slice(&[2, 2], &[1u8, 2, 3, 4]).unwrap()),
        of("w", &Dense::from_slice(&[4], &[1i8, 2, 3, 4]).unwrap()),
        of("w", &Dense::from_slice(&[4], &[1u8, 2, 3, 5]).unwrap()),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
}

/// The program in `spec/decisions.md` gives the same.
#[test]
fn the_identities_are_those_of_the_definition() {
    let of = |objects: &[(&str, NewObject<'_>)]| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        for (name, object) in objects {
            writer.add(name, object).unwrap();
        }
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        let hash = file.hash(&HashOptions::default()).unwrap().to_string();
        hash.strip_prefix("sha256:").unwrap().to_owned()
    };
    let w = Dense::from_slice(&[2], &[1.0f32, -2.0]).unwrap();
    let b = Dense::from_slice(&[], &[7u8]).unwrap();
    let mut b = b.to_object().unwrap();
    b.attributes.get_or_insert_default().insert("unit", "m");
    let planes = Planes::from_dense(&w).unwrap();
    let (w, planes) = (w.to_object().unwrap(), planes.to_object().unwrap());
    let both = [("w", w.clone()), ("b", b.clone())];
    assert_eq!(of(&[]), NOTHING);
    assert_eq!(of(&[("w", w)]), ONE);
    assert_eq!(of(&both), TWO);
    assert_eq!(of(&[("w", planes), ("b", b)]), TWO);
}

const NOTHING: &str = "a978985dcea52d5f55d546051f3b3d8fb76365da067f1996987c3dd942e6dee5";
const ONE: &str = "55d38eb9400d0e5831984c927418e2d7265703969be51fcdc4b96b1d1977cbe7";
const TWO: &str = "52e4f602e4eabe4ad5b279745de9c54dbb3856aa5809a37b0783956f09841d26";

/// The identity is of what is stored: a value that would not fit anywhere takes nothing from it.
#[test]
fn an_object_without_a_dense_value_has_its_identity() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let huge = zt::Coo::new(vec![1 << 40, 1 << 20], &[1.0f32], &[7, 7]).unwrap();
    writer.add("huge", &huge).unwrap();
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    let mut options = HashOptions::default();
    let stored = file.hash(&options).unwrap();
    assert!(stored.content.is_some() && stored.errors().next().is_none());
    options = options.dense(true);
    let hash = file.hash(&options).unwrap();
    assert_eq!(hash.content, stored.content);
    let (_, object) = &hash.objects[0];
    let object = object.as_ref().unwrap();
    assert_eq!((object.components.len(), &object.dense), (2, &None));
    let error = object.dense_error.as_ref().unwrap();
    assert_eq!(error.code(), "decompression-limit");
    assert_eq!(error.object(), Some("huge"));
    assert_eq!(hash.errors().count(), 1);
}

#[test]
fn an_unreadable_object_leaves_no_identity_and_the_others_their_hashes() {
    let mut bytes = sample(WriteOptions::new());
    let file = File::from_bytes(bytes.clone()).unwrap();
    bytes[usize::try_from(span_of(&file, "flags", "data").offset()).unwrap()] ^= 1;
    let options = HashOptions::new().dense(true);
    let hash = File::from_bytes(bytes).unwrap().hash(&options).unwrap();
    assert_eq!(hash.content, None);
    assert_eq!(hash.errors().next().unwrap().code(), "digest-mismatch");
    assert_eq!(hash.objects.iter().filter(|(_, hash)| hash.is_ok()).count(), 3);
    let (_, graph) = hash.objects.iter().find(|(name, _)| name == "graph").unwrap();
    assert_eq!(graph.as_ref().unwrap().dense.as_ref().unwrap().bytes.byte_len, 24);
}

/// Objects with as many components as the limit allows: every step by place, none by role.
#[test]
fn work_grows_with_the_components_of_an_object_and_not_with_their_square() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for name in 0..60 {
        let name = name.to_string();
        let mut object = writer.begin(&name, &[1], "example.many/1").unwrap();
        for at in 0..zt::Limits::default().components {
            let component = object.component(at.to_string(), zt::DType::U8, None);
            component.unwrap().finish().unwrap();
        }
        let error = object.component("more", zt::DType::U8, None).err().unwrap();
        assert_eq!((error.code(), error.kind()), ("schema", zt::ErrorKind::Limit));
        object.finish().unwrap();
    }
    writer.finish().unwrap();
    let file = File::from_bytes(bytes).unwrap();
    assert!(verify(&file, true).is_ok());
    identity(&file);
    let mut writer = Writer::new(std::io::sink()).unwrap();
    for tensor in file.tensors().map(Result::unwrap) {
        writer.copy(tensor.name(), &tensor).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn what_is_read_next_is_announced_once_and_within_its_component() {
    let values: Vec<u64> = (0..5 << 20).collect();
    let bytes =
        common::written(&Dense::from_slice(&[5 << 20], &values).unwrap(), WriteOptions::new());
    let announced = std::sync::Arc::default();
    let source = common::Announced(bytes, std::sync::Arc::clone(&announced));
    let file = OpenOptions::new().open_source(source).unwrap();
    let component = common::span_of(&file, "x", "data");
    let expect_all_but_the_first_batch = || {
        let mut spans: Vec<zt::Span> = std::mem::take(&mut *announced.lock().unwrap());
        spans.sort_by_key(|span| span.offset());
        let first = spans.first().unwrap().offset();
        assert!(component.offset() < first);
        let last = spans.iter().fold(first, |end, span| {
            assert_eq!(span.offset(), end);
            span.end()
        });
        assert_eq!(last, component.end());
    };
    assert!(verify(&file, false).is_ok());
    expect_all_but_the_first_batch();
    file.tensor("x").unwrap().read_into("data", &mut vec![0; 40 << 20]).unwrap();
    #[cfg(feature = "rayon")]
    expect_all_but_the_first_batch();
}
