//! The member `squizd`: version 1.0, read, and written as an experiment.
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

use zt::Result;

use crate::detect::Probe;
use crate::member::{Member, SQUIZD};

pub(crate) const MEMBER: Member = Member {
    kind: SQUIZD,
    extensions: &["squizd"],
    recognises,
    open: read::open,
    write: Some(write::write),
};

/// Attributes of quantized objects: what the tables have beside the scales that count.
const TENSOR_ID: &str = "squizd.tensor_id";
const TENSOR_SCALE: &str = "squizd.tensor_scale";
const TENSOR_ZERO: &str = "squizd.tensor_zero";
/// And the length of sub-blocks that have no scales.
const SUB_BLOCK_LEN: &str = "squizd.sub_block_len";

fn recognises(probe: &Probe<'_>) -> Result<bool> {
    Ok(probe.head().starts_with(&header::MAGIC))
}
