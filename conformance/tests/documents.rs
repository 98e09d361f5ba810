//! Numbers that pages have of the corpus, against what is there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use zt_conformance::fuzz::BODIES;
use zt_conformance::{corpus, inputs};

/// Files of the corpus below a folder that the text describes. A set's index is a part of its set.
fn truths(folder: &str) -> usize {
    let files = corpus::files_below(&corpus::folder().join("corpus").join(folder));
    let names = files.iter().filter_map(|path| path.to_str());
    let truths = names.filter(|name| name.ends_with(".json") && !name.ends_with(".index.json"));
    truths.count()
}

/// As people read it: `6,698`.
fn grouped(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

#[track_caller]
fn says(page: &str, expected: &str) {
    let text = fs::read_to_string(corpus::folder().join("..").join(page)).unwrap();
    assert!(text.contains(expected), "{page} does not say: {expected}");
}

#[test]
fn the_page_of_the_corpus_counts_its_files() {
    let page = "conformance/corpus/README.md";
    let single = ["valid", "invalid", "lenient", "writers"];
    for folder in single.into_iter().chain(["dcp", "foreign", "hdf5", "torch", "pickle"]) {
        says(page, &format!("| `{folder}/` | {} |", truths(folder)));
    }
    let [valid, invalid, lenient] = ["own/valid", "own/invalid", "own/lenient"].map(truths);
    says(page, &format!("| {valid}, {invalid}, {lenient} |"));
}

#[test]
fn the_page_of_other_kinds_counts_its_files() {
    let page = "conformance/corpus/foreign/README.md";
    for kind in ["gguf", "h5", "npy", "npz", "onnx", "pt", "safetensors", "zt2"] {
        says(page, &format!("| `{kind}` | {} |", truths(&format!("foreign/{kind}"))));
    }
    for kind in ["squizd", "slm1"] {
        says(page, &format!("`{kind}` ({} files)", truths(&format!("foreign/{kind}"))));
    }
}

#[test]
fn the_page_of_what_was_tried_counts_the_corpus_and_the_inputs() {
    let page = "docs/reliability.md";
    let other = ["classes", "dcp", "foreign", "hdf5", "pickle", "torch"].map(truths).iter().sum();
    let ours = truths("") - other;
    let other = grouped(other);
    says(page, &format!("| {ours} `.zt` files and {other} of other kinds,"));
    let kept = BODIES.iter().map(|(target, _)| inputs::of(target).len());
    let kept = grouped(kept.sum());
    says(page, &format!("| inputs that fuzzing kept, replayed by every test run | {kept} |"));
    says(page, &format!("| fuzz targets | {}:", BODIES.len()));
}
