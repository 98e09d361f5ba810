//! The framing of a `.zt` tensor file: magics, footer, spans, blobs, sources, codecs, digests and
//! limits.
//!
//! Place in the graph: below `zt-zip` and `zt-manifest`.
//!
//! ```text
//! offset 0   8        64                                         end-16   end-8
//!        +---+--------+--------+--------+--------+----------+-----+--------+
//!        |magic| zeros | blob A | zeros  | blob B | manifest | size | magic  |
//!        +---+--------+--------+--------+--------+----------+-----+--------+
//!                     ^ every blob at a multiple of 64       ^ u64, little-endian
//! ```
//!
//! Invariant: this crate never interprets the manifest (CBOR) or element bytes; it knows no
//! tensors. Without features it has no dependencies:
//!
//! | feature | gives |
//! | --- | --- |
//! | `mmap` | [`Map`]: a file mapped into memory, as a [`Source`] |
//! | `zstd` | compressing and decoding of [`Encoding::Zstd`] |
//! | `crc32c`, `sha2` | computing and checking the digest of that name |
//! | `readahead` | files announce reads to the system, and find holes (Linux) |
//!
//! With a feature off, the types still exist: a compressed blob is found and described, and decoding it
//! is [`Error::Unsupported`].
//!
//! ```
//! use zt_container::{ALIGNMENT, Blob, Container, ContainerWriter, Limits, Memory};
//!
//! let mut writer = ContainerWriter::new(Vec::new())?;
//! writer.begin_blob(ALIGNMENT, None)?;
//! writer.write(&1.5f32.to_le_bytes())?;
//! let (span, _digest) = writer.end_blob()?;
//! let file = writer.finish(b"\xA0 a manifest, opaque to this crate")?;
//!
//! let container = Container::open(Memory::new(file), &Limits::default())?;
//! let blob = Blob::raw(span);
//! let mut bytes = [0; 4];
//! container.read_blob(&blob)?.read(&mut bytes)?;
//! assert_eq!(f32::from_le_bytes(bytes), 1.5);
//! # Ok::<(), zt_container::Error>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(feature = "mmap"), forbid(unsafe_code))]
#![cfg_attr(feature = "mmap", deny(unsafe_code))]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod blob;
mod checksum;
mod chunks;
pub mod codec;
mod container;
#[cfg(feature = "crc32c")]
mod crc;
mod digest;
mod error;
pub mod fields;
mod footer;
mod hasher;
mod limits;
mod magic;
pub mod memory;
#[cfg(feature = "mmap")]
mod mmap;
mod reader;
mod seekable;
mod source;
mod span;
mod unique;
mod writer;

pub use blob::{Blob, Encoding};
pub use checksum::Checksum;
pub use chunks::{CHUNK, ChunkTable, Chunker, Chunks};
pub use container::Container;
pub use digest::{Digest, DigestAlgorithm};
pub use error::{Error, FramingViolation, LimitExceeded, Misuse, Result, Unsupported, ZstdFault};
pub use footer::Footer;
pub use hasher::Hasher;
pub use limits::Limits;
pub use magic::{ALIGNMENT, HEADER_LEN, Layout, MAGIC, MAGIC_0_1, SIZE_LEN};
pub use memory::bytes_of;
#[cfg(feature = "mmap")]
pub use mmap::Map;
pub use reader::{BlobReader, check_declared, check_digest, read_into};
pub use seekable::Seekable;
#[cfg(all(target_os = "linux", feature = "readahead"))]
pub use source::data_from;
pub use source::{FileSource, Memory, Source, is_device, open_regular, read_exact_at};
pub use span::Span;
pub use unique::repeated;
pub use writer::ContainerWriter;

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
