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

/// The numbers of llama.cpp for the types that most values of a file have (`enum llama_ftype`). K-quants have several
/// numbers each, for different mixtures.
const FILE_TYPES: [(&str, u32); 9] = [
    ("f32", 0),
    ("f16", 1),
    ("gguf.q4_0/1", 2),
    ("gguf.q4_1/1", 3),
    ("gguf.q8_0/1", 7),
    ("gguf.q5_0/1", 8),
    ("gguf.q5_1/1", 9),
    ("gguf.iq4_nl/1", 25),
    ("bf16", 32),
];

/// The key of a file's type in the metadata of GGUF.
pub const FILE_TYPE: &str = "general.file_type";

/// The value of [`FILE_TYPE`] for a file of these matrices: of each, the name of the dtype or the format of its blocks,
/// and the number of values. `None` if most values have a type without a number of its own.
///
/// ```
/// assert_eq!(zt_ggml::file_type([("gguf.q8_0/1", 4096), ("f32", 64)]), Some(7));
/// ```
pub fn file_type<'t>(matrices: impl IntoIterator<Item = (&'t str, u64)>) -> Option<u32> {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    for (name, count) in matrices {
        let sum = counts.entry(name).or_default();
        *sum = sum.saturating_add(count);
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    FILE_TYPES.iter().find(|(name, _)| *name == most).map(|(_, number)| *number)
}

/// The same registry with the formats of all block types.
pub fn register(registry: Registry) -> Registry {
    let formats = BLOCK_TYPES.iter().map(BlockFormat);
    formats.fold(registry, Registry::with_format)
}
