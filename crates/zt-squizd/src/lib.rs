//! SQUIZD files, version 1.0. Reading is complete; writing is an experiment.
//!
//! ```text
//! 0        256           256 + 32 L
//! +--------+-------------+-----------------+--------------+------------+--------------+
//! | header | layer index | weights of each | scale tables | draft head | CoreML model |
//! |        | L entries   | layer, masks    | SCZT ...     | EGDH       | ANLX         |
//! +--------+-------------+-----------------+--------------+------------+--------------+
//! ```
//!
//! No program is known to write complete files, and the specification leaves much open.
//! `spec/squizd.md` has our choices. A choice that another reader may make differently gives a warning.
//!
//! A fault of the header or of the index refuses the file. Any other fault belongs to one object: the
//! index leads to every layer, and a broken tensor is `layers.{layer_idx}.{n}`. Later tensors of that
//! layer are not listed, because only the length of the broken one would show where they begin.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attributes;
mod block;
mod column;
mod contents;
mod header;
mod index;
mod layer;
mod names;
mod outgoing;
mod pairs;
mod read;
mod scales;
mod section;
mod violation;
mod write;

pub use read::{SQUIZD, Squizd};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
