//! Seals that break a rule are refused. Spec: seal.md §2.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{model, sealed};
use zt::{Attributes, Value};
use zt_seal::Seal;

fn sample() -> Vec<u8> {
    let path = "../../conformance/data/seal/model.seal";
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], message: &str) {
    let error = Seal::from_bytes(bytes).unwrap_err();
    assert_eq!(error.code(), "seal");
    assert!(error.to_string().contains(message), "{error}");
}

/// The sample, changed as a value: the maps of the seal and of a file.
#[track_caller]
fn changed(file: usize, change: impl Fn(&mut Attributes), message: &str) {
    let root = Value::from_cbor(&sample(), 16).unwrap();
    let mut root = root.as_map().unwrap().clone();
    let mut files = root.get("files").unwrap().as_array().unwrap().to_vec();
    let mut map = files[file].as_map().unwrap().clone();
    change(&mut map);
    files[file] = map.into();
    root.insert("files", files);
    refused(&root.to_cbor().unwrap(), message);
}

#[test]
fn other_bytes_are_no_seal() {
    refused(b"", "not a seal");
    refused(b"GGUF", "not a seal");
    let sample = sample();
    Seal::from_bytes(&sample).unwrap();
    for cut in [6, 20, sample.len() / 2, sample.len() - 1] {
        refused(&sample[..cut], "");
    }
    refused(&[&sample[..], b"\0"].concat(), "not well-formed");
}

#[test]
fn every_flipped_bit_is_refused_or_is_in_a_sum_that_nothing_else_binds() {
    let sample = sample();
    let before = Seal::from_bytes(&sample).unwrap();
    for at in 0..sample.len() {
        let mut bytes = sample.clone();
        bytes[at] ^= 1;
        let Ok(seal) = Seal::from_bytes(&bytes) else { continue };
        // A path, a sha256, a digest of a tensor or of the content: the seal is another one, and is sound.
        assert_ne!(seal, before);
        for (file, old) in seal.files.iter().zip(&before.files) {
            assert!(file.byte_len == old.byte_len || file.leaf_count() == old.leaf_count());
        }
    }
}

#[test]
fn a_file_that_contradicts_itself_is_refused() {
    let text = |text: &'static str| move |map: &mut Attributes| drop(map.insert("path", text));
    for path in ["/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b", "", "a/"] {
        changed(0, text(path), "refused");
    }
    changed(0, text("zzz"), "not sorted");
    changed(1, text("config.json"), "not sorted");
    changed(0, text("model.safetensors.index.json/x"), "");
    changed(2, |map| drop(map.insert("size", 1u64 << 40)), "leaves for the");
    changed(2, |map| drop(map.insert("size", u64::MAX)), "");
    changed(2, |map| drop(map.insert("blake3", vec![0; 32])), "do not give its root");
    changed(2, |map| drop(map.insert("sha256", vec![0; 31])), "sha256");
    changed(2, |map| drop(map.insert("leaves", vec![0; 33])), "leaves");
    changed(2, |map| drop(map.remove("leaves")), "leaves for the");
    changed(2, |map| drop(map.insert("mode", 420u64)), "unknown fields");
}

#[test]
fn places_lie_within_their_files() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path());
    let seal = sealed(dir.path()).seal;
    for (file, offset, byte_len) in [(9, 0, 1), (0, 0, 3), (2, u64::MAX, 1), (2, 1 << 40, 1)] {
        let mut seal = seal.clone();
        let Some(span) = zt::Span::new(offset, byte_len) else { continue };
        let place = &mut seal.models[0].tensors[0].places[0];
        (place.file, place.span) = (file, span);
        assert_eq!(seal.to_bytes().unwrap_err().code(), "seal");
    }
}

#[test]
fn a_path_that_is_a_folder_of_another_is_refused() {
    let mut seal = Seal::default();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), "").unwrap();
    let file = sealed(dir.path()).seal.files.remove(0);
    for path in ["a", "a!", "a/b"] {
        let mut file = file.clone();
        file.path = path.to_owned();
        seal.files.push(file);
    }
    let error = seal.to_bytes().unwrap_err();
    assert!(error.to_string().contains("a folder in it is a file"), "{error}");
}

#[test]
fn a_name_finds_its_file() {
    let seal = Seal::from_bytes(&sample()).unwrap();
    let find = |path: &str| seal.find(Path::new(path)).map(|at| seal.files[at].path.clone());
    assert_eq!(find("/x/y/config.json").unwrap(), "config.json");
    assert_eq!(find("vocab.txt").unwrap(), "tokenizer/vocab.txt");
    assert_eq!(find("m/tokenizer/vocab.txt").unwrap(), "tokenizer/vocab.txt");
    assert_eq!(find("other.json").unwrap_err().code(), "misuse");
}
