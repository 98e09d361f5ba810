//! The folder for the output files of a command.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use zt::Error;

use crate::failure::Failure;

/// A folder for output. When this is dropped, every folder that it made and that is still empty is
/// removed.
#[must_use]
pub(crate) struct Folder {
    /// The folders that were made, each within the one before.
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder and its parents where they do not exist. An empty path is the current folder.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        let mut folder = Self::none();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => folder.made.push(path.to_owned()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // Another process may have made it, and `a/..` exists as soon as `a` does.
                    if !path.is_dir() {
                        return Err(Failure::overwrite(path, "is not a folder"));
                    }
                }
                Err(error) => return Err(Error::from(error).with_path(path).into()),
            }
        }
        Ok(folder)
    }

    /// For a command that needs no folder.
    pub(crate) const fn none() -> Self {
        Folder { made: Vec::new() }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in self.made.iter().rev() {
            // The system refuses to remove a folder with anything in it.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}
