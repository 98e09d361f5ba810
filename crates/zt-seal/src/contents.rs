//! Which files are sealed, and which of them are models.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use zt::{Error, Result};
use zt_convert::{CHECKPOINT_METADATA, FolderContents, Input, Kinds};

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
    /// `.metadata` of a checkpoint; links to folders; the blobs of a cache of the Hub, which its snapshots have;
    /// files that end in `.seal`, `.seal.parity` or `.sig`, which are about the others; and `output`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if a folder cannot be read; code `misuse` for a name that is not Unicode.
    pub fn of_folder(kinds: &Kinds, folder: &Path, output: Option<&Path>) -> Result<Self> {
        let mut contents = Contents::default();
        for (inner, files) in folders_in(folder, output)? {
            for path in &files {
                contents.files.push(name_of(path, folder)?);
            }
            for path in FolderContents::of(kinds, &inner)?.files {
                let is_slices = path == inner;
                if !is_slices && !files.contains(&path) {
                    continue;
                }
                let parts = if is_slices { kinds.slices_in(&path) } else { Vec::new() };
                let parts =
                    parts.iter().map(|part| name_of(part, folder)).collect::<Result<_>>()?;
                contents.models.push(Model { path: name_of(&path, folder)?, parts });
            }
        }
        contents.files.sort_unstable();
        contents.models.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(contents)
    }

    /// The paths of the files alone, sorted: which of them are models is not looked at.
    ///
    /// # Errors
    ///
    /// As [`Contents::of_folder`].
    pub fn names_in(folder: &Path, output: Option<&Path>) -> Result<Vec<String>> {
        let files = folders_in(folder, output)?.into_iter().flat_map(|(_, files)| files);
        let mut names = files.map(|path| name_of(&path, folder)).collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
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
        let name_in = |path: &PathBuf| {
            let name = relative(path, folder).filter(|name| !name.is_empty());
            name.ok_or_else(|| Error::from(Fault::Outside).with_path(path))
        };
        let mut files = input.paths().iter().map(name_in).collect::<Result<Vec<_>>>()?;
        let models = files.first().map(|first| Model { path: first.clone(), parts: Vec::new() });
        files.sort_unstable();
        files.dedup();
        Ok(Contents { files, models: models.into_iter().collect() })
    }
}

fn name_of(path: &Path, folder: &Path) -> Result<String> {
    let name = relative(path, folder);
    name.ok_or_else(|| Error::from(Fault::NotUnicode).with_path(path))
}

/// A folder, and the files in it that are sealed, sorted.
type FilesIn = (PathBuf, Vec<PathBuf>);

/// The folder and all folders below it.
fn folders_in(folder: &Path, output: Option<&Path>) -> Result<Vec<FilesIn>> {
    let output = output.and_then(|path| fs::canonicalize(path).ok());
    let is_output = |path: &Path| {
        output.as_ref().is_some_and(|it| fs::canonicalize(path).is_ok_and(|path| path == *it))
    };
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    // A stack, because folders may be nested deeper than calls.
    while let Some(inner) = folders.pop() {
        let blame = |error: io::Error| Error::from(error).with_path(&inner);
        let (mut files, mut below) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&inner).map_err(blame)? {
            let entry = entry.map_err(blame)?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.as_encoded_bytes();
            if name.starts_with(b".") && name != CHECKPOINT_METADATA.as_bytes() {
                continue;
            }
            let is_about =
                [&b".seal"[..], b".seal.parity", b".sig"].iter().any(|it| name.ends_with(it));
            if entry.file_type().map_err(blame)?.is_dir() {
                below.push(path);
            } else if !is_about && path.is_file() && !is_output(&path) {
                files.push(path);
            }
        }
        if below.contains(&inner.join("snapshots")) {
            let blobs = inner.join("blobs");
            below.retain(|path| *path != blobs);
        }
        files.sort_unstable();
        folders.append(&mut below);
        found.push((inner, files));
    }
    Ok(found)
}
