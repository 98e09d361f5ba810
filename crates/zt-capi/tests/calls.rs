//! Calls in any order over files of the corpus, by the body of the fuzz target.
#![cfg(all(feature = "all-kinds", feature = "zstd"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod body;

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|it| it != "json" && it != "md") {
            found.push(path);
        }
    }
}

/// A hundred calls on each file, decided by its place in the list.
#[test]
fn no_order_of_calls_panics() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/corpus"), &mut paths);
    paths.sort();
    let mut state = 1u64;
    let mut count = 0;
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        if bytes.len() > 1 << 16 {
            continue;
        }
        let mut input = vec![200];
        for _ in 0..200 {
            // Numerical Recipes' generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Most arguments are small.
            input
                .push(u8::try_from(state >> 33 & if state >> 63 == 0 { 15 } else { 255 }).unwrap());
        }
        input.extend(bytes);
        body::calls(&input);
        count += 1;
    }
    assert!(count > 1000, "{count}");
}
