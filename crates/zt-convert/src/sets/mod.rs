//! Sets of shards and their index, as the Hugging Face Hub keeps large models.
//!
//! ```text
//! model.safetensors.index.json   {"metadata": {..}, "weight_map": {tensor: file of this folder}}
//! model-00001-of-00002.safetensors
//! model-00002-of-00002.safetensors
//! ```
//!
//! A set is opened by its index, as one [`zt::File`], and written by [`Kinds::split`](crate::Kinds::split). Its shards have
//! one kind, which may be any kind in the table.
//!
//! Sets whose files are numbered have no index. They are written here, too, and their kind opens them.
//!
//! It must not know: a particular kind, except that only `.zt` shares bytes.

mod index;
mod options;
mod plan;
mod replaced;
mod shards;
mod split;
mod staging;
mod store;
mod violation;

use std::path::{Path, PathBuf};

use zt::foreign::Kind;
use zt::{FileSource, Result};
use zt_foreign::{Input, Opening, Probe};

use crate::table::Kinds;
use index::INDEX_MAX;
pub use index::Index;
pub use options::{SplitOptions, parse_size, set_name};
pub use split::{Shard, Split};

/// The kind of most sets, assumed if the index does not show it.
const USUAL: Kind = Kind::new("safetensors");

/// The files that the index of a set at `path` lists, sorted, in the folder of the index; `None` for
/// any other file. None of them is opened, and some may not exist.
///
/// # Errors
///
/// [`zt::ErrorKind::Io`] if the file cannot be read; the code of the rule that the index breaks.
pub fn shards_of(path: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
    let path = path.as_ref();
    let shards = || {
        let source = FileSource::open(path)?;
        let Some(IndexFile(index)) = IndexFile::recognise(&Probe::new(&source)?)? else {
            return Ok(None);
        };
        let shards = index?.shards.into_iter();
        Ok(Some(shards.map(|name| path.with_file_name(name)).collect()))
    };
    shards().map_err(|error: zt::Error| error.with_path(path))
}

/// The index of a set, read once. Opening the set returns a fault in it.
pub(crate) struct IndexFile(Result<Index>);

impl IndexFile {
    /// Reads an index; `None` for any other file: JSON without a `weight_map`, or no text.
    pub(crate) fn recognise(probe: &Probe<'_>) -> Result<Option<Self>> {
        // The length in a safetensors file may look like text, but has a NUL.
        let has_nul = probe.head().iter().take(8).any(|byte| *byte == 0);
        let first = probe.head().trim_ascii_start().first();
        if has_nul || first != Some(&b'{') || !probe.contains(b"\"weight_map\"", INDEX_MAX)? {
            return Ok(None);
        }
        Ok(Some(IndexFile(Index::read(probe.source()))))
    }

    /// The kind of the shards, by the extension of the first one. Opening the set checks it.
    pub(crate) fn kind(&self, kinds: &Kinds) -> Kind {
        let first = self.0.as_ref().ok().and_then(|index| index.shards.first());
        first.and_then(|name| kinds.of_extension(name.as_ref())).unwrap_or(USUAL)
    }

    /// Opens the set.
    pub(crate) fn open(self, opening: Opening<'_>, kinds: &Kinds) -> Result<Input> {
        shards::open(&self.0?, opening, kinds)
    }
}
