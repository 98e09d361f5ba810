//! The end of a file is missing: the message says so first, and how much there is.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "default")]

use std::fs;
use std::path::Path;

use zt::{File, Memory, OpenOptions};
use zt_convert::{ConvertOptions, Input, InputOptions, Kinds, ZT};

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

fn of_corpus(path: &str) -> Vec<u8> {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    fs::read(conformance.join(path)).unwrap()
}

/// The shape and all bytes of an object; `None` if it cannot be read.
fn read(file: &File, name: &str) -> Option<(Vec<u64>, Vec<Vec<u8>>)> {
    let tensor = file.get(name)?.ok()?;
    let roles = tensor.object().components.iter().map(|(role, _)| role);
    let bytes = roles.map(|role| tensor.bytes(role).ok().map(|bytes| bytes.to_vec()));
    Some((tensor.shape().to_vec(), bytes.collect::<Option<_>>()?))
}

/// The first bytes of a file, opened by what is there.
fn open_cut(bytes: &[u8], len: usize) -> zt::Result<File> {
    let cut = Memory::new(bytes[..len].to_vec());
    let options = InputOptions::new().truncated(true);
    Kinds::builtin().open_source(cut, options).map(Input::into_file)
}

#[test]
fn what_is_whole_in_a_cut_file_is_read_and_nothing_else() {
    for (path, least) in [
        ("data/two-moons.safetensors", 7),
        ("corpus/foreign/gguf/quant_mixed.gguf", 6),
        ("corpus/foreign/npz/stored.npz", 30),
        ("corpus/foreign/npz/compressed.npz", 20),
        ("corpus/foreign/npz/zip64.npz", 1),
        ("corpus/foreign/npz/streamed.npz", 1),
        ("corpus/foreign/npz/streamed_deflate.npz", 1),
        ("corpus/foreign/pt/state_dict.pt", 10),
        ("corpus/torch/lightning.pt", 4),
        ("corpus/torch/script_sparse.pt", 2),
        ("corpus/foreign/pt/legacy_adam.pt", 4),
    ] {
        let bytes = of_corpus(path);
        let whole = zt_convert::open_source(Memory::new(bytes.clone())).unwrap();
        let mut most = 0;
        for len in (1..bytes.len()).rev().step_by(1 + bytes.len() / 100) {
            let Ok(file) = open_cut(&bytes, len) else {
                continue;
            };
            let mut readable = 0;
            for name in file.names() {
                let Some(found) = read(&file, name) else {
                    continue;
                };
                let expected = read(&whole, name);
                assert_eq!(Some(found), expected, "{path} {len}: {name}");
                readable += 1;
            }
            most = most.max(readable);
            // Only padding and the comment of an archive can be missing without harm.
            let Some(truncated) = file.truncated() else {
                assert_eq!(readable, whole.len(), "{path} {len}");
                continue;
            };
            assert_eq!(truncated.offset(), Some(len as u64));
            let problems = file.verify(&Default::default()).unwrap().problems;
            assert_eq!(problems[0].code(), "truncated", "{path} {len}");
            assert!(file.warnings().iter().any(|it| it.code == "truncated"));
        }
        assert!(most >= least, "{path}: {most} objects");
    }
}

#[test]
fn a_cut_file_is_opened_on_request_only() {
    let bytes = of_corpus("corpus/foreign/npz/stored.npz");
    let cut = || Memory::new(bytes[..9300].to_vec());
    let error = zt_convert::open_source(cut()).unwrap_err();
    assert_eq!(error.code(), "truncated");
    let strict = InputOptions::new().truncated(true);
    let strict = strict.open(OpenOptions::new().strict(true));
    let error = Kinds::builtin().open_source(cut(), strict).unwrap_err();
    assert_eq!(error.code(), "truncated");
}

#[test]
fn a_cut_file_is_converted_only_without_its_damaged_objects() {
    // Its arrays are whole, and others behind them are unknown.
    let bytes = of_corpus("corpus/foreign/npz/stored.npz");
    let inputs = [Input::from(open_cut(&bytes, 9300).unwrap())];
    let options = ConvertOptions::new(ZT);
    let error = zt_convert::Kinds::builtin().convert(&inputs, Vec::new(), &options).unwrap_err();
    assert_eq!(error.code(), "truncated");
    let options = options.skip_damaged(true);
    let summary = zt_convert::Kinds::builtin().convert(&inputs, Vec::new(), &options).unwrap();
    assert_eq!((summary.objects, summary.damaged.len()), (27, 0));
    assert!(summary.warnings.iter().any(|it| it.code == "truncated"));
}

/// `torch.jit.save` writes the byte order after the data.
#[test]
fn values_of_an_unknown_byte_order_are_not_read() {
    let bytes = of_corpus("corpus/torch/script_sparse.pt");
    for (len, what) in [(400, "data.pkl"), (1300, "byteorder")] {
        let error = open_cut(&bytes, len).unwrap_err();
        let message = error.message();
        assert_eq!(error.code(), "truncated");
        assert!(message.contains(what), "{message}");
    }
}
