#![doc = include_str!("../README.md")]
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
mod stretches;
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
pub use stretches::{Right, Stretches};
pub use unique::repeated;
pub use writer::ContainerWriter;
