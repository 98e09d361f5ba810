//! See `crates/zt-capi/tests/body/mod.rs`.
#![no_main]

#[path = "../../../crates/zt-capi/tests/body/mod.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::calls(bytes));
