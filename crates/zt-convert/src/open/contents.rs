//! The tensor files in a folder.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use zt::{Error, ErrorKind, FileSource, OpenOptions, Result, Source, codes};

use crate::sets::shards_of;
use crate::table::{self, Kinds};

/// What is in a folder, each list sorted by name. Hidden files and folders are passed over,
/// except the `.metadata` of a checkpoint.
#[derive(Debug, Default)]
pub struct FolderContents {
    /// Each index of a sharded set, and each tensor file that neither an index nor the first file of a set
    /// names. The `.metadata` of a checkpoint is an index. The folder itself stands for its files that hold
    /// slices of tensors.
    pub files: Vec<PathBuf>,
    /// The indices among `files`.
    sets: Vec<PathBuf>,
    /// The folders, except for links to folders: they may go in circles.
    pub folders: Vec<PathBuf>,
}

impl FolderContents {
    /// Looks into a folder. A file belongs to the list if its bytes show one of the `kinds`, or if its name does,
    /// so that a damaged file is reported and not passed over.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the folder cannot be read.
    pub fn of(kinds: &Kinds, folder: &Path) -> Result<Self> {
        let of_folder = |error: io::Error| Error::from(error).with_path(folder);
        let mut contents = FolderContents::default();
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(of_folder)? {
            let entry = entry.map_err(of_folder)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                contents.folders.push(path);
            } else if !path.is_dir() {
                files.push(path);
            }
        }
        contents.folders.sort_unstable();
        // A cache of the Hugging Face Hub: the files in `snapshots` are links to those in `blobs`.
        if contents.folders.contains(&folder.join("snapshots")) {
            let blobs = folder.join("blobs");
            contents.folders.retain(|path| *path != blobs);
        }
        files.sort_unstable();
        let sets = files.iter().filter(|path| is_index(path, kinds));
        contents.sets = sets.cloned().collect();
        if let Some(metadata) = kinds.checkpoint_in(folder) {
            // Its files have no meaning without it.
            files.retain(|path| path.extension().is_none_or(|it| it != "distcp"));
            files.insert(0, metadata.clone());
            contents.sets.insert(0, metadata);
        }
        let shards = contents.sets.iter().filter_map(|path| {
            // Opening an index that cannot be read gives the error.
            shards_of(path).unwrap_or_default()
        });
        let shards: HashSet<PathBuf> = shards.flatten().collect();
        files.retain(|path| {
            contents.sets.binary_search(path).is_ok()
                || !shards.contains(path) && is_tensor_file(path, kinds)
        });
        // A set without an index: opening its first file opens the others.
        let further: HashSet<PathBuf> = files
            .iter()
            .filter(|path| path.to_string_lossy().contains("-00001-of-"))
            .filter_map(|path| kinds.open(path, OpenOptions::new()).ok())
            .flat_map(|input| input.paths().iter().skip(1).cloned().collect::<Vec<_>>())
            .collect();
        files.retain(|path| !further.contains(path));
        let slices = kinds.slices_in(folder);
        if !slices.is_empty() {
            files.retain(|path| !slices.contains(path));
            files.insert(0, folder.to_owned());
        }
        contents.files = files;
        Ok(contents)
    }

    /// The file that the folder stands for where a command takes one: the only index of a set, or
    /// else the only tensor file.
    ///
    /// # Errors
    ///
    /// Code `misuse` if it has several, and as [`FolderContents::has_none`].
    pub fn only(mut self, folder: &Path) -> Result<PathBuf> {
        if let [set] = &self.sets[..] {
            return Ok(set.clone());
        }
        if self.files.len() == 1 {
            return Ok(self.files.remove(0));
        }
        if self.files.is_empty() {
            return Err(self.has_none(folder));
        }
        let message = format!(
            "the folder has {} tensor files: {}; give one of them",
            self.files.len(),
            names(&self.files)
        );
        Err(misuse(message, folder))
    }

    /// The error of a folder without a tensor file. If another program wrote the folder, such as a Zarr
    /// store, it says what to do.
    pub fn has_none(&self, folder: &Path) -> Error {
        if let Some(mistake) = table::of_path(folder) {
            return Error::from(mistake).with_path(folder);
        }
        let mut message = "the folder has no tensor file".to_owned();
        if !self.folders.is_empty() {
            let folders = names(&self.folders);
            message.push_str(&format!("; give one of its folders: {folders}"));
        }
        misuse(message, folder)
    }
}

fn misuse(message: String, folder: &Path) -> Error {
    Error::new(ErrorKind::Misuse, codes::MISUSE, message).with_path(folder)
}

/// The names of the first files.
fn names(paths: &[PathBuf]) -> String {
    /// As many names as fit a few lines.
    const NAMES: usize = 10;
    let names = paths.iter().take(NAMES).filter_map(|path| path.file_name());
    let names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    let more = if paths.len() > NAMES { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Whether the file is the index of a set: `model.safetensors.index.json`, or any such name with the
/// contents of an index.
fn is_index(path: &Path, kinds: &Kinds) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    // The index of Keras, whose shards are `model_00000.weights.h5` and so on.
    if name.is_some_and(|name| name.ends_with(".weights.json")) {
        return matches!(shards_of(path), Ok(Some(_)));
    }
    let stem = name.and_then(|name| name.strip_suffix(".index.json"));
    stem.is_some_and(|stem| {
        kinds.of_extension(stem.as_ref()).is_some() || !matches!(shards_of(path), Ok(None))
    })
}

fn is_tensor_file(path: &Path, kinds: &Kinds) -> bool {
    let extension = path.extension();
    // Files of all sorts are named `.bin`.
    let is_bin = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("bin"));
    if !is_bin && kinds.of_extension(path).is_some() {
        return true;
    }
    let source = FileSource::open(path);
    source.is_ok_and(|source| {
        let is_missing_model = || is_bin && is_lfs_pointer(&source);
        matches!(kinds.detect(&source), Ok(Some(_))) || is_missing_model()
    })
}

/// Whether Git LFS has left a pointer in place of the file.
fn is_lfs_pointer(source: &FileSource) -> bool {
    const BEGINNING: &[u8] = b"version https://git-lfs.github.com/spec/";
    let mut head = [0; BEGINNING.len()];
    source.read_at(0, &mut head).is_ok() && head == BEGINNING
}
