//! Pickles, written here instruction by instruction: those of older versions of torch that nobody can
//! run any more, and those that are wrong. What torch writes itself is in `conformance`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test fails by panicking"
)]

mod draft;
mod faults;
mod machine;
mod quantized;
mod sparse;
mod tensors;
mod values;
