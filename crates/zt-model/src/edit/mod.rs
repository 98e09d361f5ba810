//! Room `edit`: files that are written anew to change them.
//!
//! It must not know who asks for the change, or when another program has the file locked.

use std::path::{Path, PathBuf};

use zt::foreign::AtomicFile;
use zt::{ByteOrder, Error, ErrorKind, File, Progress, Result, codes};
use zt_convert::{ConvertOptions, Input, Kinds, Summary};
use zt_foreign::AttributeChange;

use crate::examine::{EditedIndex, indexes_of, is_blob};

/// The kinds whose files are edited so. Their headers have no room for a journal, so that an edit in place could
/// leave a file that no program opens.
const KINDS: [&str; 2] = ["safetensors", "gguf"];

/// A file of safetensors or GGUF that is edited: it is written anew, and replaces the old one when it is complete.
pub struct Rewrite {
    path: PathBuf,
    input: Input,
}

impl Rewrite {
    /// The file that is open as `input`, if it is of a kind that is written anew; `None` for any other.
    ///
    /// # Errors
    ///
    /// Code `unsupported` for a sharded set, for a big-endian file, and for a file of a cache of the Hub.
    pub fn new(path: impl Into<PathBuf>, input: Input) -> Result<Option<Self>> {
        let path = path.into();
        if !KINDS.contains(&input.file().kind().as_str()) {
            return Ok(None);
        }
        let is_big = |file: &File| {
            let entries = file.entries().into_iter();
            let mut objects = entries.filter_map(|entry| entry.object().ok());
            objects.any(|object| {
                let mut components = object.components.iter();
                components.any(|(_, component)| component.byte_order == ByteOrder::Big)
            })
        };
        let what = if input.paths().len() > 1 {
            "a sharded set cannot be edited: edit a shard that an index names, or merge the files first"
        } else if is_big(input.file()) {
            "a big-endian file cannot be edited: convert it first"
        } else if is_blob(&path) {
            "a file of a cache of the Hub has its digest as its name: edit a copy"
        } else {
            return Ok(Some(Rewrite { path, input }));
        };
        let error = Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, what);
        Err(error.with_path(&path))
    }

    /// The file as it is.
    pub const fn file(&self) -> &File {
        self.input.file()
    }

    /// Writes the file with the objects for which `choose` gives a name, under these names, and with changed attributes.
    /// A `dry_run` writes nothing.
    ///
    /// # Errors
    ///
    /// Code `duplicate-name`; as [`Kinds::convert`] and [`AtomicFile`].
    pub fn commit(
        self,
        choose: impl FnMut(&str) -> Option<String>,
        attributes: Vec<AttributeChange>,
        kinds: &Kinds,
        dry_run: bool,
        progress: Progress<'_>,
    ) -> Result<Summary> {
        let Rewrite { path, input } = self;
        let (kind, paths) = (input.file().kind(), input.paths().to_vec());
        let write = || {
            let input = Input::new(input.into_file().select(choose)?, paths);
            let options = ConvertOptions::new(kind).attributes(attributes).progress(progress);
            if dry_run {
                return kinds.convert(std::slice::from_ref(&input), std::io::sink(), &options);
            }
            kinds.replace(input, AtomicFile::create(&path)?, &options)
        };
        write().map_err(|error| error.with_path(&path))
    }
}

/// The indexes that name the file at `path` as their shard, as they will be: see [`EditedIndex::new`].
///
/// # Errors
///
/// As [`indexes_of`] and [`EditedIndex::new`].
pub fn edited_indexes(
    path: impl AsRef<Path>,
    file: &File,
    new: impl Fn(&str) -> Option<String>,
) -> Result<Vec<EditedIndex>> {
    let path = path.as_ref();
    let removed = file.entries().into_iter().filter(|entry| new(entry.name()).is_none());
    let len = |tensor: zt::Tensor<'_>| {
        let lens = tensor.components().map(|(role, _)| tensor.decoded_len(role));
        lens.sum::<Result<u64>>().ok()
    };
    let lens = removed.filter_map(|entry| len(entry.tensor().ok()?));
    let removed = lens.fold(0, u64::saturating_add);
    let indexes = indexes_of(path)?.into_iter();
    indexes.map(|index| EditedIndex::new(index, path, removed, &new)).collect()
}
