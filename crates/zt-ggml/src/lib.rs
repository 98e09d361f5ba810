#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod blocks;
mod codebook;
mod format;
mod grid;
#[rustfmt::skip]
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "the compiler unpacks the grids, and refuses what is out of bounds"
)]
mod grid_tables;
mod k;
mod kernel;
mod levels;
mod quantize;
mod simple;
mod types;

pub use blocks::Blocks;
pub use format::BlockFormat;
pub use types::{BLOCK_TYPES, BlockType};

use zt_formats::Registry;

/// The same registry with the formats of all block types.
pub fn register(registry: Registry) -> Registry {
    let formats = BLOCK_TYPES.iter().map(BlockFormat);
    formats.fold(registry, Registry::with_format)
}
