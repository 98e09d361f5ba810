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
//! No program is known to write complete files: the specification is all there is, and it leaves
//! much open. What is open is settled in `spec/squizd.md`; whatever a reading rests on that another
//! reader may see differently is a warning.
//!
//! A fault of the header or of the index refuses the file. Beyond those, the index leads to every
//! layer, so a broken tensor is the fault of one object, `layers.{layer_idx}.{n}`; tensors behind it
//! in its layer are not seen, because only its length says where they begin.
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
use zt_foreign::{FileKind, FileWriter, Input, Job, Merged, Opening, Probe, Sink};

/// SQUIZD files, version 1.0.
pub const SQUIZD: Kind = Kind::new("squizd");

/// The kind: recognises, opens and, if it has a writer, writes such files.
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
        recognise(probe)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Squizd {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        write::write(merged, sink, job)
    }
}

/// Attributes of quantized objects: what the tables have beside the scales that count.
const TENSOR_ID: &str = "squizd.tensor_id";
const TENSOR_SCALE: &str = "squizd.tensor_scale";
const TENSOR_ZERO: &str = "squizd.tensor_zero";
/// And the length of sub-blocks that have no scales.
const SUB_BLOCK_LEN: &str = "squizd.sub_block_len";

fn recognise(probe: &Probe<'_>) -> Result<bool> {
    Ok(probe.head().starts_with(&header::MAGIC))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
