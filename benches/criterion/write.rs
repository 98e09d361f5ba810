//! `cargo bench -p zt-benches --bench write`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn write(c: &mut Criterion) {
    common::measure(c, "write");
}

criterion_group!(benches, write);
criterion_main!(benches);
