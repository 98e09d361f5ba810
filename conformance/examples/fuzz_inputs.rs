//! The inputs that fuzzing has kept, out of their archives and into them.
//!
//! ```text
//! fuzz_inputs unpack FOLDER    every input as FOLDER/TARGET/NAME, and what fuzzing of repairs begins with
//! fuzz_inputs pack FOLDER      files of every FOLDER/TARGET, short and long, into the archives
//! ```
#![allow(clippy::unwrap_used, reason = "a tool of developers")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use zt_conformance::corpus::files_below;
use zt_conformance::fuzz::{BODIES, damaged};
use zt_conformance::{hash, inputs};

/// Of each target, spread evenly over their lengths where there are more.
const MOST: usize = 600;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["unpack", folder] => unpack(Path::new(folder)),
        ["pack", folder] => pack(Path::new(folder)),
        _ => eprintln!("usage: fuzz_inputs unpack|pack FOLDER"),
    }
}

fn unpack(folder: &Path) {
    for (target, _) in BODIES {
        let folder = folder.join(target);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in inputs::of(target) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
    for (_, bytes) in damaged() {
        fs::write(folder.join("repair").join(name_of(&bytes)), bytes).unwrap();
    }
}

/// Of its content, so that no input is there twice.
fn name_of(bytes: &[u8]) -> String {
    hash(zt::DigestAlgorithm::Sha256, bytes)[..16].to_owned()
}

fn pack(folder: &Path) {
    fs::create_dir_all(inputs::folder()).unwrap();
    for (target, _) in BODIES {
        let read = |path: PathBuf| fs::read(path).unwrap();
        let mut files: Vec<Vec<u8>> =
            files_below(&folder.join(target)).into_iter().map(read).collect();
        files.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        files.dedup();
        let step = files.len().div_ceil(MOST).max(1);
        let kept: Vec<_> = files.into_iter().step_by(step).collect();
        if kept.is_empty() {
            continue;
        }
        let named = |bytes: Vec<u8>| (name_of(&bytes), bytes);
        let kept: Vec<_> = kept.into_iter().map(named).collect();
        let packed = inputs::pack(&kept);
        println!("{target:<14}{:>5} inputs{:>9} bytes", kept.len(), packed.len());
        fs::write(inputs::folder().join(format!("{target}.tar.zst")), packed).unwrap();
    }
}
