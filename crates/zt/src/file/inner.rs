//! The state of an open file, which its handles share.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use zt_container::{Limits, Source};
use zt_formats::Registry;

use crate::cores::scratch::Pool;
use crate::error::Error;
use crate::file::catalog::Catalog;
use crate::file::chunks::Tables;
use crate::file::direct::past_cache;
use crate::file::kind::Kind;
use crate::file::value_rule::Tolerated;
use crate::file::verified_blobs::Verified;
use crate::file::warning::Warning;

/// When the digest of a component is compared with its stored bytes.
///
/// ```
/// # let mut bytes = Vec::new();
/// # zt::Writer::new(&mut bytes)?.finish()?;
/// use zt::{OpenOptions, Verify};
///
/// // For a file that was verified a moment ago.
/// let file = OpenOptions::new().verify(Verify::Never).open_bytes(bytes)?;
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Verify {
    /// On its first full read, from a map as from a file; later reads trust the first. A read of a part
    /// of a raw component checks the chunk digests that the part touches, if there are any, each once.
    #[default]
    OnRead,
    /// On every full read, and on every read of a part that has chunk digests.
    Always,
    /// Never, other than by [`File::verify`](crate::File::verify).
    Never,
}

pub(crate) struct Inner {
    pub(crate) kind: Kind,
    pub(crate) catalog: Catalog,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    /// Of a source that is one of several files: its path, for errors.
    pub(super) paths: Vec<Option<Arc<Path>>>,
    /// The same sources past the page cache, opened when they are needed.
    pub(super) past_cache: Vec<OnceLock<Option<Box<dyn Source>>>>,
    /// Of all files together. Sources that were made are no files.
    pub(super) byte_len: u64,
    pub(crate) registry: Registry,
    pub(crate) limits: Limits,
    pub(crate) verify: Verify,
    /// The blobs whose digests were found right.
    pub(crate) verified: Verified,
    /// The tables of chunk digests, and the chunks that were found right.
    pub(super) chunks: Tables,
    /// Memory for decoding, used again for the next pieces.
    pub(crate) pool: Pool,
    /// Remarks of another format's reader, and about an edit that has not finished.
    pub(crate) remarks: Vec<Warning>,
    /// Faults that the reader of another kind tolerates.
    pub(crate) tolerated: Tolerated,
    /// The end of a file of another kind is missing.
    pub(crate) truncated: Option<Error>,
}

impl Inner {
    /// The path of a source that is one of several files.
    pub(crate) fn path_of(&self, source: usize) -> Option<&Path> {
        self.paths.get(source)?.as_deref()
    }

    /// The source of this number; with `past`, past the page cache where that is possible.
    pub(super) fn source(&self, at: usize, past: bool) -> Option<&dyn Source> {
        let source = self.sources.get(at)?;
        let opened = self.past_cache.get(at).filter(|_| past);
        let direct = opened.and_then(|it| it.get_or_init(|| past_cache(source)).as_deref());
        Some(direct.unwrap_or(&**source))
    }
}

/// The sources of a file, and the remarks of its reader.
#[derive(Default)]
pub(crate) struct Origin {
    pub(crate) sources: Vec<Arc<dyn Source>>,
    /// As long as `sources`, or empty.
    pub(crate) paths: Vec<Option<Arc<Path>>>,
    pub(crate) byte_len: u64,
    pub(crate) remarks: Vec<Warning>,
    pub(crate) tolerated: Tolerated,
    pub(crate) truncated: Option<Error>,
}
