//! Folders that are not on the disk of this machine, such as those of an object store.

use std::fmt;

use zt::{Result, Source};

/// What [`Folder::open`] finds at a location; `None` for nothing.
pub type Opened = Result<Option<Box<dyn Source>>>;

/// The folder of an open file, which opens the files that this one names.
///
/// The file may be a stranger's. So a folder opens only what is below it, and a location is a list of
/// names with `/` between them, none of which is empty, `.` or `..`.
pub trait Folder: fmt::Debug + Send + Sync {
    /// Opens the file at each location. The results are in the order of the locations.
    fn open(&self, locations: &[&str]) -> Vec<Opened>;
}

/// Opens the file `name` in `folder`, without a folder of its own.
///
/// # Errors
///
/// As [`Folder::open`]. A missing file is an error.
pub fn open_one(folder: &dyn Folder, name: &str) -> Result<Box<dyn Source>> {
    let opened = folder.open(&[name]).pop().unwrap_or(Ok(None))?;
    Ok(opened.ok_or_else(missing)?)
}

fn missing() -> std::io::Error {
    std::io::ErrorKind::NotFound.into()
}
