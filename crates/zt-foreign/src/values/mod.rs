//! What the elements of a foreign file mean.
//!
//! It must not know: files, kinds.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod meaning;

pub use meaning::Meaning;
