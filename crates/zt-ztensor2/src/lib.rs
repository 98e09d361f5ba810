//! Files of zTensor 2 as tensors. This container is incompatible with `.zt` 0.1 to 1.2.
//!
//! ```text
//! 0        8     4096                                             end-40              end
//! +--------+-----+--------+-------+--------+-------+----------+---+-------------------+
//! | magic  | 0 … | blob A | 0 …   | blob B | 0 …   | manifest | … | footer: manifest's |
//! |        |     |        |       |        |       | (CBOR)   |   | span, XXH3, magic |
//! +--------+-----+--------+-------+--------+-------+----------+---+-------------------+
//!                ^ every blob, and the manifest, at a multiple of 4096
//! ```
//!
//! "Spec" in this crate means `spec/ztensor-v2-spec.md` of pie-project/ztensor, footer version 2, and
//! the profiles beside it. An object's `layout` and `parts` are our format and components:
//!
//! | zTensor 2 | here |
//! | --- | --- |
//! | `dense`; `zt.sparse_csr/1`, `zt.sparse_coo/1` | `dense`; `sparse_csr`, `sparse_coo`, with the profiles' own rules |
//! | any other layout | an object of that format; it has components alone if the registry lacks the format |
//! | `bool` over `u8` | the dtype `bool` |
//! | `f4_e2m1`, `f8_e8m0`, unknown types | kept as the logical type; known sizes are checked |
//! | a blob of several parts | components that share their storage |
//! | `zt.zstd-seekable/1` | decoded frame by frame when it is read |
//! | another encoding | a fault of the object |
//! | a shard | `<stem>-<name>.zt` beside the file |
//!
//! Digests cover decoded bytes. A compressed part is therefore listed as a component of its decoded
//! bytes, so that its digest is compared like ours.
//!
//! A fault of the framing, of the CBOR, of the root or of a name refuses the file. Any other fault
//! belongs to its object. Unknown fields are ignored, as the specification requires.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cbor;
mod footer;
mod manifest;
mod object;
mod overlap;
mod profiles;
mod read;
mod seekable;
mod shards;
mod violation;

use twox_hash::XxHash3_64;
use zt::foreign::Kind;
use zt::{Checksum, Result, Source};
use zt_foreign::{FileKind, Input, Opening, Probe};

/// The first and the last eight bytes.
const MAGIC: [u8; 8] = *b"\x89ZT2\r\n\x1A\n";

/// The checksum of parts. Spec: §3.4.
static XXH3: Checksum = Checksum {
    name: "xxh3",
    hasher: || Box::new(XxHash3_64::new()),
    combine: None,
    spell: |sum| format!("{sum:016x}"),
};

/// The kind of zTensor 2 files. Their extension is `.zt` too.
pub const ZT2: Kind = Kind::new("zt2");

/// Recognises and opens files of zTensor 2.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZTensor2;

impl FileKind for ZTensor2 {
    fn kind(&self) -> Kind {
        ZT2
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["zt"]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<bool> {
        Ok(probe.head().starts_with(&MAGIC))
    }

    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        read::open(source, opening)
    }
}

/// Every blob begins at a multiple of this, from this offset on. Spec: §2.4.
const ALIGNMENT: u64 = 4096;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
