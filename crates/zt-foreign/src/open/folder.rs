//! Folders that are not on the disk of this machine, such as those of an object store.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use zt::{Result, Source};

/// What [`Folder::open`] finds at a location; `None` for nothing.
pub type Opened = Result<Option<Box<dyn Source>>>;

/// The folder of an open file, which opens the files that this one names.
///
/// The file may be a stranger's. So a folder opens only what is below it, and a location is a list of
/// names with `/` between them. None is empty, `.` or `..`.
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

/// A file that exists where one is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and writing is an error.
    Refused,
    /// It is replaced.
    Replaced,
}

/// A folder that the files of a set are written to, one after the other. All names are plain.
pub trait TargetFolder: Folder {
    /// The path or the URL of the file `name`, for people.
    fn path_of(&self, name: &str) -> PathBuf;

    /// Whether there is a file `name`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the store gives no answer.
    fn contains(&self, name: &str) -> Result<bool>;

    /// Writes the file `name`, which appears as a whole after `write` has succeeded.
    ///
    /// # Errors
    ///
    /// Code `overwrite` if it exists and [`Existing::Refused`] is given; [`zt::ErrorKind::Io`]; as `write`.
    fn write(
        &self,
        name: &str,
        existing: Existing,
        write: &mut dyn FnMut(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()>;

    /// Removes the file `name`, also while the program ends because of a signal.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    fn remove(&self, name: &str) -> Result<()>;
}

fn missing() -> std::io::Error {
    std::io::ErrorKind::NotFound.into()
}
