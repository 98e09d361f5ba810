//! GGUF files, of llama.cpp and ggml, read and written as tensors.
//!
//! ```text
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! | "GGUF" | version | tensors | pairs | pairs: key,  | tensors: name,| padding | data of the  |
//! |        | u32     | u64     | u64   | type, value  | shape, type,  |         | tensors, each|
//! |        |         |         |       |              | offset        |         | padded       |
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! ```
//!
//! Versions 1, 2 and 3 are read, in either byte order; the version's bytes show the order. In
//! version 1, counts, lengths and dimensions are u32. Offsets count from the first byte of the data.
//! The data begins at a multiple of the alignment: the pair `general.alignment`, or 32.
//!
//! The rules are llama.cpp's. A header that breaks a rule refuses the whole file, because it no
//! longer states reliably which bytes belong to which tensor.
//!
//! Plain types become `dense`. Quantized types keep their blocks as `gguf.<type>/1`, see
//! `spec/formats/gguf.md`. The pairs become the file's attributes. `gguf.types` holds their order and
//! types, so that a converted file can be restored byte for byte.
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
