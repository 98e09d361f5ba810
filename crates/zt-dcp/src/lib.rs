//! Checkpoints of `torch.distributed.checkpoint` (DCP) as whole tensors. Nothing in them is run.
//!
//! ```text
//! step-1000/.metadata        a pickle: the tensors, their chunks, and where each chunk is
//! step-1000/__0_0.distcp     the items of process 0, one after the other
//! step-1000/__1_0.distcp     the items of process 1
//!
//! item: a zip archive of torch.save, with a chunk of one tensor or a pickled value
//! ```
//!
//! The kind opens `.metadata`, which describes everything. A tensor is made up of its chunks as it is
//! read, so a slice of a large one reads only the files that it meets. Every element must be in exactly one chunk.
//! An item is opened when its values are first read. Listing a checkpoint reads `.metadata` alone.
//!
//! A tensor whose file is missing is listed, and its fault names the file. A value that is not a tensor,
//! such as a learning rate, is left out with the warning `not-tensor`.
//!
//! References: `torch/distributed/checkpoint/metadata.py` and `filesystem.py` of torch 2.15, which
//! reads and writes the same classes since 2.0.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod element;
mod item;
mod kind;
mod metadata;
mod pickle;
mod tensor;
mod violation;

pub use kind::{DCP, Dcp};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
