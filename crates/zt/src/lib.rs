//! Reading and writing `.zt` tensor files (zTensor 1.2.0, and every generation before it).
//!
//! Place in the graph: above `zt-ggml`, below `zt-foreign`.
//!
//! A file is a list of named objects; an object has a shape, a format (`dense`, `sparse_csr`,
//! `quantized_group`, ...) and typed components. This crate is the paved path over the three below
//! it, which it re-exports: [`container`], [`manifest`], [`formats`].
//!
//! ```
//! use zt::{Csr, Dense, File, Writer};
//!
//! let mut bytes = Vec::new();
//! let mut writer = Writer::new(&mut bytes)?;
//! writer.add("weight", &Dense::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?)?;
//! writer.add("graph", &Csr::new([2, 3], &[7i32, 8][..], &[2u64, 0][..], &[0u64, 1, 2][..])?)?;
//! writer.finish()?;
//!
//! let file = File::from_bytes(bytes)?;
//! let weight = file.tensor("weight")?;
//! let values = weight.values::<f32>()?; // borrowed from the file's bytes, digest checked once
//! assert!(values.is_borrowed());
//! assert_eq!(values[5], 6.0);
//! let graph = file.tensor("graph")?.to_dense()?;
//! assert_eq!(*graph.as_slice::<i32>()?, [0, 0, 7, 8, 0, 0]);
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! | to | see |
//! | --- | --- |
//! | open a file, a map, bytes, any source | [`File`], [`OpenOptions`], `Map` |
//! | read values, zero-copy, into your memory, streaming | [`Tensor`] |
//! | read many, or parts of many, ahead of their use | [`File::read_many`], [`File::plan`] |
//! | write, compress, stream what is larger than memory | [`Writer`], [`WriteOptions`] |
//! | add, remove and rename objects of a file that is there | [`File::edit`], [`Editor`], [`compact`] |
//! | mend a file that was torn, save what is left of a damaged one | [`repair`] |
//! | check everything, identify tensors | [`File::verify`], [`File::hash`] |
//! | compare files | [`diff`] |
//! | find what is odd in the values | [`stats`] |
//! | add an object format or a logical type | [`ObjectFormat`], [`registry`] |
//! | open another format as a [`File`] | [`foreign`], the crate `zt-convert` |
//!
//! Files are not trusted: damage and malice give an [`Error`] with a stable code, never a panic.
//! Features: `mmap` (default) for `Map`, `rayon` (default) for work on all cores, `serde` (default)
//! for attributes to and from your types, `zstd` (default) for compressed components, `ndarray` for
//! arrays of that crate, `test-kit` for `test_kit`, the tests that any format of your own can run.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

// The rooms: each may use those before it, and `cargo xtask graph` refuses any other arrow.
// error, cores, disk, file, read, check, write, edit, diff, repair, stats, test_kit
mod check;
mod cores;
pub mod diff;
mod disk;
mod edit;
mod error;
mod file;
mod read;
pub mod repair;
pub mod stats;
#[cfg(feature = "test-kit")]
pub mod test_kit;
mod write;

pub use check::hash::{BytesHash, ContentHash, DenseHash, HashOptions, ObjectHash};
pub use check::verify::{Report, VerifyOptions};
pub use cores::progress::Progress;
pub use edit::{Editor, Storage, compact, compacted_len};
pub use error::{Error, ErrorKind, Result, codes};
pub use file::inner::Verify;
pub use file::open::{OpenOptions, registry};
pub use file::tensor::{ComponentReader, OwnedTensor, Tensor};
pub use file::{Entry, File, Warning, nearest};
pub use read::dense_reader::DenseReader;
pub use read::plan::Plan;
pub use write::component::{ComponentWriter, SuspendedComponent};
pub use write::object::{ObjectWriter, SuspendedObject};
pub use write::options::{
    ComponentOptions, Compression, DEFAULT_LEVEL, ObjectOptions, WriteOptions,
};
pub use write::writer::Writer;

/// The features that this build has, in alphabetical order: `mmap`, `ndarray`, `rayon`, `serde`, `zstd`.
pub const FEATURES: &[&str] = &[
    #[cfg(feature = "mmap")]
    "mmap",
    #[cfg(feature = "ndarray")]
    "ndarray",
    #[cfg(feature = "rayon")]
    "rayon",
    #[cfg(feature = "serde")]
    "serde",
    #[cfg(feature = "zstd")]
    "zstd",
];

/// What crates for other kinds of files need to open them as a [`File`], and to write them.
pub mod foreign {
    pub use crate::cores::parallel::map_owned as on_all_cores;
    pub use crate::disk::access::keep_access;
    pub use crate::disk::lock::{expect_unlocked, open_locked};
    pub use crate::disk::publish::{AtomicFile, sync_folder};
    pub use crate::disk::target::is_null;
    pub use crate::disk::{synced, uninterrupted};

    pub use crate::file::builder::{FileBuilder, SourceId};
    pub use crate::file::kind::Kind;
    pub use crate::file::open::open_settled;
    pub use crate::file::value_rule::ValueRule;
    pub use crate::file::{WarningKind, parted_links};
    pub use crate::read::ahead::ReadAhead;
}

#[cfg(feature = "mmap")]
pub use zt_container::Map;
pub use zt_container::{
    Blob, Checksum, Digest, DigestAlgorithm, Encoding, FileSource, Layout, Limits, Memory,
    Seekable, Source, Span,
};
pub use zt_formats::{
    Buffer, Bytes, Coo, Csr, Dense, Element, Elements, FloatType, LogicalType, NewObject,
    ObjectFormat, Parts, Planes, Quantized4Bit, QuantizedGroup, Registry, Signature, Slice,
    ToObject, Typed, View,
};
pub use zt_manifest::{
    Attributes, ByteOrder, Component, DType, Object, RawComponent, RawObject, Value,
};

/// The layer that locates and moves bytes.
pub use zt_container as container;
/// The layer that knows what bytes mean.
pub use zt_formats as formats;
/// The block formats of GGUF.
pub use zt_ggml as ggml;
/// The layer that knows the manifest.
pub use zt_manifest as manifest;

#[cfg(all(doctest, feature = "zstd"))]
#[doc = include_str!("../README.md")]
struct Readme;
