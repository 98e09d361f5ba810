//! See `zt_conformance::fuzz::slm1`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::slm1(bytes));
