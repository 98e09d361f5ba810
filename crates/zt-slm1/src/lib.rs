//! SLM1 files, version 1, as tensors.
//!
//! ```text
//! 0        108 or more
//! +--------+-----------+-----------+-----------------------------------+
//! | header | tokenizer | directory | values and scales of each tensor, |
//! |        |           | 64 n      | on a grid of 64                   |
//! +--------+-----------+-----------+-----------------------------------+
//! ```
//!
//! Offsets lead to all parts after the header; the order above is the packer's. Tensors have hashes
//! in place of names. `spec/slm1.md` has the rules and the open questions.
//!
//! Files are not written: the runtime checks a checksum of the whole file with an unpublished algorithm.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod entry;
mod header;
mod names;
mod read;
mod violation;

pub use read::{SLM1, Slm1};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
