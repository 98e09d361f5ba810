#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attributes;
mod block;
mod column;
mod contents;
mod header;
mod index;
mod layer;
mod names;
mod outgoing;
mod pairs;
mod read;
mod scales;
mod section;
mod violation;
mod write;

pub use read::{SQUIZD, Squizd};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
