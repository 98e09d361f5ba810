//! `cargo bench -p zt-benches --bench planes`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn planes(c: &mut Criterion) {
    common::measure(c, "planes");
}

criterion_group!(benches, planes);
criterion_main!(benches);
