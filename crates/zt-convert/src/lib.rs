#![doc = include_str!("../README.md")]
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
    Cast, ConvertOptions, Duplicate, FileKind, FileWriter, Input, InputOptions, Logical,
    LogicalTensor, MlDtype, Names, OnDuplicate, Summary,
};
/// The ways to store quantized weights.
pub use zt_quantized as quantized;

pub use merge::{check_output, is_same_file, join_folder, join_slices};
pub use native::{ZT, Zt, write_objects};
pub use open::{CHECKPOINT_METADATA, FolderContents, is_named_as_slice};
pub use sets::{Index, Shard, Split, SplitOptions, parse_size, set_name, shards_of};
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
