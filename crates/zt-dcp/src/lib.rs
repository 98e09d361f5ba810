#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod element;
mod item;
mod kind;
mod metadata;
mod pickle;
mod tensor;
mod violation;

pub use kind::{DCP, Dcp};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
