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
//! | `f4_e2m1` | the format `zt.f4_e2m1fn/1` if the layout is `dense`; otherwise the logical type is kept |
//! | `f8_e8m0` | the logical type `f8_e8m0fnu` |
//! | unknown types | kept as the logical type |
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

pub use read::{ZT2, ZTensor2};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
