//! `cargo bench -p zt-benches --bench convert`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn convert(c: &mut Criterion) {
    common::measure(c, "convert");
}

criterion_group!(benches, convert);
criterion_main!(benches);
