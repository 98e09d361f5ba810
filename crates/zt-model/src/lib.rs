//! Models as files: what is computed from them, how they differ, and whether they are whole.
//!
//! Place in the graph: above `zt-convert`, below `zt-cli`.
//!
//! | room | what it gives |
//! | --- | --- |
//! | `arithmetic` | files whose values are computed when they are read: [`average`], [`Lora`], [`Quantize`] |
//! | `delta` | [`delta`](delta()) writes how a file differs from another; [`Patch`] makes that file again |
//! | `location` | [`open`](open()) and [`Location`]: a path, a folder, a URL or `-`, as a user types it |
//! | `examine` | [`examine`](examine()) finds files of a folder that do not make one model; [`write_index`] |
//!
//! All of them take an [`Input`](zt_convert::Input) of any kind, and what they compute is one, too.
//! [`zt_convert::Kinds::convert`] writes it.
//!
//! ```
//! use zt::{Dense, File, Writer};
//! use zt_convert::{ConvertOptions, Input, Kinds, ZT};
//!
//! let file = |values: &[f32]| {
//!     let mut bytes = Vec::new();
//!     let mut writer = Writer::new(&mut bytes)?;
//!     writer.add("w", &Dense::from_slice(&[2], values)?)?;
//!     writer.finish()?;
//!     File::from_bytes(bytes).map(Input::from)
//! };
//! let options = ConvertOptions::new(ZT);
//! let mean = zt_model::average(&[file(&[1.0, 2.0])?, file(&[3.0, 2.0])?], &[], &options)?;
//! let mut bytes = Vec::new();
//! Kinds::builtin().convert(&[mean], &mut bytes, &options)?;
//! assert_eq!(*File::from_bytes(bytes)?.tensor("w")?.values::<f32>()?, [2.0, 2.0]);
//! # Ok::<(), zt::Error>(())
//! ```
//!
//! Absent: kinds of files and sets (they are in `zt-convert`), architectures of models, threads, printing.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

use std::ffi::OsStr;

use zt::{File, Result};

mod arithmetic;
mod delta;
mod examine;
mod location;

pub use arithmetic::{Lora, Quantize, Quantized, QuantizedObject, average};
pub use delta::{
    Changes, Check, DeltaSummary, NewValues, Patch, delta, delta_to_path, is_delta, new_values,
    patch_in_place,
};
pub use examine::{
    ExamineOptions, Finding, WrittenIndex, examine, is_blob, verify_blob, write_index,
};

pub use location::{Location, LocationOptions};

/// Opens what a user typed: a path, a folder, a URL, or `-` for stdin. [`Location::open`] takes options.
///
/// ```
/// use zt::{Dense, Writer};
///
/// let folder = tempfile::tempdir()?;
/// let mut writer = Writer::create(folder.path().join("model.zt"))?;
/// writer.add("w", &Dense::from_slice(&[2], &[1.0f32, 2.0])?)?;
/// writer.finish()?;
/// // The folder has one tensor file.
/// assert_eq!(*zt_model::open(folder.path())?.tensor("w")?.values::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`Location::open`].
pub fn open(typed: impl AsRef<OsStr>) -> Result<File> {
    let input = Location::new(typed).open(&LocationOptions::new())?;
    Ok(input.into_file())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
