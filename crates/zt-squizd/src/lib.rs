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

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, FileWriter, Input, Opening, Probe};

/// The kind of SQUIZD files.
pub const SQUIZD: Kind = Kind::new("squizd");

/// Recognises, opens and writes SQUIZD files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Squizd;

impl FileKind for Squizd {
    fn kind(&self) -> Kind {
        SQUIZD
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["squizd"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&header::MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

/// Attributes of quantized objects: the values of the tables that are not used as scales.
const TENSOR_ID: &str = "squizd.tensor_id";
const TENSOR_SCALE: &str = "squizd.tensor_scale";
const TENSOR_ZERO: &str = "squizd.tensor_zero";
/// The length of sub-blocks without scales.
const SUB_BLOCK_LEN: &str = "squizd.sub_block_len";

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
