//! Other tensor files opened as a [`zt::File`], and written from one.
//!
//! Place in the graph: above each kind, below `zt-model`.
//!
//! Every kind of file has a crate of its own and a feature here; all features are on by default.
//! [`Kinds`] is the table of kinds, as a value. A file of any kind opens as a [`zt::File`] whose
//! components are ranges of the foreign file.
//!
//! | kind | feature | read | write |
//! | --- | --- | --- | --- |
//! | `zt` | always | 0.1 to 1.2 | 1.2.0 |
//! | `npz`, `npy` | `npy` | yes | yes; `.npy` with one object |
//! | `pytorch`, `pickle` | `pytorch` | yes | no |
//! | `dcp` | `dcp` | yes | no |
//! | `onnx` | `onnx` | yes | no |
//! | `safetensors` | `safetensors` | yes | yes |
//! | `gguf` | `gguf` | 1 to 3 | 3 |
//! | `squizd` | `squizd` | yes | as an experiment |
//! | `hdf5` | `hdf5` | yes | no |
//! | `slm1` | `slm1` | yes | no |
//! | `zt2` | `zt2` | yes | no |
//!
//! Sets of shards are opened by their index, or by any file of a numbered set, and written by [`Kinds::split`].
//!
#![cfg_attr(feature = "safetensors", doc = "```")]
#![cfg_attr(not(feature = "safetensors"), doc = "```ignore")]
//! use zt_convert::{ConvertOptions, Input, Kinds, SAFETENSORS};
//!
//! let mut bytes = Vec::new();
//! let mut writer = zt::Writer::new(&mut bytes)?;
//! writer.add("weight", &zt::Dense::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
//! writer.finish()?;
//! let ours = zt::File::from_bytes(bytes)?;
//!
//! let mut foreign = Vec::new();
//! Kinds::builtin().convert(&[Input::from(ours)], &mut foreign, &ConvertOptions::new(SAFETENSORS))?;
//!
//! let file = zt_convert::open_source(zt::Memory::new(foreign))?;
//! assert_eq!(file.kind(), SAFETENSORS);
//! assert_eq!(*file.tensor("weight")?.values::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! Invariants:
//!
//! * The bytes decide the kind of a file, never its name.
//! * Nothing in a file is executed or evaluated.
//! * No tensor is dropped silently, neither in reading nor in writing.
//! * Files are read by position and never mapped, unless the caller passes a map as a [`zt::Source`].
//!
//! Absent: element formats and casts (they are in `zt-formats`), arithmetic and deltas (they are in `zt-model`),
//! threads, printing.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod merge;
mod native;
mod open;
mod sets;
mod table;
mod write;

use std::path::Path;

use zt::{File, Result, Source};
pub use zt_foreign as foreign;
pub use zt_foreign::{
    ConvertOptions, Duplicate, FileKind, FileWriter, Input, InputOptions, MlDtype, Names,
    OnDuplicate, Summary,
};

pub use merge::{check_output, is_same_file, join_slices};
pub use native::{ZT, Zt, write_objects};
pub use open::{CHECKPOINT_METADATA, FolderContents};
pub use sets::{Index, Shard, Split, SplitOptions, shards_of};
pub use table::Kinds;
#[cfg(feature = "dcp")]
pub use zt_dcp::{DCP, Dcp};
#[cfg(feature = "gguf")]
pub use zt_gguf::{GGUF, Gguf};
#[cfg(feature = "hdf5")]
pub use zt_hdf5::{HDF5, Hdf5};
#[cfg(feature = "npy")]
pub use zt_npy::{NPY, NPZ, Npy, NpyHeader, Npz};
#[cfg(feature = "onnx")]
pub use zt_onnx::{ONNX, Onnx};
#[cfg(feature = "pytorch")]
pub use zt_pytorch::{PICKLE, PYTORCH, PlainPickle, PyTorch};
#[cfg(feature = "safetensors")]
pub use zt_safetensors::{SAFETENSORS, SafeTensors};
#[cfg(feature = "slm1")]
pub use zt_slm1::{SLM1, Slm1};
#[cfg(feature = "squizd")]
pub use zt_squizd::{SQUIZD, Squizd};
#[cfg(feature = "zt2")]
pub use zt_ztensor2::{ZT2, ZTensor2};

/// Opens the tensor file at `path`, of any kind: its bytes decide, not its name. The index of a sharded
/// set opens the whole set. [`Kinds::open`] takes options; [`zt::File::open`] opens `.zt` alone.
///
/// # Errors
///
/// As [`Kinds::open`].
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    let input = Kinds::builtin().open(path, InputOptions::new())?;
    Ok(input.into_file())
}

/// Opens a tensor file from any source: bytes in memory, a map, or your own. [`Kinds::open_source`]
/// takes options.
///
/// # Errors
///
/// As [`Kinds::open_source`].
pub fn open_source(source: impl Source + 'static) -> Result<File> {
    let input = Kinds::builtin().open_source(source, InputOptions::new())?;
    Ok(input.into_file())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
