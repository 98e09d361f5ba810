//! See `zt_conformance::fuzz::proof`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::proof(bytes));
