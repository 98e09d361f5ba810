#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cursor;
mod header;
mod metadata;
mod original;
mod pairs;
mod read;
mod set;
mod tensor_type;
mod value_type;
mod violation;
mod write;

pub use read::{GGUF, Gguf};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
