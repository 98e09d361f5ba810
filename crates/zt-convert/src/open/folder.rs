//! Folders that are one checkpoint.

use std::path::{Path, PathBuf};

use zt::FileSource;

use crate::table::Kinds;

/// The file that describes a checkpoint of `torch.distributed.checkpoint`.
const METADATA: &str = ".metadata";

/// The file that opens the checkpoint of `torch.distributed.checkpoint` in a folder; `None` if the folder has
/// none.
#[must_use]
pub fn checkpoint_in(folder: impl AsRef<Path>) -> Option<PathBuf> {
    let path = folder.as_ref().join(METADATA);
    let source = FileSource::open(&path).ok()?;
    let kind = Kinds::builtin().detect(&source).ok()??;
    (kind.as_str() == "dcp").then_some(path)
}
