#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod dialects;
mod fault;
mod find;
mod in_dialect;
mod model;
mod objects;
mod settings;
mod suspects;
mod targets;
mod values;
mod weight;

pub use dialects::{Dialect, Dialects};
pub use find::{Quantized, find};
pub use in_dialect::{TARGETS, unscaled_blocks};
pub use model::{Model, Shape};
pub use objects::stored;
pub use settings::Settings;
pub use values::codes::Codes;
pub use values::packing::Packing;
pub use values::weight::Formula;
pub use weight::Weight;
