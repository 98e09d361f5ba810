#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod base;
mod formats;

pub use base::*;
pub use formats::*;
pub use half::{bf16, f16};
pub use num_complex::Complex;
/// Types of the layer below that the constructors here take.
pub use zt_manifest::{Attributes, DType, Object, Text, Value};
