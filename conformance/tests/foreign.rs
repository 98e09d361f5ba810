//! Every kind of foreign file that is built, over the files of its own libraries. A new kind is one
//! line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use zt_conformance::corpus;
use zt_conformance::foreign::{self, Case};

/// Cases of `corpus/foreign/KIND`; `count` of them, so that none is lost unnoticed.
fn check(kind: &str, count: usize) {
    check_cases(kind, &foreign::cases(kind), count);
}

fn check_cases(kind: &str, cases: &[Case], count: usize) {
    assert_eq!(cases.len(), count, "cases of {kind}");
    let mut wrong = Vec::new();
    for case in cases {
        let problems = case.problems().into_iter();
        wrong.extend(problems.map(|problem| format!("{kind}/{}: {problem}", case.name)));
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

macro_rules! kinds {
    ($($kind:ident: $count:literal,)*) => {$(
        #[test]
        fn $kind() {
            check(stringify!($kind), $count);
        }
    )*};
}

/// More of PyTorch: `corpus/torch/make.py` has what was saved.
#[test]
fn torch() {
    let folder = corpus::folder().join("corpus/torch");
    check_cases("torch", &foreign::cases_in(&folder, "pt"), 14);
}

// The folder's name, and how many cases it has.
kinds! {
    gguf: 84,
    h5: 28,
    npy: 94,
    npz: 32,
    onnx: 18,
    pt: 128,
    safetensors: 76,
    zt2: 14,
}
