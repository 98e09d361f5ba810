//! The folder that the files of a command go to.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use zt::Error;

use crate::failure::Failure;

/// A folder that is there, until this is dropped: then it goes again if it was made and nothing is
/// in it, and so do those around it.
#[must_use]
pub(crate) struct Folder {
    /// Those that were made, each within the one before.
    made: Vec<PathBuf>,
}

impl Folder {
    /// The folder of this name, made where there is none; the current one where the name is empty.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        let mut folder = Self::none();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => folder.made.push(path.to_owned()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // Others may have made it meanwhile, and `a/..` is there once `a` is.
                    if !path.is_dir() {
                        return Err(Failure::overwrite(path, "is no folder"));
                    }
                }
                Err(error) => return Err(Error::from(error).with_path(path).into()),
            }
        }
        Ok(folder)
    }

    /// Of a command that needs none.
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
