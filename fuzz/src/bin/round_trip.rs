//! See `zt_conformance::fuzz::round_trip`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::round_trip(bytes));
