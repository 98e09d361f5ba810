//! The end of a file is missing: the message says so first, and how much there is.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "default")]

use std::fs;
use std::path::Path;

use zt::Memory;

/// The error of the first `len` bytes of a file: of the file, or of its first faulty object.
fn cut(path: &str, len: impl Fn(usize) -> usize) -> zt::Error {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut bytes = fs::read(conformance.join(path)).unwrap();
    bytes.truncate(len(bytes.len()));
    match zt_convert::open_source(Memory::new(bytes)) {
        Err(error) => error,
        Ok(file) => {
            let entries = file.entries();
            let mut faults = entries.iter().filter_map(|entry| entry.fault());
            faults.next().unwrap().clone()
        }
    }
}

#[test]
fn a_cut_file_is_truncated_whatever_its_kind() {
    let files = [
        "data/two-moons.safetensors",
        "corpus/foreign/gguf/v3_little.gguf",
        "corpus/foreign/npy/version_1.npy",
        "corpus/foreign/npz/stored.npz",
        "corpus/torch/lightning.pt",
        "corpus/torch/whole_module_legacy.pt",
        "corpus/foreign/h5/latest_groups.h5",
        "corpus/foreign/onnx/raw_dtypes.onnx",
        "corpus/foreign/zt2/canonical.zt2",
        "corpus/valid/attributes_maps.zt",
    ];
    for path in files {
        for percent in [25, 50, 75, 95] {
            let error = cut(path, |len| len * percent / 100);
            let message = error.message();
            assert!(message.contains("truncated"), "{path} {percent}: {message}");
            // No length of more than six digits: the files are small.
            let numbers = message.split(|c: char| !c.is_ascii_digit());
            assert!(numbers.map(str::len).all(|digits| digits < 7), "{message}");
        }
    }
}

#[test]
fn the_message_says_how_much_is_there() {
    for (path, len, code, message) in [
        (
            "data/two-moons.safetensors",
            3000,
            "truncated",
            "truncated: 2360 of 5532 bytes of data are there",
        ),
        (
            "data/two-moons.safetensors",
            100,
            "truncated",
            "truncated: 92 of 632 bytes of the header are there",
        ),
        (
            "corpus/foreign/npy/version_1.npy",
            150,
            "shape-size-mismatch",
            "truncated: 22 of 40 bytes of data are there",
        ),
        (
            "corpus/foreign/h5/latest_groups.h5",
            6000,
            "truncated",
            "truncated: 6000 of 20563 bytes of the file are there",
        ),
    ] {
        let error = cut(path, |_| len);
        assert_eq!((error.code(), error.message()), (code, message.to_owned()));
    }
}
