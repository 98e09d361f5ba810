#![doc = include_str!("../README.md")]
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
