//! SLM1: the values of real files, names for their hashes, and the codes of broken files.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use zt::{DType, ErrorKind, File, Memory, OpenOptions};
use zt_foreign::{FileKind, InputOptions, Names, Probe};
use zt_slm1::{SLM1, Slm1};

/// The files of a folder of the corpus.
fn files(folder: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus/foreign");
    let entries = fs::read_dir(corpus.join("slm1").join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "slm")).collect()
}

fn named(name: &str) -> Vec<u8> {
    let mut all = files("valid").into_iter().chain(files("invalid"));
    fs::read(all.find(|path| path.file_stem().unwrap() == name).unwrap()).unwrap()
}

fn open(bytes: Vec<u8>, options: impl Into<InputOptions>) -> zt::Result<File> {
    let source = Box::new(Memory::new(bytes));
    Ok(Slm1.open_source(source, &options.into())?.into_file())
}

#[test]
fn tensors_have_the_values_of_the_ground_truth_under_their_names() {
    let mut tensors = 0;
    for path in files("valid") {
        let truth: Json =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let truths = truth["tensors"].as_array().unwrap();
        let name = |truth: &Json| truth["name_not_in_file"].as_str().unwrap().to_owned();
        let names: Names = truths.iter().map(name).collect();
        let options = InputOptions::from(OpenOptions::new().strict(true)).names(names);
        let bytes = fs::read(&path).unwrap();
        assert!(Slm1.recognise(&Probe::new(&Memory::new(bytes.clone())).unwrap()).unwrap());
        let file = open(bytes, options).unwrap();
        // One more has the bytes of the tokenizer, if there is one.
        let tensors_of = file.names().filter(|name| *name != "tokenizer");
        assert_eq!((file.kind(), tensors_of.count()), (SLM1, truths.len()));
        assert!(file.verify(&zt::VerifyOptions::new()).unwrap().is_ok());
        for truth in truths {
            let tensor = file.tensor(&name(truth)).unwrap();
            let shape: Vec<u64> = serde_json::from_value(truth["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{}", path.display());
            let dense = tensor.to_dense().unwrap();
            let dense = dense.to_dtype(DType::F32, file.registry()).unwrap();
            let (values, _) = dense.elements().bytes.as_chunks();
            let first = truth["first_values_f32"].as_array().unwrap();
            for (value, truth) in values.iter().zip(first) {
                let value = f32::from_le_bytes(*value);
                assert_eq!(value, truth.as_f64().unwrap() as f32, "{}", path.display());
            }
            tensors += 1;
        }
    }
    assert!(tensors > 50, "{tensors}");
}

#[test]
fn a_tensor_without_a_known_name_is_listed_by_its_hash() {
    let file = open(named("q8_0_extremes"), InputOptions::new()).unwrap();
    assert!(file.get("tensor_2ffb728dfae53b05").is_some());
}

#[test]
fn a_broken_file_is_refused_by_the_code_of_its_rule() {
    for (name, code) in [
        ("header_107_bytes", "truncated"),
        ("magic_slm2", "header"),
        ("version_2", "version"),
        ("header_length_107", "header"),
        ("tokenizer_past_end", "bounds"),
        ("tensor_count_huge", "bounds"),
        ("data_offset_misaligned", "alignment"),
        ("data_offset_past_end", "bounds"),
        ("duplicate_hash", "duplicate-name"),
    ] {
        let error = open(named(name), InputOptions::new()).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, code), "{name}: {error}");
    }
}

#[test]
fn a_broken_tensor_is_a_fault_of_its_own() {
    for (name, code) in [
        ("dtype_4", "dtype"),
        ("rank_5", "shape-size-mismatch"),
        ("dim_zero", "shape-size-mismatch"),
        ("f32_length_short", "shape-size-mismatch"),
        ("payload_cut", "bounds"),
        ("q8_0_no_scales", "missing-component"),
        ("payloads_overlap", "overlap"),
    ] {
        let file = open(named(name), InputOptions::new()).unwrap();
        let entries = file.entries();
        let fault = entries.iter().find_map(|entry| entry.fault()).unwrap();
        assert_eq!(fault.code(), code, "{name}: {fault}");
    }
}

/// Strict readers refuse every file of the folder. Others list the object that is at fault.
#[test]
fn every_invalid_file_is_noticed() {
    for path in files("invalid") {
        let bytes = fs::read(&path).unwrap();
        let strict = open(bytes.clone(), OpenOptions::new().strict(true));
        assert!(strict.is_err(), "{}", path.display());
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_noticed() {
    let bytes = named("mixed_dtypes");
    // The last bytes are padding.
    for len in (0..bytes.len() - 64).step_by(7) {
        let cut = open(bytes[..len].to_vec(), OpenOptions::new().strict(true));
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::Malformed, "{len}");
    }
}
