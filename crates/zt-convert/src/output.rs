//! What may be written over, and what never.

use std::fs;
use std::path::Path;

use zt::Result;

use crate::Input;
use crate::fault::Fault;

/// Refuses an output that is one of the files that are read, and, unless `overwrite`, one that
/// exists.
///
/// # Errors
///
/// Code `overwrite`.
pub(crate) fn check(out: &Path, inputs: &[Input], overwrite: bool) -> Result<()> {
    let read = inputs.iter().flat_map(Input::paths);
    if let Some(input) = read.into_iter().find(|input| is_same_file(input, out)) {
        return Err(Fault::IsInput {
            input: input.clone(),
        }
        .into());
    }
    // A link that leads nowhere would be replaced, so it counts; a device is written to, not over.
    let exists = fs::symlink_metadata(out).is_ok();
    let is_replaced =
        !fs::metadata(out).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if exists && is_replaced && !overwrite {
        return Err(Fault::Exists.into());
    }
    Ok(())
}

/// Whether two paths lead to one file. Links of either sort are followed.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether two paths lead to one file. Hard links cannot be told from copies here; as outputs
/// appear by renaming, writing over one leaves the other as it was.
#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
