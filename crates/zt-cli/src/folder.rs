//! The folder that the files of a command go to.

use std::fs;
use std::path::{Path, PathBuf};

use zt::Error;

use crate::exit::Failure;

/// A folder that is there. A command that fails leaves none behind that it has made.
pub(crate) struct Folder {
    made: Option<PathBuf>,
}

impl Folder {
    /// The folder of this name, made where there is none; the current one where the name is empty.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(Self::none());
        }
        if path.exists() {
            return Err(Failure::overwrite(path, "is no folder"));
        }
        fs::create_dir_all(path).map_err(|error| Error::from(error).with_path(path))?;
        Ok(Folder {
            made: Some(path.to_owned()),
        })
    }

    /// Of a command that needs none.
    pub(crate) const fn none() -> Self {
        Folder { made: None }
    }

    pub(crate) fn remove_if_made(&self) {
        if let Some(path) = &self.made {
            let _ = fs::remove_dir(path); // Which refuses where there is something in it.
        }
    }
}
