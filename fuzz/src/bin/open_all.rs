//! See `zt_conformance::fuzz::open_all`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::open_all(bytes));
