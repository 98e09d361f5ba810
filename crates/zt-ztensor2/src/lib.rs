#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cbor;
mod footer;
mod manifest;
mod object;
mod overlap;
mod profiles;
mod read;
mod seekable;
mod shards;
mod violation;

pub use read::{ZT2, ZTensor2};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};
