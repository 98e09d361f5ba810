//! Repair of a `.zt` file that was truncated, torn or damaged.
//!
//! * [`examine()`] reads and changes nothing.
//! * [`repair()`] mends in place what an interrupted edit left.
//! * [`Recovery::save`] writes every component that passes its checks to a new file.
//!
//! ```text
//! places      offsets where a manifest may begin, in one pass from the end      needles
//! candidate   the manifests that decode strictly there, and their copies        view
//! fate        the components whose digests are right                            ledger
//! generation  whether a manifest is the file's own, or of a file within a blob
//! remains     compressed components of a file without any manifest
//! recovery    the result; `save` writes what is left
//! ```
//!
//! The time is proportional to the length of the file, whatever its bytes are. Reads of manifests
//! and blobs have a budget of a few times that length, and the list of places has a limit. The search
//! reads no hole of a sparse file, and no blob without a digest is read there.
//!
//! This room knows the rooms before it, except `check` and `diff`. No room may know this one.

mod candidate;
mod examine;
mod fate;
mod generation;
mod ledger;
mod needles;
mod options;
mod places;
mod recovery;
mod remains;
mod save;
mod view;

use std::path::Path;
use std::sync::Arc;

use zt_container::Source;

pub use fate::{Fate, Recovered, RecoveredComponent};
pub use generation::{Generation, Standing};
pub use options::RepairOptions;
pub use recovery::{Recovery, Verdict};
pub use remains::Remains;

use crate::edit::{Before, LockedFile, Storage};
use crate::error::Result;

/// Finds the file's own manifest, and what is left of its objects. Changes nothing.
///
/// Every blob of the manifest is read, and the whole file if its end is damaged.
///
/// # Errors
///
/// [`crate::ErrorKind::Io`], [`crate::ErrorKind::Interrupted`]; [`crate::ErrorKind::Misuse`] if no
/// manifest begins at [`RepairOptions::manifest`]. Faults of the file are in the result.
pub fn examine(source: impl Source + 'static, options: &RepairOptions<'_>) -> Result<Recovery> {
    let source: Arc<dyn Source> = Arc::new(source);
    examine::examine(&source, options)
}

/// Makes the `.zt` file at `path` end with its last whole generation.
///
/// This helps if readers do not find that generation: an edit was interrupted, bytes were appended, or
/// the header or the last bytes are missing. The file was changed if, and only if,
/// [`Recovery::verdict`] of the result is [`Verdict::Mendable`].
///
/// Only the bytes behind the trailer of that generation are removed ([`Recovery::surplus`]). If a
/// later generation is damaged, the file is not changed. The file is locked as for an edit, and synced.
///
/// ```
/// use zt::repair::{Verdict, repair};
/// use zt::{Dense, File, Writer};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("model.zt");
/// let mut writer = Writer::create(&path)?;
/// writer.add("a", &Dense::from_slice(&[2], &[1i32, 2])?)?;
/// writer.finish()?;
/// let mut bytes = std::fs::read(&path)?;
/// bytes.extend_from_slice(b"the beginning of something else");
/// std::fs::write(&path, &bytes)?;
/// assert!(File::open(&path).is_err());
///
/// let recovery = repair(&path, &Default::default())?;
/// assert_eq!(recovery.verdict(), Verdict::Mendable);
/// assert_eq!(*File::open(&path)?.tensor("a")?.values::<i32>()?, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Spec: §16.
///
/// # Errors
///
/// Code `locked` if an editor has the file; otherwise as [`examine()`]. After a failed sync the state of
/// the disk is unknown: repair the file again.
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions<'_>) -> Result<Recovery> {
    let path = path.as_ref();
    let mend = || repair_storage(Arc::new(LockedFile::open(path)?), options);
    mend().map_err(|error| error.with_path(path))
}

/// As [`repair`], for a file in any storage. The caller keeps editors away from it.
///
/// # Errors
///
/// As [`repair`].
pub fn repair_storage(storage: Arc<dyn Storage>, options: &RepairOptions<'_>) -> Result<Recovery> {
    let byte_len = storage.byte_len()?;
    let source = Before { storage: Arc::clone(&storage), byte_len };
    let recovery = examine(source, options)?;
    recovery.mend(&*storage)?;
    Ok(recovery)
}
