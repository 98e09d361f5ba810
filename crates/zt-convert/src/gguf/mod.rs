//! The member `gguf`: models of llama.cpp and its kin, read and written.
//!
//! ```text
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! | "GGUF" | version | tensors | pairs | pairs: key,  | tensors: name,| padding | data of the  |
//! |        | u32     | u64     | u64   | type, value  | shape, type,  |         | tensors, each|
//! |        |         |         |       |              | offset        |         | padded       |
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! ```
//!
//! Versions 1 (whose counts, lengths and dimensions are u32), 2 and 3, in either byte order, which
//! shows in the version. Offsets count from the first byte of the data, which begins at a multiple
//! of the alignment: the pair `general.alignment`, or 32. The rules are those of llama.cpp; a header
//! that breaks one refuses the file, because then nothing says which of its bytes are whose.
//!
//! Plain types become `dense`, quantized ones keep their blocks as `gguf.<type>/1`, see
//! `spec/formats/gguf.md`. The pairs become the file's attributes, and `gguf.types` says their order
//! and types, so that a file comes back as it was.

mod cursor;
mod header;
mod metadata;
mod read;
mod tensor_type;
mod value_type;
mod violation;
mod write;

use zt::Result;

use crate::detect::Probe;
use crate::member::{GGUF, Member};

pub(crate) const MEMBER: Member = Member {
    kind: GGUF,
    extensions: &["gguf"],
    recognises,
    open: read::open,
    write: Some(write::write),
};

const MAGIC: [u8; 4] = *b"GGUF";

/// The pair that says the alignment, and what it is where there is none.
const ALIGNMENT: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;

/// A tensor has at most so many dimensions.
const RANK_MAX: u32 = 4;

fn recognises(probe: &Probe<'_>) -> Result<bool> {
    Ok(probe.head().starts_with(&MAGIC))
}
