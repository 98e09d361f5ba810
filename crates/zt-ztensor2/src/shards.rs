//! The files that the parts of a model lie in, when it has several. Spec: §7, Appendix B.
//!
//! A shard is named by a label. It is looked for where zTensor's own writer puts it: for a root
//! `<stem>.zt`, the shard `n` is `<stem>-<n>.zt` beside it. Its frame and its size are compared
//! with the root's table when it is opened, its parts' digests when they are read. The digest of
//! the file as a whole is not: that is a pass over files of which little may be wanted.
//!
//! A file without its shards opens: objects that lie in them are at fault.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zt::foreign::{FileBuilder, SourceId};
use zt::{Error, FileSource, Result, Source, Span};
use zt_foreign::Fault;

use crate::footer::{Footer, region};
use crate::manifest::Shard;
use crate::violation::Violation;

/// A file that blobs lie in.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) id: SourceId,
    pub(super) source: Arc<dyn Source>,
    /// Where blobs may lie.
    pub(super) region: Span,
}

/// The file itself and its shards, each opened when the first part in it is met.
pub(super) struct Homes<'a> {
    root: Home,
    path: Option<&'a Path>,
    table: &'a [Shard],
    opened: HashMap<String, Result<Home>>,
    paths: Vec<PathBuf>,
}

impl<'a> Homes<'a> {
    pub(super) fn new(root: Home, path: Option<&'a Path>, table: &'a [Shard]) -> Self {
        Homes {
            root,
            path,
            table,
            opened: HashMap::new(),
            paths: path.map(ToOwned::to_owned).into_iter().collect(),
        }
    }

    /// The file that a part lies in.
    ///
    /// # Errors
    ///
    /// Code `schema` where the table has no such shard; `io`, `bounds`, `unsupported` where it
    /// cannot be had; what its frame is refused for.
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

    /// Where the parts of a file may lie, as far as the root can say without opening it.
    pub(super) fn region(&self, shard: Option<&str>) -> Option<Span> {
        match shard {
            None => Some(self.root.region),
            Some(name) => self.listed(name).and_then(|shard| region(shard.byte_len)),
        }
    }

    /// All files that were opened.
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
        let unknown = || Violation::ShardUnknown {
            name: super::manifest::abridged(name),
        };
        let expected = self.listed(name).ok_or_else(unknown)?.byte_len;
        let root = self.path.ok_or(Fault::NeedsPath)?;
        // Which need not be text.
        let mut file_name = root.file_stem().unwrap_or_default().to_owned();
        file_name.push(format!("-{name}.zt"));
        let path = root.with_file_name(file_name);
        let open = || -> Result<(FileSource, Span)> {
            let source = FileSource::open(&path)?;
            let found = source.byte_len();
            if found != expected {
                return Err(Violation::ShardSize { expected, found }.into());
            }
            let footer = Footer::read(&source, builder.limits())?;
            Ok((source, footer.data))
        };
        let (source, region) = open().map_err(|error: Error| error.with_path(&path))?;
        let source: Arc<dyn Source> = Arc::new(source);
        self.paths.push(path);
        Ok(Home {
            id: builder.source(Arc::clone(&source)),
            source,
            region,
        })
    }
}
