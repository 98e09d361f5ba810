//! Which files are sealed, and which of them are models.

use std::fs;
use std::path::{Path, PathBuf};

use zt::{Error, Result};
use zt_convert::{FolderContents, Input, Kinds};

use crate::fault::Fault;
use crate::files::{Files, relative};

/// The files of a seal, below one folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Contents {
    /// Paths of all files, sorted.
    pub files: Vec<String>,
    /// The models among them.
    pub models: Vec<Model>,
}

/// A model among files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// The file that opens it, or the folder of `parts`.
    pub path: String,
    /// Files that together hold whole tensors. Empty for a model that one file opens.
    pub parts: Vec<String>,
}

impl Contents {
    /// All files of a folder, and of the folders in it. Left out are hidden files and folders, except the
    /// `.metadata` of a checkpoint; links to folders; files that end in `.seal` or `.sig`, which are about the
    /// others; and `output`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if a folder cannot be read; code `misuse` for a name that is not Unicode.
    pub fn of_folder(kinds: &Kinds, folder: &Path, output: Option<&Path>) -> Result<Self> {
        let output = output.and_then(|path| fs::canonicalize(path).ok());
        let is_output = |path: &Path| {
            output
                .as_ref()
                .is_some_and(|output| fs::canonicalize(path).is_ok_and(|it| it == *output))
        };
        let name_of = |path: &Path| {
            let name = relative(path, folder);
            name.ok_or_else(|| Error::from(Fault::NotUnicode).with_path(path))
        };
        let mut contents = Contents::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(inner) = folders.pop() {
            let found = FolderContents::of(kinds, &inner)?;
            for path in files_in(&inner)? {
                if !is_output(&path) {
                    contents.files.push(name_of(&path)?);
                }
            }
            for path in &found.files {
                let is_slices = *path == inner;
                let parts = if is_slices { kinds.slices_in(path) } else { Vec::new() };
                if is_output(path) {
                    continue;
                }
                let parts = parts.iter().map(|part| name_of(part)).collect::<Result<_>>()?;
                contents.models.push(Model { path: name_of(path)?, parts });
            }
            folders.extend(found.folders);
        }
        contents.files.sort_unstable();
        contents.models.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(contents)
    }

    /// One file, which is no model.
    pub fn of_file(name: impl Into<String>) -> Self {
        Contents { files: vec![name.into()], models: Vec::new() }
    }

    /// The bytes of all files; `None` for files of a store, which are not asked for it.
    pub fn byte_len(&self, files: &Files) -> Option<u64> {
        let len = |path: &String| Some(fs::metadata(files.path_of(path)).ok()?.len());
        self.files.iter().map(len).try_fold(0u64, |sum, len| sum.checked_add(len?))
    }

    /// The files that an open file is read from, which lie below `folder`.
    ///
    /// # Errors
    ///
    /// Code `misuse` for a file outside the folder, or with a name that is not Unicode.
    pub fn of_input(input: &Input, folder: &Path) -> Result<Self> {
        let name_of = |path: &PathBuf| {
            let name = relative(path, folder).filter(|name| !name.is_empty());
            name.ok_or_else(|| Error::from(Fault::Outside).with_path(path))
        };
        let mut files = input.paths().iter().map(name_of).collect::<Result<Vec<_>>>()?;
        let models = files.first().map(|first| Model { path: first.clone(), parts: Vec::new() });
        files.sort_unstable();
        files.dedup();
        Ok(Contents { files, models: models.into_iter().collect() })
    }
}

/// The regular files of a folder that are sealed.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let blame = |error: std::io::Error| Error::from(error).with_path(folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(blame)? {
        let entry = entry.map_err(blame)?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.as_encoded_bytes();
        let is_hidden =
            name.starts_with(b".") && name != zt_convert::CHECKPOINT_METADATA.as_bytes();
        let is_about = name.ends_with(b".seal") || name.ends_with(b".sig");
        if !is_hidden && !is_about && path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}
