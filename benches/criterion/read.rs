//! `cargo bench -p zt-benches --bench read`.
#![allow(missing_docs, clippy::panic, reason = "criterion's entry points")]

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn read(c: &mut Criterion) {
    common::measure(c, "read");
}

criterion_group!(benches, read);
criterion_main!(benches);
