//! Every file of `conformance/corpus/foreign/safetensors` behaves as its JSON requires.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(feature = "safetensors")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{ErrorKind, File, HashOptions, Memory, OpenOptions, Signature};
use zt_convert::{Kinds, SAFETENSORS};

/// A case: its name, its JSON, and the file to open.
struct Case {
    name: String,
    truth: Json,
    path: PathBuf,
}

fn cases() -> Vec<Case> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign/safetensors");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let truth: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let path = match truth["entry"].as_str() {
            Some(entry) => folder.join(entry),
            None => path.with_extension("safetensors"),
        };
        cases.push(Case { name, truth, path });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(cases.len(), 76);
    cases
}

/// Without those that a reader may refuse or read: their objects are `optional`.
fn cases_that(expect: &str) -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.truth["expect"] == expect && case.truth["optional"].is_null());
    cases
}

fn names_of(object: &Json) -> BTreeSet<&str> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn check_objects(case: &Case, file: &File) {
    let name = &case.name;
    let hashes = file.hash(&HashOptions::default()).unwrap();
    for (object, truth) in case.truth["objects"].as_object().unwrap() {
        let tensor = file.tensor(object).unwrap_or_else(|error| panic!("{name}: {error}"));
        let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
        assert_eq!(tensor.shape(), shape, "{name}: {object}");
        let data = tensor.component("data").unwrap();
        assert_eq!(data.dtype.unwrap().as_str(), truth["dtype"], "{name}: {object}");
        let signature = Signature::of(tensor.object());
        let found = file.registry().value_type(tensor.format(), &signature);
        let expected = truth["type"].as_str().or(truth["dtype"].as_str());
        assert_eq!(found.as_deref(), expected, "{name}: {object}");
        let (_, hash) = hashes.objects.iter().find(|(name, _)| name == object).unwrap();
        let (role, bytes) = &hash.as_ref().unwrap().components[0];
        assert_eq!(role, "data");
        let hex: String = bytes.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, truth["sha256"], "{name}: {object}");
    }
    let attributes = file.attributes().unwrap().unwrap_or_default();
    for (key, value) in case.truth["attributes"].as_object().unwrap() {
        let found = attributes.get(key).and_then(|value| value.as_str());
        assert_eq!(found, value.as_str(), "{name}: {key}");
    }
}

#[test]
fn files_of_real_writers_read_as_their_json_requires() {
    for case in cases_that("read") {
        let file = zt_convert::Kinds::builtin()
            .open(&case.path, OpenOptions::new().strict(true))
            .map(zt_convert::Input::into_file);
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(file.kind(), SAFETENSORS);
        let names: BTreeSet<&str> = file.names().collect();
        assert_eq!(names, names_of(&case.truth["objects"]), "{}", case.name);
        check_objects(&case, &file);
        assert!(file.verify(&Default::default()).unwrap().is_ok(), "{}", case.name);
        assert!(file.warnings().is_empty());
    }
}

#[test]
fn broken_files_are_refused_with_their_rule() {
    let cases = cases_that("reject");
    assert_eq!(cases.len(), 57);
    for case in cases {
        let error = zt_convert::open(&case.path).expect_err(&case.name);
        let expected = match case.name.as_str() {
            // An empty file is no file of any kind.
            "bad_empty_file" => "unknown-kind",
            "sharded_absent_tensor" => "header",
            name if name.starts_with("sharded") => "path",
            _ if error.message().starts_with("truncated: ") => "truncated",
            _ => "header",
        };
        assert_eq!(error.code(), expected, "{}: {error}", case.name);
        assert!(error.path().is_some());
        let forced = zt_convert::Kinds::builtin()
            .open(&case.path, zt_convert::InputOptions::from(&OpenOptions::new()).kind(SAFETENSORS))
            .map(zt_convert::Input::into_file)
            .unwrap_err();
        // An empty file is no file of any kind.
        let (codes, kind) = match case.name.as_str() {
            "bad_empty_file" => (&["unknown-kind"][..], ErrorKind::Unsupported),
            _ => (&["header", "truncated", "path"][..], ErrorKind::Malformed),
        };
        assert!(codes.contains(&forced.code()), "{}: {forced}", case.name);
        assert_eq!(forced.kind(), kind);
    }
}

#[test]
fn memory_and_files_agree() {
    for case in cases().into_iter().filter(|case| case.truth["entry"].is_null()) {
        let bytes = fs::read(&case.path).unwrap();
        let kind = Kinds::builtin().detect(&Memory::new(&bytes)).unwrap();
        let in_memory = zt_convert::open_source(Memory::new(bytes));
        match zt_convert::open(&case.path) {
            Ok(file) => {
                assert_eq!(kind, Some(SAFETENSORS));
                let in_memory = in_memory.unwrap();
                let hash = |file: &File| file.hash(&HashOptions::default()).unwrap().content;
                assert_eq!(hash(&file), hash(&in_memory));
            }
            Err(error) => {
                let other = in_memory.unwrap_err();
                if kind.is_none() {
                    // Only a path has an extension, which shows the kind.
                    assert_eq!(other.code(), "unknown-kind", "{}", case.name);
                    continue;
                }
                assert_eq!((error.code(), error.offset()), (other.code(), other.offset()));
            }
        }
    }
}
