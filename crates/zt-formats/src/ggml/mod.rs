//! `gguf.<type>/1`: arrays in the quantized blocks of ggml, as GGUF files store them.
//!
//! One format for each [`BlockType`], all with the same rules: a component `data` of `u8`, in which
//! every row is whole blocks. Blocks are kept as they are; their dense value is f32, bit for bit
//! what `gguf-py` gives. Source: `spec/formats/gguf.md`.

mod blocks;
mod codebook;
mod format;
mod grid;
#[rustfmt::skip]
mod grids;
mod k;
mod kernel;
mod simple;
mod types;

pub use blocks::Blocks;
pub use format::BlockFormat;
pub use types::{BLOCK_TYPES, BlockType};
