//! See `zt_conformance::fuzz::gguf_set`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::gguf_set(bytes));
