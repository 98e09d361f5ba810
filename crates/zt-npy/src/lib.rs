#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod array;
mod descr;
mod fault;
mod header;
mod literal;
mod npy;
mod npz;
mod write;

pub use npy::{NPY, Npy};
pub use npz::{NPZ, Npz};
pub use write::NpyHeader;
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
