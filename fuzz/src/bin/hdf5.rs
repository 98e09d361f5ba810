//! See `zt_conformance::fuzz::hdf5`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::hdf5(bytes));
