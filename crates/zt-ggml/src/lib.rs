//! The object formats `gguf.<type>/1`: arrays in the quantized blocks of ggml, as GGUF files store
//! them.
//!
//! Place in the graph: above `zt-formats`, below `zt`.
//!
//! Each [`BlockType`] has a format, and all have the same rules: the component `data` is `u8`, and
//! every row is whole blocks. Blocks are stored unchanged. Their dense value is f32, bit for bit as
//! `gguf-py` gives it. Source: `spec/formats/gguf.md`.
//!
//! ```
//! use zt_formats::Registry;
//!
//! let registry = zt_ggml::register(Registry::builtin());
//! assert!(registry.format("gguf.q4_k/1").is_some());
//! ```
//!
//! [`BlockType::quantize`] makes blocks of the plain types, bit for bit as `gguf-py` does.
//!
//! Invariants: this crate does no I/O, and knows no files.
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

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
