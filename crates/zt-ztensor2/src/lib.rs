//! Files of zTensor 2 as tensors. This container is not `.zt` 0.1 to 1.2, in spite of its name.
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
//! "Spec" in this module is `spec/ztensor-v2-spec.md` of pie-project/ztensor, footer version 2, and
//! the profiles beside it. An object's `layout` and `parts` are our format and components:
//!
//! | zTensor 2 | here |
//! | --- | --- |
//! | `dense`; `zt.sparse_csr/1`, `zt.sparse_coo/1` | `dense`; `sparse_csr`, `sparse_coo`, with the profiles' own rules |
//! | any other layout | an object of that format: of a known one where the registry has it, else its components |
//! | `bool` over `u8` | the dtype `bool` |
//! | `f4_e2m1`, `f8_e8m0`, unknown types | kept as the logical type, sizes checked where they are known |
//! | a blob of several parts | names that share their storage |
//! | `zt.zstd-seekable/1` | decoded frame by frame as it is read |
//! | another encoding | a fault of the object |
//! | a shard | `<stem>-<name>.zt` beside the file, see [`shards`] |
//!
//! Digests are of decoded bytes, and so are the components: a compressed part is listed as what it
//! decodes to, so that its digest is compared wherever one of ours is.
//!
//! A fault of the framing, of the CBOR, of the root or of a name refuses the file; any other is its
//! object's. Fields that the specification does not know are passed over, as it asks.
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

/// Files of zTensor 2. Their extension is `.zt` too.
pub const ZT2: Kind = Kind::new("zt2");

/// The kind: recognises, opens and, if it has a writer, writes such files.
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

/// Every blob begins at a multiple of this, and none before it. Spec: §2.4.
const ALIGNMENT: u64 = 4096;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
