//! The files of `conformance/data/seal` are what `spec/seal.md` says. `UPDATE_GOLDEN=1` writes them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use common::{model, pattern, sealed};
use zt_convert::Kinds;
use zt_seal::{Contents, Files, Seal, SealOptions, Share, seal, write_parity};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/seal").join(name)
}

#[track_caller]
fn expect(name: &str, bytes: &[u8]) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(data(name), bytes).unwrap();
    }
    assert!(fs::read(data(name)).unwrap() == bytes, "{name} differs");
}

#[test]
fn leaves_of_some_lengths() {
    let dir = tempfile::tempdir().unwrap();
    let lens = [0, 1, 1023, 1 << 20, (1 << 20) + 1, 2 << 20, 3_500_000, 5 << 20];
    let mut lines = Vec::new();
    for byte_len in lens {
        let name = byte_len.to_string();
        fs::write(dir.path().join(&name), pattern(byte_len)).unwrap();
        let contents = Contents::of_file(&name);
        let files = Files::local(dir.path());
        let made = seal(&Kinds::builtin(), &files, &contents, &SealOptions::new()).unwrap();
        let file = &made.seal.files[0];
        let hex = |sum: &[u8]| {
            sum.iter().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").unwrap();
                hex
            })
        };
        let leaves =
            (0..file.leaf_count()).map(|at| format!("\"{}\"", hex(file.leaf(at).unwrap())));
        let leaves = leaves.collect::<Vec<_>>().join(", ");
        let (sha256, blake3) = (hex(&file.sha256), hex(&file.blake3));
        lines.push(format!(
            "  {{\"size\": {byte_len}, \"sha256\": \"{sha256}\", \"blake3\": \"{blake3}\", \"leaves\": [{leaves}]}}"
        ));
        assert_eq!(file.blake3, *blake3::hash(&pattern(byte_len)).as_bytes());
    }
    expect("leaves.json", format!("[\n{}\n]\n", lines.join(",\n")).as_bytes());
}

#[test]
fn the_seal_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path());
    let made = sealed(dir.path());
    assert_eq!(made.warnings, []);
    let bytes = made.seal.to_bytes().unwrap();
    expect("model.seal", &bytes);
    assert_eq!(Seal::from_bytes(&bytes).unwrap(), made.seal);
    let paths: Vec<&str> = made.seal.files.iter().map(|file| file.path.as_str()).collect();
    let expected = [
        "config.json",
        "empty.txt",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer/vocab.txt",
    ];
    assert_eq!(paths, expected);
    let [only] = &made.seal.models[..] else { panic!("{:?}", made.seal.models) };
    assert_eq!(only.path, "model.safetensors.index.json");
    let names: Vec<&str> = only.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(made.seal.files_of(only), [2, 3, 4]);
    // `zt hash` prints these identities.
    let input = Kinds::builtin().open(dir.path(), zt::OpenOptions::new()).unwrap();
    let hash = input.file().hash(&zt::HashOptions::new()).unwrap();
    assert_eq!(only.content, hash.content);
    for (name, object) in hash.objects {
        let tensor = only.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        assert_eq!(Some(tensor.identity), object.unwrap().identity, "{name}");
    }
}

#[test]
fn any_number_of_threads_makes_one_seal() {
    let dir = tempfile::tempdir().unwrap();
    model(dir.path());
    let kinds = Kinds::builtin();
    let contents = Contents::of_folder(&kinds, dir.path(), None).unwrap();
    let of = |threads: usize| {
        let options = SealOptions::new().threads(threads);
        seal(&kinds, &Files::local(dir.path()), &contents, &options).unwrap().seal
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn the_parity_of_three_files() {
    let dir = tempfile::tempdir().unwrap();
    for (name, len) in [("a", 3000), ("b", 1000), ("c", 10)] {
        fs::write(dir.path().join(name), pattern(len)).unwrap();
    }
    let made = sealed(dir.path());
    expect("parity.seal", &made.seal.to_bytes().unwrap());
    let path = dir.path().join("p");
    let share = Share::millionths(500_000).unwrap();
    let (files, options) = (Files::local(dir.path()), SealOptions::new());
    write_parity(&files, &made.seal, share, &path, false, &options).unwrap();
    expect("parity.seal.parity", &fs::read(&path).unwrap());
}
