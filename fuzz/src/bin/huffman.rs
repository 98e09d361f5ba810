//! See `zt_conformance::fuzz::huffman`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| zt_conformance::fuzz::huffman(bytes));
