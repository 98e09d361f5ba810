//! Other tensor files opened as a [`zt::File`], and written from one.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert <- zt-cli
//!                                                    ^ here
//! ```
//!
//! Every kind of tensor file is a *member* of this crate: a module and a feature of its own, which
//! says how its files are recognised, opened and written. What it opens is a [`zt::File`] whose
//! components are ranges of the foreign file, so that listing, reading, verifying, hashing and
//! converting need no code per kind.
//!
//! | kind | feature | read | write | notes |
//! | --- | --- | --- | --- | --- |
//! | `zt` | always | yes | yes | all generations are read, 1.2.0 is written; sets by their index too (with `safetensors`, whose index they have) |
//! | `npz` | `npz` (default) | yes | yes | stored members are lent by a map, deflated ones inflated as they are read |
//! | `npy` | `npy` (default) | yes | one object | big-endian and Fortran-ordered arrays too |
//! | `pytorch` | `pytorch` (default) | yes | no | `torch.save`, old and new, and sharded sets of it (with `safetensors`, whose index they have); nothing is run; views put in order as they are read |
//! | `onnx` | `onnx` (default) | yes | no | initializers, constants and tensors of subgraphs; external data beside the model |
//! | `safetensors` | `safetensors` (default) | yes | yes | sharded sets are opened by their index, and written by `split` |
//! | `gguf` | `gguf` (default) | yes | yes | versions 1 to 3, either byte order, are read, 3 is written; quantized blocks stay as they are |
//! | `squizd` | `squizd` (default) | yes | experimental | version 1.0; INT4 and INT2 are `quantized_group` objects, ASTC and TCA-TBE bytes |
//! | `hdf5` | `hdf5` (default) | yes | no | datasets by their paths, also of the weights in a `.keras` archive; contiguous ones are lent by a map, chunks decoded as they are read |
//! | `slm1` | `slm1` (default) | yes | no | version 1; its q8_0 and q4_0 are `quantized_group` objects, names come from their hashes |
//! | `zt2` | `zt2` (default) | yes | no | zTensor 2, another container than `.zt` of 0.1 to 1.2; shards beside the file |
//!
#![cfg_attr(feature = "safetensors", doc = "```")]
#![cfg_attr(not(feature = "safetensors"), doc = "```ignore")]
//! use zt_convert::{ConvertOptions, Input, SAFETENSORS, convert};
//!
//! let mut bytes = Vec::new();
//! let mut writer = zt::Writer::new(&mut bytes)?;
//! writer.add("weight", &zt::Dense::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?)?;
//! writer.finish()?;
//! let ours = zt::File::from_bytes(bytes)?;
//!
//! let mut foreign = Vec::new();
//! convert(&[Input::from(ours)], &mut foreign, &ConvertOptions::new(SAFETENSORS))?;
//!
//! let file = zt_convert::open_source(zt::Memory::new(foreign))?;
//! assert_eq!(file.kind(), SAFETENSORS);
//! assert_eq!(*file.tensor("weight")?.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! Invariants: the bytes decide what a file is, never its name; nothing in a file is executed or
//! evaluated; no tensor is dropped silently, neither in reading nor in writing; files are read by
//! position and never mapped, unless the caller hands in a map as a [`zt::Source`].
//!
//! Absent: element formats and arithmetic (they are in `zt-formats`), threads, printing.
#![forbid(unsafe_code)]

mod append;
mod convert;
#[cfg(feature = "gguf")]
mod gguf;
#[cfg(feature = "hdf5")]
mod hdf5;
mod kinds;
mod merge;
mod native;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npz")]
mod npz;
#[cfg(feature = "onnx")]
mod onnx;
mod output;
#[cfg(feature = "pytorch")]
mod pytorch;
#[cfg(feature = "safetensors")]
mod safetensors;
mod sets;
#[cfg(feature = "slm1")]
mod slm1;
#[cfg(feature = "squizd")]
mod squizd;
mod zip;
#[cfg(feature = "zt2")]
mod zt2;

use std::io::Write;
use std::path::Path;

use zt::{Editor, File, Kind, Result, Source};
pub use zt_foreign as foreign;
pub use zt_foreign::{ConvertOptions, FileKind, FileWriter, Input, InputOptions, Names, Summary};

