//! Folders that are one checkpoint.

use std::fs;
use std::path::{Path, PathBuf};

use zt::{FileSource, Result};
use zt_foreign::slices::SHARDING_INFO;
use zt_foreign::{Input, InputOptions};

use super::FolderContents;
use crate::merge::join_folder;
use crate::table::Kinds;

/// The file in a folder that describes a checkpoint of `torch.distributed.checkpoint`.
pub const CHECKPOINT_METADATA: &str = ".metadata";

/// Whether `HuggingFaceStorageWriter` of torch names the file of a process so:
/// `shard-00001-model-00001-of-00001.safetensors`.
pub fn is_named_as_slice(name: &str) -> bool {
    name.starts_with("shard-") && name.ends_with(".safetensors")
}

impl Kinds {
    /// The file that opens the checkpoint of `torch.distributed.checkpoint` in a folder; `None` if the folder has
    /// none.
    pub(super) fn checkpoint_in(&self, folder: &Path) -> Option<PathBuf> {
        let path = folder.join(CHECKPOINT_METADATA);
        let source = FileSource::open(&path).ok()?;
        let kind = self.detect(&source).ok()??;
        (kind.as_str() == "dcp").then_some(path)
    }

    /// The safetensors files in a folder that hold slices of tensors, sorted. The folder opens as one file of
    /// whole tensors.
    pub fn slices_in(&self, folder: impl AsRef<Path>) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut slices: Vec<PathBuf> = paths.filter(|path| self.is_slice(path)).collect();
        slices.sort_unstable();
        slices
    }

    fn is_slice(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let has_offsets = || {
            let input = self.open(path, InputOptions::new()).ok()?;
            let attributes = input.file().attributes().ok()??;
            Some(attributes.get(SHARDING_INFO).is_some())
        };
        name.is_some_and(is_named_as_slice) && has_offsets() == Some(true)
    }

    /// Opens the file that a folder stands for.
    pub(super) fn open_folder(&self, folder: &Path, options: &InputOptions) -> Result<Input> {
        if let Some(metadata) = self.checkpoint_in(folder) {
            return self.open(metadata, options);
        }
        let slices = self.slices_in(folder).into_iter();
        let slices: Vec<Input> =
            slices.map(|path| self.open(path, options)).collect::<Result<_>>()?;
        if slices.is_empty() {
            return self.open(FolderContents::of(self, folder)?.only(folder)?, options);
        }
        join_folder(&slices, folder)
    }
}
