//! `cargo bench -p zt-benches --bench rows`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn rows(c: &mut Criterion) {
    common::measure(c, "rows");
    common::measure(c, "columns");
}

criterion_group!(benches, rows);
criterion_main!(benches);
