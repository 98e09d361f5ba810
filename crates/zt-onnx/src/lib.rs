//! The tensors of ONNX models.
//!
//! ```text
//! ModelProto
//! +------------+-----------+----------+-------------------------------------------+------------+
//! | ir_version | producer, | graph 7: | nodes 1, initializers 5, sparse ones 15,  | opset 8,   |
//! | 1          | ... 2-6   | length   | inputs, outputs, ...                      | metadata 14|
//! +------------+-----------+----------+-------------------------------------------+------------+
//! ```
//!
//! A model is one message of Protocol Buffers, which has no magic: fields in any order, each with
//! a number and a length. The reader walks through it once, and keeps only the tensors and the spans
//! of their values. `raw_data` is a range of the file; values in typed fields are decoded when they
//! are read; external data are ranges of other files.
//!
//! A location of external data is a path below the folder of the model. A link is followed if its
//! target is in that folder. If the model itself is a link, as in a cache of downloads, the target may
//! also be in the folder of the model's target. No other file is ever opened.
//!
//! Reference: `onnx.proto`, of ONNX 1.23 (IR version 14).
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
