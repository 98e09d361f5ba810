//! SLM1 files, version 1, as tensors.
//!
//! ```text
//! 0        108 or more
//! +--------+-----------+-----------+-----------------------------------+
//! | header | tokenizer | directory | values and scales of each tensor, |
//! |        |           | 64 n      | on a grid of 64                   |
//! +--------+-----------+-----------+-----------------------------------+
//! ```
//!
//! Offsets lead to everything after the header; the order above is the packer's. Tensors have no
//! names, but hashes of them. `spec/slm1.md` has the rules, what is open among them, and why nothing
//! is written: the runtime checks a checksum of the whole file, and how it is made is not public.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod entry;
mod header;
mod names;
mod read;
mod violation;

use zt::foreign::Kind;
use zt::{Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe, fields::Record};

/// SLM1 files, of TinyRustLM.
pub const SLM1: Kind = Kind::new("slm1");

/// The kind: recognises, opens and, if it has a writer, writes such files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slm1;

impl FileKind for Slm1 {
    fn kind(&self) -> Kind {
        SLM1
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["slm"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        recognise(probe)
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }
}

/// Other formats have the same magic: version and length have to fit as well.
fn recognise(probe: &Probe<'_>) -> Result<bool> {
    let (head, record) = (probe.head(), Record(probe.head()));
    let fits = record.u32(4) == 1 && u64::from(record.u32(8)) >= header::FIELDS_LEN as u64;
    Ok(head.starts_with(&header::MAGIC) && fits)
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
