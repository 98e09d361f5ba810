#![doc = include_str!("../README.md")]
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
