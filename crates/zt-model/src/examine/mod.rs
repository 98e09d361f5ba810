//! Whether the files of a folder make the model that its user believes in.
//!
//! Loaders serve a model with old or random weights if its files do not fit together, and say nothing. Each file
//! alone is sound. [`examine()`] reads headers, and reports what does not fit as [`Finding`]s.
//!
//! | module | finds |
//! | --- | --- |
//! | `folder` | lists the files of weights, by their names and headers |
//! | `sets` | shards, indices and files that do not belong together |
//! | `config` | weights that contradict `config.json` |
//! | `adapter` | adapters that are incomplete, or of another base |
//! | `blob` | a file of a cache of the Hub whose bytes are not those that its name promises |
//! | `index` | writes the index of shards that have none |
//!
//! It must not know: how a file is read or written.

mod adapter;
mod blob;
mod config;
mod folder;
mod index;
mod sets;

use std::path::{Path, PathBuf};

use zt::{Progress, Result};
use zt_foreign::Input;

pub use blob::{is_blob, verify_blob};
use folder::Folder;
pub use index::{EditedIndex, WrittenIndex, indexes_of, write_index};
use zt_convert::Kinds;

/// Something about the files of a model that its user should know, and that no single file shows.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// A stable kebab-case word, explained in `spec/warnings.md`.
    pub code: &'static str,
    /// The files that it is about: paths in the folder.
    pub files: Vec<PathBuf>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub advice: String,
}

impl Finding {
    /// Whether weights are missing or ambiguous for certain. Other findings may be intended.
    pub fn is_problem(&self) -> bool {
        matches!(self.code, "missing-shards" | "duplicate-tensor" | "adapter" | "adapter-base")
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.message, self.advice)
    }
}

/// How a folder is examined.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct ExamineOptions<'a> {
    values: bool,
    opened: &'a [Input],
    progress: Option<Progress<'a>>,
}

impl<'a> ExamineOptions<'a> {
    /// The defaults: headers only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compares the values of tensors that two shards have.
    pub const fn values(mut self, values: bool) -> Self {
        self.values = values;
        self
    }

    /// Files of the folder that are open, with all their objects: their headers are not read again.
    pub const fn opened(mut self, opened: &'a [Input]) -> Self {
        self.opened = opened;
        self
    }

    /// Reports compared bytes, of both shards.
    pub const fn progress(mut self, progress: Progress<'a>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// What does not fit together in a folder of weights, in the order of its causes: sets, `config.json`,
/// adapters. Folders within it are not looked into. A file that cannot be opened is passed over, because
/// opening it gives the error.
///
/// Cost: reads the header of every file of weights once, also of the base of an adapter if it is below the
/// folder or in the same cache of the Hub. Reads values only for [`ExamineOptions::values`].
///
/// # Errors
///
/// [`zt::ErrorKind::Io`] if the folder cannot be listed; [`zt::ErrorKind::Interrupted`].
pub fn examine(
    kinds: &Kinds,
    folder: impl AsRef<Path>,
    options: &ExamineOptions<'_>,
) -> Result<Vec<Finding>> {
    let folder = Folder::read(kinds, folder.as_ref(), options.opened)?;
    let mut findings = Vec::new();
    sets::examine(kinds, &folder, options, &mut findings)?;
    config::examine(&folder, &mut findings);
    adapter::examine(kinds, &folder, &mut findings);
    Ok(findings)
}
