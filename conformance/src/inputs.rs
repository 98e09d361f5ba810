//! Inputs that fuzzing has kept: small files that each reach something no other does.
//!
//! One archive for each target, `fuzz-inputs/TARGET.tar.zst`, which `tar` opens. There are thousands
//! of inputs of a few hundred bytes, many nearly the same: as files they would take 4 KiB each in
//! a working tree and one object each in a repository, and together they are a tenth of their length.

use std::fs;
use std::path::PathBuf;

use crate::corpus;

/// A block of an archive.
const BLOCK: usize = 512;
/// Archives are written once, and read by every test run.
const LEVEL: i32 = 19;

/// The folder of the archives.
#[must_use]
pub fn folder() -> PathBuf {
    corpus::folder().join("fuzz-inputs")
}

/// The inputs of a target with their names; none where it has no archive.
///
/// # Panics
///
/// Where the archive is not one of [`pack`].
#[must_use]
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(packed) = fs::read(folder().join(format!("{target}.tar.zst"))) else {
        return Vec::new();
    };
    let archive = zstd::decode_all(&packed[..]).expect("one that we wrote");
    let mut inputs = Vec::new();
    let mut rest = &archive[..];
    while let Some((header, behind)) = rest.split_at_checked(BLOCK) {
        let text = |field: &[u8]| {
            let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8(field.to_vec()).expect("a name or a number")
        };
        let name = text(&header[..100]);
        if name.is_empty() {
            break;
        }
        let len = usize::from_str_radix(&text(&header[124..136]), 8).expect("a length");
        inputs.push((name, behind[..len].to_vec()));
        rest = &behind[len.next_multiple_of(BLOCK)..];
    }
    inputs
}

/// An archive of inputs, in the order given: the same for the same inputs.
///
/// # Panics
///
/// Where a name is longer than a header has room for.
#[must_use]
pub fn pack(inputs: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in inputs {
        let mut header = [0; BLOCK];
        let mut put =
            |at: usize, text: &str| header[at..][..text.len()].copy_from_slice(text.as_bytes());
        assert!(name.len() < 100);
        put(0, name);
        put(100, "0000644\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", bytes.len()));
        // No clock: the epoch.
        put(136, "00000000000\0");
        put(148, "        ");
        put(156, "0");
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        let sum = format!("{sum:06o}\0 ");
        header[148..156].copy_from_slice(sum.as_bytes());
        archive.extend(header);
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    zstd::encode_all(&archive[..], LEVEL).expect("in memory")
}
