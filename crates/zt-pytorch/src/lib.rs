#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod archive;
mod arguments;
mod assemble;
mod attribute;
mod budget;
mod deferred;
mod element;
mod fault;
mod flatten;
mod global;
mod key;
mod kind;
mod legacy;
mod numpy;
mod others;
mod pickle;
mod plain;
mod quantized;
mod sparse;
mod tar;
mod tensor;
mod unknown;
mod view;
mod wrapper;

pub use kind::{PICKLE, PYTORCH, PlainPickle, PyTorch};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
