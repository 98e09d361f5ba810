//! What a kind gets with a source.

use std::path::{Path, PathBuf};

use zt::foreign::{FileBuilder, Kind};
use zt::{File, Result};

use crate::open::{Folder, Input, InputOptions};

/// The path of a source, and the options with which it is opened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Opening<'a> {
    /// The path or the URL of the file; `None` for a source that has none.
    pub path: Option<&'a Path>,
    /// The folder of a file that is not on a disk of this machine; `None` for one that is.
    pub folder: Option<&'a dyn Folder>,
    /// The options of the caller.
    pub options: &'a InputOptions,
}

impl<'a> Opening<'a> {
    /// A source without a path.
    pub const fn new(options: &'a InputOptions) -> Self {
        Opening { path: None, folder: None, options }
    }

    /// The same with the path of the source.
    pub const fn at(self, path: &'a Path) -> Self {
        Opening { path: Some(path), ..self }
    }

    /// Starts a file of `kind` that obeys the options.
    pub fn builder(&self, kind: Kind) -> FileBuilder {
        FileBuilder::new(kind, self.options.open.clone())
    }

    /// The file of `builder`, which is read from the one path that was opened.
    ///
    /// # Errors
    ///
    /// As [`FileBuilder::build`].
    pub fn build(&self, builder: FileBuilder) -> Result<Input> {
        Ok(self.input(builder.build()?))
    }

    /// A file that is read from the one path that was opened.
    pub fn input(&self, file: File) -> Input {
        Input::new(file, self.paths())
    }

    /// The path as a list, which is empty for a source without a path. A kind that reads further
    /// files appends theirs.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.path.map(ToOwned::to_owned).into_iter().collect()
    }
}
