//! Rules of SQUIZD and SLM1, and combinations of them, that no file of `corpus/foreign` shows.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

mod slm1;
mod slm1_codes;
mod squizd;
mod squizd_codes;
mod squizd_written;

use zt::{DType, File, Memory, OpenOptions};
use zt_conformance::policy::accepted;
use zt_conformance::squizd::{Squizd, plain};

fn open(bytes: &[u8], strict: bool) -> zt::Result<File> {
    let options = OpenOptions::new().strict(strict);
    zt_convert::Kinds::builtin()
        .open_source(Memory::new(Vec::from(bytes)), &options)
        .map(zt_convert::Input::into_file)
}

/// What plain and strict readers make of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Both,
    PlainOnly,
    Refused,
}

#[track_caller]
fn expect(expected: Verdict, bytes: &[u8], about: &str) {
    let plain = accepted(open(bytes, false), false).is_some();
    let strict = accepted(open(bytes, false), true).is_some();
    let found = match (plain, strict) {
        (true, true) => Verdict::Both,
        (true, false) => Verdict::PlainOnly,
        (false, false) => Verdict::Refused,
        (false, true) => panic!("{about}: taken by strict readers alone"),
    };
    assert_eq!(found, expected, "{about}");
}

/// The values of an object as f32.
fn values(file: &File, name: &str) -> Vec<f32> {
    let dense = file.tensor(name).unwrap().to_dense().unwrap();
    let dense = dense.to_dtype(DType::F32, file.registry()).unwrap();
    let (values, _) = dense.elements().bytes.as_chunks();
    values.iter().copied().map(f32::from_le_bytes).collect()
}

/// A SQUIZD file of one tensor of one value.
fn smallest() -> Squizd {
    Squizd::one(0, vec![plain(&[1], &[1.0])])
}

/// Marks the id of a tensor's sub-block.
const SUB_BLOCK: u64 = 1 << 63;

/// Bytes of a file changed at some place.
fn patched(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}
