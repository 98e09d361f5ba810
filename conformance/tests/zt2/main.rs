//! Files of zTensor 2.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod encoded;
mod faults;
mod files;

use std::path::PathBuf;

use zt::{File, Memory, VerifyOptions};
use zt_conformance::cbor::Cbor;
use zt_conformance::foreign;
use zt_conformance::zt2::{framed, manifest, part};

fn path(name: &str) -> PathBuf {
    foreign::folder().join("zt2").join(name)
}

fn open(bytes: Vec<u8>) -> zt::Result<File> {
    zt_convert::open_source(Memory::new(bytes))
}

/// The code that refuses the file, else the code of the object's fault, else of the first problem.
fn code(bytes: Vec<u8>) -> String {
    let file = match open(bytes) {
        Ok(file) => file,
        Err(error) => return format!("file {}", error.code()),
    };
    let fault = file.entries().iter().find_map(|entry| entry.fault());
    if let Some(fault) = fault {
        assert!(fault.object().is_some());
        return format!("object {}", fault.code());
    }
    let report = file.verify(&VerifyOptions::default()).unwrap();
    match report.problems.first() {
        Some(problem) => format!("verify {}", problem.code()),
        None => "sound".to_owned(),
    }
}

/// A file whose only blob is `blob`, and whose manifest has one object.
fn one(blob: &[u8], object: Cbor) -> Vec<u8> {
    framed(&[blob], &manifest(&[("t", object)]))
}

/// Two f32 at the first place.
fn pair() -> Cbor {
    part("f32", 4096, 8, &[])
}
