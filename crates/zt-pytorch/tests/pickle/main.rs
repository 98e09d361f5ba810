//! Pickles that are written here: those of torch versions that no longer run, and invalid ones.
//! Files that torch wrote are in `conformance`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

mod archive;
mod draft;
mod faults;
mod machine;
mod plain;
mod quantized;
mod sparse;
mod tensors;
mod unknown;
mod values;
