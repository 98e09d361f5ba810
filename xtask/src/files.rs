//! Walking folders, always in the same order, and emptying them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Every file below `folder`, each folder's entries in the order of their names; empty where there
/// is no `folder`.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if folder.is_dir() {
        walk(folder, &mut found)?;
    }
    Ok(found)
}

/// `path` as seen from `root`, with forward slashes on every system.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).iter();
    parts.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// `folder`, there and empty.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::file(folder))?;
    }
    fs::create_dir_all(folder).map_err(Error::file(folder))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(Error::file(folder))?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
