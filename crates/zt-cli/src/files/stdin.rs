//! Stdin in the place of a file: `-`.

use std::path::Path;

use crate::failure::Failure;

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses stdin where a file is changed or opened several times.
pub(crate) fn refuse_stdin(path: &Path) -> Result<(), Failure> {
    if is_stdin(path) {
        return Err(Failure::misuse("stdin is not possible here: give a file"));
    }
    Ok(())
}
