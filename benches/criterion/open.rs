//! `cargo bench -p zt-benches --bench open`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn open(c: &mut Criterion) {
    common::measure(c, "open");
}

criterion_group!(benches, open);
criterion_main!(benches);
