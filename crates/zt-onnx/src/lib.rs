#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attributes;
mod constant;
mod coords;
mod element;
mod external;
mod fault;
mod kind;
mod model;
mod read;
mod tensor;
mod typed;
mod wire;

pub use kind::{ONNX, Onnx};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
