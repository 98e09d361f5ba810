//! Files that are cut while they are open: read by position, they give errors; no signal comes.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs::OpenOptions;
use std::io::Read as _;
use std::path::Path;

use common::sample;
use zt::{
    ErrorKind, File, FileSource, HashOptions, Slice, Source, Tensor, Verify, VerifyOptions,
    WriteOptions,
};

fn cut(path: &Path, byte_len: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(byte_len).unwrap();
}

/// Every call that reads bytes, each with what it said.
fn ask(file: &File) -> Vec<(String, zt::Result<()>)> {
    let mut said = Vec::new();
    let mut say = |name: &str, call: &str, result: zt::Result<()>| {
        said.push((format!("{call} of {name}"), result));
    };
    let all: Vec<Tensor<'_>> = file.names().map(|name| file.tensor(name).unwrap()).collect();
    for tensor in &all {
        let name = tensor.name();
        for (role, _) in tensor.components() {
            say(name, "bytes", tensor.bytes(role).map(drop));
            say(name, "elements", tensor.elements(role).map(drop));
            let len = usize::try_from(tensor.decoded_len(role).unwrap()).unwrap();
            say(name, "read_into", tensor.read_into(role, &mut vec![0; len]));
            let read = |tensor: &Tensor<'_>| {
                let (mut reader, mut piece) = (tensor.reader(role)?, [0; 500]);
                while reader.read(&mut piece)? > 0 {}
                Ok(())
            };
            say(name, "reader", read(tensor));
            let found = file.read_many(&[(*tensor, role)]).remove(0);
            say(name, "read_many", found.map(drop));
        }
        say(name, "to_dense", tensor.to_dense().map(drop));
        say(name, "slice", tensor.slice(&[Slice::ALL]).map(drop));
    }
    for (tensor, dense) in all.iter().zip(file.to_dense_many(&all)) {
        say(tensor.name(), "to_dense_many", dense.map(drop));
    }
    let report = file.verify(&VerifyOptions::default()).unwrap();
    for error in report.problems {
        say("a problem", "verify", Err(error));
    }
    for (name, hash) in file.hash(&HashOptions::default()).unwrap().objects {
        say(&name, "hash", hash.map(drop));
    }
    said
}

#[test]
fn a_file_that_is_cut_while_it_is_open_gives_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    for write in [WriteOptions::new(), WriteOptions::new().zstd(1)] {
        let bytes = sample(write);
        for verify in [Verify::OnRead, Verify::Never] {
            for at in [0, 8, 64, 70, bytes.len() / 2, bytes.len() - 1] {
                std::fs::write(&path, &bytes).unwrap();
                let options = zt::OpenOptions::new().verify(verify);
                let (file, read) = (options.open(&path).unwrap(), options.open(&path).unwrap());
                assert!(ask(&read).iter().all(|(_, result)| result.is_ok()));
                cut(&path, at as u64);
                for file in [file, read] {
                    let said = ask(&file);
                    for (call, result) in &said {
                        let Err(error) = result else { continue };
                        assert_eq!(error.kind(), ErrorKind::Io, "{call}, cut at {at}: {error}");
                        assert!(error.object().is_some(), "{call}: {error}");
                    }
                    // Of an object that lies behind the cut, nothing can be read.
                    let span = file.tensor("ramp").unwrap().component("data").unwrap().blob.span;
                    let is_gone = span.end() > at as u64;
                    for (call, result) in said.iter().filter(|(call, _)| call.ends_with("ramp")) {
                        assert_eq!(result.is_err(), is_gone, "{call}, cut at {at}");
                    }
                }
            }
        }
    }
}

/// Longer, shorter and rewritten with other bytes: what is read is the file's, or an error.
#[test]
fn a_file_that_is_replaced_in_place_is_caught_by_its_digests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zt");
    let bytes = sample(WriteOptions::new());
    std::fs::write(&path, &bytes).unwrap();
    let file = File::open(&path).unwrap();
    std::fs::write(&path, vec![7; bytes.len() * 2]).unwrap();
    for name in ["ramp", "flags", "graph"] {
        let error = file.tensor(name).unwrap().to_dense().unwrap_err();
        assert_eq!(error.code(), "digest-mismatch", "{name}");
    }
    std::fs::write(&path, &bytes).unwrap();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
}

#[test]
fn the_source_of_a_file_that_is_cut_says_that_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, [5; 1000]).unwrap();
    let source = FileSource::open(&path).unwrap();
    cut(&path, 300);
    assert_eq!(source.byte_len(), 1000, "as it was opened");
    assert!(!source.has_its_length().unwrap());
    let mut buffer = [0; 100];
    source.read_at(200, &mut buffer).unwrap();
    assert_eq!(buffer, [5; 100]);
    for offset in [201, 299, 300, 900, 1000] {
        let error = source.read_at(offset, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{offset}");
    }
}