#[cfg(feature = "gguf")]
pub use gguf::{GGUF, Gguf};
#[cfg(feature = "hdf5")]
pub use hdf5::{HDF5, Hdf5};
pub use kinds::Kinds;
pub use native::{ZT, Zt};
#[cfg(feature = "npy")]
pub use npy::{NPY, Npy};
#[cfg(feature = "npz")]
pub use npz::{NPZ, Npz};
#[cfg(feature = "onnx")]
pub use onnx::{ONNX, Onnx};
pub use output::is_same_file;
#[cfg(feature = "pytorch")]
pub use pytorch::{PYTORCH, PyTorch};
#[cfg(feature = "safetensors")]
pub use safetensors::{SAFETENSORS, SafeTensors};
pub use sets::{Shard, Split};
#[cfg(feature = "slm1")]
pub use slm1::{SLM1, Slm1};
#[cfg(feature = "squizd")]
pub use squizd::{SQUIZD, Squizd};
#[cfg(feature = "zt2")]
pub use zt2::{ZT2, ZTensor2};

/// Opens the tensor file at `path`, of whatever kind its bytes are; its name does not matter. The
/// index of a sharded set opens the whole set. [`Kinds::open`] takes options.
///
/// # Errors
///
/// As [`Kinds::open`].
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    let input = Kinds::builtin().open(path, InputOptions::new())?;
    Ok(input.into_file())
}

/// Opens a tensor file from any source: bytes in memory, a map, one of your own.
/// [`Kinds::open_source`] takes options.
///
/// # Errors
///
/// As [`Kinds::open_source`].
pub fn open_source(source: impl Source + 'static) -> Result<File> {
    let input = Kinds::builtin().open_source(source, InputOptions::new())?;
    Ok(input.into_file())
}

/// The kind of a file, by its bytes: [`Kinds::detect`] of the kinds of this build.
///
/// # Errors
///
/// As [`Kinds::detect`].
///
/// ```
/// let source = zt::Memory::new(b"Dear all,");
/// assert_eq!(zt_convert::detect(&source)?, None);
/// # Ok::<(), zt::Error>(())
/// ```
pub fn detect(source: &dyn Source) -> Result<Option<Kind>> {
    Kinds::builtin().detect(source)
}

/// Writes `inputs` as one file: [`Kinds::convert`] with the kinds of this build.
///
/// ```
/// use zt_convert::{ConvertOptions, Input, ZT, convert};
///
/// let mut bytes = Vec::new();
/// let mut writer = zt::Writer::new(&mut bytes)?;
/// writer.add("weight", &zt::Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
/// writer.finish()?;
/// let input = Input::from(zt::File::from_bytes(bytes)?);
///
/// let options = ConvertOptions::new(ZT).dtype(zt::DType::BF16);
/// let mut halved = Vec::new();
/// let summary = convert(&[input], &mut halved, &options)?;
/// assert_eq!((summary.objects, summary.bytes), (1, 4));
/// # Ok::<(), zt::Error>(())
/// ```
///
/// # Errors
///
/// As [`Kinds::convert`].
pub fn convert(
    inputs: &[Input],
    sink: impl Write + Send,
    options: &ConvertOptions<'_>,
) -> Result<Summary> {
    Kinds::builtin().convert(inputs, sink, options)
}

/// Writes `inputs` as the file `out`: [`Kinds::convert_to_path`] with the kinds of this build.
///
/// # Errors
///
/// As [`Kinds::convert_to_path`].
pub fn convert_to_path(
    inputs: &[Input],
    out: impl AsRef<Path>,
    overwrite: bool,
    options: &ConvertOptions<'_>,
) -> Result<Summary> {
    Kinds::builtin().convert_to_path(inputs, out, overwrite, options)
}

/// Writes `inputs` as a set: [`Kinds::split`] with the kinds of this build.
///
/// # Errors
///
/// As [`Kinds::split`].
pub fn split(
    inputs: &[Input],
    folder: impl AsRef<Path>,
    stem: &str,
    max_shard_size: u64,
    overwrite: bool,
    options: &ConvertOptions<'_>,
) -> Result<Split> {
    Kinds::builtin().split(inputs, folder, stem, max_shard_size, overwrite, options)
}

/// Adds `inputs` to a file that is being edited: [`Kinds::append`] with the kinds of this build.
///
/// # Errors
///
/// As [`Kinds::append`].
pub fn append(
    inputs: &[Input],
    edit: &mut Editor,
    options: &ConvertOptions<'_>,
) -> Result<Summary> {
    Kinds::builtin().append(inputs, edit, options)
}
