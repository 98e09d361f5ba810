//! The shards of a file: other files with its parts. Spec: §7, Appendix B.
//!
//! A shard is named by a label. For a root `<stem>.zt`, the shard `n` is `<stem>-<n>.zt` beside it, as
//! zTensor's own writer names it. Opening a shard checks its footer and its size; reading a part checks
//! the part's digest. The digest of the whole shard is not checked, because that would read all of it.
//!
//! A file opens without its shards. The objects in missing shards are faulty.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::{Error, FileSource, Result, Source, Span};
use zt_foreign::{Fault, Opening, beside, leads_out, open_one};

use crate::footer::{Footer, region};
use crate::manifest::Shard;
use crate::violation::Violation;

/// A file with blobs.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) id: SourceId,
    pub(super) source: Arc<dyn Source>,
    /// The region of blobs.
    pub(super) region: Span,
}

/// The file itself and its shards. A shard is opened for its first part.
pub(super) struct Homes<'a> {
    root: Home,
    opening: Opening<'a>,
    table: &'a [Shard],
    opened: HashMap<String, Result<Home>>,
    paths: Vec<PathBuf>,
}

impl<'a> Homes<'a> {
    pub(super) fn new(root: Home, opening: Opening<'a>, table: &'a [Shard]) -> Self {
        Homes { root, opening, table, opened: HashMap::new(), paths: opening.paths() }
    }

    /// The file with a part. The table must have a shard and its size, and the file must have a
    /// path.
    pub(super) fn get(&mut self, shard: Option<&str>, builder: &mut FileBuilder) -> Result<Home> {
        let Some(name) = shard else {
            return Ok(self.root.clone());
        };
        if let Some(known) = self.opened.get(name) {
            return known.clone();
        }
        let home = self.open(name, builder);
        self.opened.insert(name.to_owned(), home.clone());
        home
    }

    /// The region of blobs in a file, computed from the root without opening the file.
    pub(super) fn region(&self, shard: Option<&str>) -> Option<Span> {
        match shard {
            None => Some(self.root.region),
            Some(name) => self.listed(name).and_then(|shard| region(shard.byte_len)),
        }
    }

    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        self.paths
    }

    fn listed(&self, name: &str) -> Option<&'a Shard> {
        // In the order of the manifest's keys: by length, then by bytes.
        let order = |shard: &Shard| {
            let known = shard.name.as_str();
            (known.len(), known).cmp(&(name.len(), name))
        };
        let place = self.table.binary_search_by(order).ok()?;
        self.table.get(place)
    }

    fn open(&mut self, name: &str, builder: &mut FileBuilder) -> Result<Home> {
        let unknown = || Violation::ShardUnknown { name: crate::manifest::abridged(name) };
        let expected = self.listed(name).ok_or_else(unknown)?.byte_len;
        let root = self.opening.path.ok_or(Fault::NeedsPath)?;
        // The name need not be UTF-8.
        let mut file_name = root.file_stem().unwrap_or_default().to_owned();
        file_name.push(format!("-{name}.zt"));
        let path = beside(root, &file_name);
        let open = || -> Result<(Box<dyn Source>, Span)> {
            let source: Box<dyn Source> = match self.opening.folder {
                Some(folder) => open_one(folder, &file_name.to_string_lossy())?,
                None if !self.opening.options.follow_links && leads_out(root, &path) => {
                    return Err(Violation::ShardLink.into());
                }
                None => Box::new(FileSource::open(&path)?),
            };
            let found = source.byte_len();
            if found != expected {
                return Err(Violation::ShardSize { expected, found }.into());
            }
            let footer = Footer::read(&source, builder.limits())?;
            Ok((source, footer.data))
        };
        let (source, region) = open().map_err(|error: Error| error.with_path(&path))?;
        let source: Arc<dyn Source> = source.into();
        self.paths.push(path);
        Ok(Home { id: builder.source(Arc::clone(&source)), source, region })
    }
}
