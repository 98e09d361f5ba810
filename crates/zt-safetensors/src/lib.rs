//! safetensors files, read and written as tensors.
//!
//! ```text
//! 0         8                 8 + n
//! +---------+-----------------+-------------------------------------------+
//! | n: u64  | header: JSON,   | data of the tensors, without gaps, in the |
//! | LE      | n bytes         | order of their offsets                    |
//! +---------+-----------------+-------------------------------------------+
//! ```
//!
//! The header maps names to `{"dtype", "shape", "data_offsets": [start, end]}` and `__metadata__` to
//! texts. Offsets count from the first byte of the data.
//!
//! The rules come from the official library, version 0.8, and from its README. A file that breaks
//! a rule is refused as a whole: its header no longer states reliably which bytes belong to which tensor.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod dtype;
mod header;
mod kind;
#[cfg(feature = "safetensors")]
mod tensor_view;
mod violation;
mod write;

pub use dtype::Dtype;
pub use header::{Header, Tensor};
pub use kind::{SAFETENSORS, SafeTensors};
#[cfg(feature = "safetensors")]
pub use tensor_view::TensorView;
pub use violation::SafetensorsViolation;
pub use write::{TensorInfo, layout};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
