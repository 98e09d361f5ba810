//! What may be written over, and what never.

use std::fs;
use std::path::Path;

use zt::Result;
use zt_foreign::{Fault, Input};

/// Refuses an output that is one of the files that are read, and, unless `overwrite`, one that
/// exists.
///
/// # Errors
///
/// Code `overwrite`.
pub(crate) fn check(out: &Path, inputs: &[Input], overwrite: bool) -> Result<()> {
    check_is_no_input(out, inputs)?;
    match fs::metadata(out) {
        Ok(there) if there.is_dir() => Err(Fault::NoFile.into()),
        // A device is written to, not over.
        Ok(there) if !there.is_file() => Ok(()),
        // A link that leads nowhere would be replaced, so it counts.
        _ if !overwrite && fs::symlink_metadata(out).is_ok() => Err(Fault::Exists.into()),
        _ => Ok(()),
    }
}

/// As [`check`], of a name that a file which is written elsewhere is to have: what has it is taken
/// away, and so has to be a file or a link. Whether there is one.
///
/// # Errors
///
/// Code `overwrite`.
pub(crate) fn check_name(out: &Path, inputs: &[Input], overwrite: bool) -> Result<bool> {
    check_is_no_input(out, inputs)?;
    let Ok(there) = fs::symlink_metadata(out) else {
        return Ok(false);
    };
    match there.is_file() || there.is_symlink() {
        false => Err(Fault::NoFile.into()),
        true if !overwrite => Err(Fault::Exists.into()),
        true => Ok(true),
    }
}

/// Refuses a file to be changed that is one of those that are read.
///
/// # Errors
///
/// Code `overwrite`.
pub(crate) fn check_is_no_input(path: &Path, inputs: &[Input]) -> Result<()> {
    if fs::metadata(path).is_err() {
        // Nothing is there that could be an input: of sets there are many files on both sides, and
        // each need not be compared with each.
        return Ok(());
    }
    let mut read = inputs.iter().flat_map(Input::paths);
    match read.find(|input| is_same_file(input, path)) {
        Some(input) => Err(Fault::IsInput {
            input: input.clone(),
        }
        .into()),
        None => Ok(()),
    }
}

/// Whether two paths lead to one file. Links of either sort are followed. False where either cannot be
/// looked at.
#[cfg(unix)]
#[must_use]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether two paths lead to one file. Hard links cannot be told from copies here; as outputs
/// appear by renaming, writing over one leaves the other as it was. False where either cannot be looked
/// at.
#[cfg(not(unix))]
#[must_use]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
