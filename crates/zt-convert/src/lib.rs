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
//! let file = zt_convert::open_source(zt::Memory::new(foreign), &zt::OpenOptions::new())?;
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
#![cfg_attr(
    not(all(
        feature = "gguf",
        feature = "hdf5",
        feature = "npz",
        feature = "onnx",
        feature = "pytorch",
        feature = "safetensors",
        feature = "slm1",
        feature = "squizd",
        feature = "zt2"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "without some kinds, not all that the others share is of use"
    )
)]

mod append;
mod convert;
mod detect;
mod fault;
mod fields;
#[cfg(any(feature = "slm1", feature = "squizd"))]
mod fnv;
#[cfg(feature = "gguf")]
mod gguf;
mod gguf_pairs;
#[cfg(feature = "hdf5")]
mod hdf5;
mod input;
mod losses;
mod member;
mod merge;
mod name_list;
#[cfg(any(
    feature = "gguf",
    feature = "hdf5",
    feature = "npz",
    feature = "onnx",
    feature = "pytorch",
    feature = "safetensors"
))]
mod names;
mod native;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npz")]
mod npz;
mod object;
#[cfg(feature = "onnx")]
mod onnx;
mod output;
mod overflow;
#[cfg(feature = "pytorch")]
mod pytorch;
#[cfg(feature = "safetensors")]
mod safetensors;
mod shares;
#[cfg(feature = "slm1")]
mod slm1;
#[cfg(feature = "safetensors")]
mod split;
#[cfg(feature = "safetensors")]
mod split_plan;
#[cfg(feature = "squizd")]
mod squizd;
#[cfg(feature = "safetensors")]
mod staging;
#[cfg(any(
    feature = "hdf5",
    feature = "npy",
    feature = "onnx",
    feature = "pytorch"
))]
mod strided;
#[cfg(any(feature = "hdf5", feature = "npz", feature = "pytorch"))]
mod zip;
#[cfg(feature = "zt2")]
mod zt2;

pub use append::append;
pub use convert::{ConvertOptions, Summary, convert, convert_to_path};
pub use detect::detect;
pub use fault::has_dense_value;
pub use input::{Input, InputOptions, open, open_as, open_source};
pub use member::{
    GGUF, HDF5, Member, NPY, NPZ, ONNX, PYTORCH, SAFETENSORS, SLM1, SQUIZD, ZT, ZT2,
    kind_of_extension, member, members,
};
pub use name_list::Names;
pub use output::is_same_file;
#[cfg(feature = "safetensors")]
pub use split::{Shard, Split, split};
