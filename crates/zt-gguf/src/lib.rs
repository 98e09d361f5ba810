//! GGUF files, of llama.cpp and ggml, read and written as tensors.
//!
//! ```text
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! | "GGUF" | version | tensors | pairs | pairs: key,  | tensors: name,| padding | data of the  |
//! |        | u32     | u64     | u64   | type, value  | shape, type,  |         | tensors, each|
//! |        |         |         |       |              | offset        |         | padded       |
//! +--------+---------+---------+-------+--------------+---------------+---------+--------------+
//! ```
//!
//! Versions 1, 2 and 3 are read, in either byte order; the version's bytes show the order. In
//! version 1, counts, lengths and dimensions are u32. Offsets count from the first byte of the data.
//! The data begins at a multiple of the alignment: the pair `general.alignment`, or 32.
//!
//! The rules are llama.cpp's. A header that breaks a rule refuses the whole file, because it no
//! longer states reliably which bytes belong to which tensor.
//!
//! Plain types become `dense`. Quantized types keep their blocks as `gguf.<type>/1`, see
//! `spec/formats/gguf.md`. The pairs become the file's attributes. `gguf.types` holds their order and
//! types, so that a converted file can be restored byte for byte.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cursor;
mod header;
mod metadata;
mod pairs;
mod read;
mod tensor_type;
mod value_type;
mod violation;
mod write;

use zt::foreign::Kind;
use zt::{Attributes, Result, Source};
use zt_foreign::{FileKind, FileWriter, Input, Job, Merged, Opening, Probe, Sink};

/// The kind of GGUF files, of llama.cpp and other users of ggml.
pub const GGUF: Kind = Kind::new("gguf");

/// Recognises, opens and writes GGUF files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gguf;

impl FileKind for Gguf {
    fn kind(&self) -> Kind {
        GGUF
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["gguf"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn merge_attributes(&self, files: &mut [Attributes]) -> bool {
        pairs::merge(files)
    }

    fn own_attributes(&self) -> &'static [&'static str] {
        &[pairs::TYPES]
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }

    fn writer(&self) -> Option<&dyn FileWriter> {
        Some(self)
    }
}

impl FileWriter for Gguf {
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()> {
        write::write(merged, sink, job)
    }
}

const MAGIC: [u8; 4] = *b"GGUF";

/// The pair with the alignment, and the alignment without that pair.
const ALIGNMENT: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;

/// The most dimensions of a tensor.
const RANK_MAX: u32 = 4;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
