//! A `.zt` file that was cut, torn or damaged: what is left of it.
//!
//! Nothing here happens by itself. [`examine`] looks and changes nothing, [`repair`] mends in place
//! what an edit left torn, and [`Recovery::save`] writes what verifies to another file.
//!
//! ```text
//! places      where a manifest may be: one pass from the end of the file        needles
//! candidate   what decodes strictly there, and copies of it                     view
//! fate        which of the components that it names have their digests          ledger
//! generation  whether it is this file's manifest or that of one within a blob
//! recovery    what that makes of the file; save writes what is left
//! ```
//!
//! Time is in proportion to the file, whatever its bytes are: what is read of manifests and of blobs
//! has a budget of a few times the file's length, and what is kept of places has a limit.

mod candidate;
mod examine;
mod fate;
mod generation;
mod ledger;
mod needles;
mod options;
mod places;
mod recovery;
mod save;
mod view;

use std::path::Path;
use std::sync::Arc;

use zt_container::Source;

pub use fate::{Fate, Recovered, RecoveredComponent};
pub use generation::{Generation, Standing};
pub use options::RepairOptions;
pub use recovery::{Recovery, Verdict};

use crate::edit::{Before, LockedFile, Storage};
use crate::error::Result;

/// Finds the manifest that is a file's own, and what of it is there. Reads all of the file where its
/// end is damaged, and every blob that the manifest names; changes nothing.
///
/// # Errors
///
/// [`crate::ErrorKind::Io`], [`crate::ErrorKind::Interrupted`]; [`crate::ErrorKind::Misuse`] where no
/// manifest begins at [`RepairOptions::manifest`]. Whatever is wrong with the file is no error here.
pub fn examine(source: impl Source + 'static, options: &RepairOptions<'_>) -> Result<Recovery> {
    let source: Arc<dyn Source> = Arc::new(source);
    examine::examine(&source, options)
}

/// Makes the `.zt` file at `path` end with its last whole generation, where readers do not find one
/// because an edit was cut short, something was added to the file, or its header or its last bytes
/// are gone. What it has done is [`Recovery::verdict`] of what it returns: it has changed the file
/// if that is [`Verdict::Mendable`], and no other.
///
/// Nothing is taken away but what lies behind the trailer of that generation
/// ([`Recovery::surplus`]). A later generation that is damaged keeps the file from being changed.
/// The file is locked as for an edit, and synced.
///
/// ```
/// use zt::{Dense, File, Verdict, Writer, repair};
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
/// assert_eq!(*File::open(&path)?.tensor("a")?.as_slice::<i32>()?, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Spec: §16.
///
/// # Errors
///
/// Code `locked` where an editor has the file; otherwise as [`examine()`]. After a failed sync nobody
/// knows what is on the disk; repairing again finds out.
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions<'_>) -> Result<Recovery> {
    let path = path.as_ref();
    let mend = || repair_storage(Arc::new(LockedFile::open(path)?), options);
    mend().map_err(|error| error.with_path(path))
}

/// As [`repair`], of a file that is kept somewhere else. Whoever made `storage` keeps editors away
/// from it.
///
/// # Errors
///
/// As [`repair`].
pub fn repair_storage(storage: Arc<dyn Storage>, options: &RepairOptions<'_>) -> Result<Recovery> {
    let byte_len = storage.byte_len()?;
    let source = Before {
        storage: Arc::clone(&storage),
        byte_len,
    };
    let recovery = examine(source, options)?;
    recovery.mend(&*storage)?;
    Ok(recovery)
}
