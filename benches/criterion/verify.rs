//! `cargo bench -p zt-benches --bench verify`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn verify(c: &mut Criterion) {
    common::measure(c, "verify");
}

criterion_group!(benches, verify);
criterion_main!(benches);
