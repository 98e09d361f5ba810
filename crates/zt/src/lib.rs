#![doc = include_str!("../README.md")]
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

pub use check::hash::{BytesHash, ContentHash, DenseHash, HashOptions, KnownSums, ObjectHash};
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
    pub use crate::cores::parallel::on as on_threads;
    pub use crate::disk::access::keep_access;
    pub use crate::disk::lock::{expect_unlocked, open_locked};
    pub use crate::disk::publish::{AtomicFile, sync_folder};
    pub use crate::disk::target::is_null;
    pub use crate::disk::{synced, uninterrupted};

    pub use crate::file::builder::{FileBuilder, Regrouped, SourceId};
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
