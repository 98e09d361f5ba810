//! Sets of shards and their index, as the Hugging Face Hub keeps large models.
//!
//! ```text
//! model.safetensors.index.json   {"metadata": {..}, "weight_map": {tensor: file of this folder}}
//! model-00001-of-00002.safetensors
//! model-00002-of-00002.safetensors
//! ```
//!
//! A set is opened by its index, as one [`zt::File`], and written by [`Kinds::split`]. Its shards are of any
//! kind in the table, all of the same one.
//!
//! Holds what is true of sets of every kind. It knows the table of kinds, and no kind.

mod index;
mod plan;
mod shards;
mod split;
mod staging;
mod violation;

use zt::Result;
use zt::foreign::Kind;
use zt_foreign::{Input, Opening, Probe};

use crate::Kinds;
use index::{INDEX_MAX, Index};
pub use split::{Shard, Split};

/// The kind of most sets: of one whose index does not tell, too.
const USUAL: Kind = Kind::new("safetensors");

/// A file that is an index. It was read once; a fault in it is kept for the caller who opens it.
pub(crate) struct IndexFile(Result<Index>);

impl IndexFile {
    /// Reads an index; `None` for a file that is none: JSON text without a `weight_map`, or no text.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] while the file is recognised.
    pub(crate) fn recognise(probe: &Probe<'_>) -> Result<Option<Self>> {
        // A safetensors file whose length looks like text has a NUL in it, which no JSON has.
        let start = probe.head().get(..8).unwrap_or_default();
        let mut text = probe
            .head()
            .iter()
            .skip_while(|byte| byte.is_ascii_whitespace());
        if start.contains(&0)
            || text.next() != Some(&b'{')
            || !probe.contains(b"\"weight_map\"", INDEX_MAX)?
        {
            return Ok(None);
        }
        Ok(Some(IndexFile(Index::read(probe.source()))))
    }

    /// The kind of the shards, by the extension of the first one. What they are, only opening them
    /// tells.
    pub(crate) fn kind(&self, kinds: &Kinds) -> Kind {
        let first = self.0.as_ref().ok().and_then(|index| index.shards.first());
        first
            .and_then(|name| kinds.of_extension(name.as_ref()))
            .unwrap_or(USUAL)
    }

    /// Opens the set.
    pub(crate) fn open(self, opening: Opening<'_>, kinds: &Kinds) -> Result<Input> {
        shards::open(&self.0?, opening, kinds)
    }
}
