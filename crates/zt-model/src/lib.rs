#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::ffi::OsStr;

use zt::{File, Result};

mod arithmetic;
mod delta;
mod edit;
mod examine;
mod location;

pub use arithmetic::{Lora, Quantize, Quantized, QuantizedObject, average};
pub use delta::{
    Changes, Check, DeltaSummary, NewValues, Patch, delta, delta_to_path, is_delta, new_values,
    patch_in_place,
};
pub use edit::{Rewrite, edited_indexes};
pub use examine::{
    EditedIndex, ExamineOptions, Finding, WrittenIndex, examine, indexes_of, is_blob, verify_blob,
    write_index,
};

pub use location::{BASE_UNUSED, Beside, Location, LocationOptions};
/// Seals: which bytes of a copy are wrong.
pub use zt_seal as seal;

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
