//! Files of many objects, which are decoded some at a time and not kept.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use std::collections::HashMap;

use zt::container::ContainerWriter;
use zt::foreign::{FileBuilder, Kind};
use zt::manifest::Manifest;
use zt::{
    Attributes, Blob, Component, DType, DigestAlgorithm, Entry, File, Memory, Object, OpenOptions,
    Report, Span, VerifyOptions,
};

/// More than a window of `File::verify`.
const COUNT: u64 = 20_000;

/// The file, and the same objects in one that is built in memory.
fn files(objects: Vec<(String, Object)>) -> [File; 2] {
    let mut container = ContainerWriter::new(Vec::new()).unwrap();
    container.begin_blob(64, None).unwrap();
    container.write(&data()).unwrap();
    container.end_blob().unwrap();
    let manifest =
        Manifest { attributes: None, objects: objects.clone(), extra: Attributes::new() };
    let bytes = container.finish(&manifest.to_cbor().unwrap()).unwrap();
    let file = File::from_bytes(bytes.clone()).unwrap();
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    // In the same order: it decides between objects that begin at one offset.
    let mut objects: HashMap<String, Object> = objects.into_iter().collect();
    for name in file.names() {
        builder.object(name, objects.remove(name).unwrap(), source);
    }
    let built = builder.build().unwrap();
    [file, built]
}

fn data() -> Vec<u8> {
    (0..COUNT * 64).map(|at| (at / 3 % 251) as u8).collect()
}

fn part(at: u64, byte_len: u64) -> Component {
    let span = Span::new(64 + at * 64, byte_len).unwrap();
    Component::new(DType::U8, Blob::raw(span))
}

/// An object in each 64 bytes. Their names are in another order than their data. Some have a digest,
/// which is wrong for some of these.
fn objects() -> Vec<(String, Object)> {
    let data = data();
    let one = |at: u64| {
        let mut component = part(at, 4);
        if !at.is_multiple_of(3) {
            let bytes = &data[at as usize * 64..][..if at % 7919 == 1 { 5 } else { 4 }];
            component.blob.digest = Some(DigestAlgorithm::Crc32c.digest(bytes).unwrap());
        }
        let name = format!("{:05}", at * 7 % COUNT);
        let object = Object::new([4], "dense").with_component("data", component);
        (name, object)
    };
    (0..COUNT).map(one).collect()
}

fn list(report: &Report) -> Vec<String> {
    let problems = report.problems.iter();
    let problems = problems.map(|error| format!("{} {error}", error.code()));
    let warnings = report.warnings.iter().map(ToString::to_string);
    let unverified = report.unverified.iter();
    let unverified = unverified.map(|(object, role)| format!("{object}/{role}"));
    let sums = format!("{} {} {}", report.objects, report.components, report.bytes);
    let all = problems.chain(warnings).chain(unverified);
    all.chain(report.unchecked.clone()).chain([sums]).collect()
}

#[test]
fn what_verifying_finds_does_not_depend_on_where_windows_end() {
    let spanning = Object::new([COUNT * 64], "dense").with_component("data", part(0, COUNT * 64));
    let far = Object::new([], "strange")
        .with_component("a", part(3, 4))
        .with_component("b", part(COUNT - 1, 4));
    let empty = Object::new([0], "dense").with_component("data", part(10_000, 0));
    for added in [
        vec![],
        vec![("spanning".to_owned(), spanning)],
        vec![("far".to_owned(), far), ("empty".to_owned(), empty)],
    ] {
        let mut objects = objects();
        objects.extend(added);
        let [file, built] = files(objects);
        let expected = list(&built.verify(&VerifyOptions::new()).unwrap());
        assert!(expected[0].starts_with("digest-mismatch"), "{}", expected[0]);
        for threads in [1, 3] {
            let report = file.verify(&VerifyOptions::new().threads(threads));
            assert!(list(&report.unwrap()) == expected, "{threads} threads");
        }
    }
}

#[test]
fn objects_that_are_not_kept_count_as_those_that_are() {
    let [file, built] = files(objects());
    for file in [file, built] {
        let passed = file.decoded_len();
        let entries = file.entries();
        assert!(entries[1].name() == "00007", "{}", entries[1].name());
        assert_eq!((passed, file.decoded_len()), (COUNT * 4, COUNT * 4));
    }
}

/// The order is found without decoding plain objects, and by decoding those that are kept.
#[test]
fn the_order_of_files_of_any_form_is_the_same_with_and_without_keeping() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus");
    let mut folders = vec![std::path::PathBuf::from(corpus)];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else {
                continue;
            };
            let [Ok(passed), Ok(kept)] = [bytes.clone(), bytes].map(File::from_bytes) else {
                continue;
            };
            // The first call finds the order, and the second uses it.
            let warnings = passed.warnings();
            let order: Vec<&str> = passed.entries().iter().map(Entry::name).collect();
            let expected: Vec<&str> = kept.entries().iter().map(Entry::name).collect();
            assert_eq!(order, expected, "{}", path.display());
            assert_eq!(warnings, kept.warnings(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 50, "{files}");
}

#[test]
fn entries_are_shown_in_the_order_of_the_data() {
    for file in files(objects()) {
        let add = |names: &mut Vec<String>, entry: &Entry<'_>| names.push(entry.name().to_owned());
        let mut names = Vec::new();
        file.fold_entries(add, |some| names.extend(some));
        let entries = file.entries();
        assert!(names.iter().eq(entries.iter().map(Entry::name)));
    }
}
