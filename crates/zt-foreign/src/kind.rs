//! The contract of a kind of file, and what a kind gets to recognise and to open a file.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use zt::container::memory::in_memory;
use zt::foreign::{FileBuilder, Kind};
use zt::{Attributes, File, Result, Source};

use crate::{Fault, Folder, Incoming, Input, InputOptions, Job, Merged, Sink};

/// Bytes that the kinds look at first: enough for every magic. The magic of tar is at 257.
const HEAD: usize = 512;

/// One kind of file: how it is recognised, opened and written.
///
/// A new kind is a type that implements this trait; a table of kinds takes it as a value.
pub trait FileKind: Send + Sync {
    /// Its name in messages, in options and in [`zt::File::kind`].
    fn kind(&self) -> Kind;

    /// The extensions of its files in lower case, without the dot; the usual one first.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file is meant to be of this kind, valid or not.
    ///
    /// A broken file is recognised too: [`FileKind::open`] then reports its fault.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the source cannot be read.
    fn recognise(&self, probe: &Probe<'_>) -> Result<bool>;

    /// Whether a file of this kind follows other data, such as an archive after a program.
    ///
    /// The table asks this only if no kind recognises the file, because any file may contain such
    /// bytes in its data.
    ///
    /// # Errors
    ///
    /// As [`FileKind::recognise`].
    fn recognise_behind(&self, _: &Probe<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Opens a file. Components are ranges of `source` wherever the bytes allow it.
    ///
    /// # Errors
    ///
    /// The rule that the file breaks; [`zt::ErrorKind::Io`].
    fn open(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input>;

    /// Opens the file at `path` as one of this kind, even if its bytes are not recognised. It is read
    /// by position and never mapped.
    ///
    /// # Errors
    ///
    /// As [`FileKind::open`].
    fn open_path(&self, path: &Path, options: &InputOptions) -> Result<Input> {
        let opening = Opening {
            path: Some(path),
            folder: None,
            options,
        };
        let open = |source| self.open(Box::new(source), opening);
        zt::foreign::open_settled(path, open).map_err(|error| error.with_path(path))
    }

    /// Opens a source without a path as a file of this kind, even if its bytes are not recognised.
    ///
    /// # Errors
    ///
    /// As [`FileKind::open`].
    fn open_source(&self, source: Box<dyn Source>, options: &InputOptions) -> Result<Input> {
        let opening = Opening {
            path: None,
            folder: None,
            options,
        };
        self.open(source, opening)
    }

    /// Prepares the attributes of several files for a merge: removes those that hold for one file
    /// only, and joins those that would conflict. `files` has the attributes of every input, in
    /// order. Returns whether all files are parts of one set.
    fn merge_attributes(&self, _files: &mut [Attributes]) -> bool {
        false
    }

    /// Keys of attributes that only files of this kind and `.zt` files understand.
    fn own_attributes(&self) -> &'static [&'static str] {
        &[]
    }

    /// How files of this kind are written; `None` for a kind that is only read.
    fn writer(&self) -> Option<&dyn FileWriter> {
        None
    }
}

/// How files of a kind are written.
pub trait FileWriter {
    /// Writes the objects of `merged` to `sink`. For anything that the kind cannot represent,
    /// [`Job::accept`] gives an error or a warning.
    ///
    /// # Errors
    ///
    /// A loss that is not allowed; the fault of an object; [`zt::ErrorKind::Io`].
    fn write(&self, merged: Merged<'_>, sink: &mut Sink<'_>, job: &mut Job<'_>) -> Result<()>;

    /// Whether files of this kind can be written as sets of shards.
    fn has_sets(&self) -> bool {
        false
    }

    /// Bytes of an object's values in a shard, before compression; `None` if the object is left
    /// out. Called only for kinds that [have sets](FileWriter::has_sets).
    ///
    /// # Errors
    ///
    /// As [`FileWriter::write`].
    fn shard_len(&self, _object: &Incoming<'_>, job: &mut Job<'_>) -> Result<Option<u64>> {
        Err(Fault::NoSets { kind: job.target }.into())
    }
}

/// A file of unknown kind and its first bytes.
pub struct Probe<'s> {
    source: &'s dyn Source,
    head: Vec<u8>,
}

impl<'s> Probe<'s> {
    /// Reads the first bytes of `source`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn new(source: &'s dyn Source) -> Result<Self> {
        let mut head = vec![0; in_memory(source.byte_len().min(HEAD as u64))];
        source.read_at(0, &mut head)?;
        Ok(Probe { source, head })
    }

    /// The first 512 bytes; all of a smaller file.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file, for kinds that need more than its beginning.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        self.source
    }

    /// Bytes of the file.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    /// Whether `needle`, a word of a few bytes, occurs in the first `limit` bytes. Reads 64 KiB at a
    /// time.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn contains(&self, needle: &[u8], limit: u64) -> Result<bool> {
        const PIECE: usize = 64 << 10;
        let end = self.byte_len().min(limit);
        // Pieces overlap, so that a needle on their border is whole in one of them.
        let step = PIECE.strict_sub(needle.len()).strict_add(1);
        let mut piece = Vec::new();
        for offset in (0..end).step_by(step) {
            let left = end.strict_sub(offset);
            piece.resize(in_memory(left.min(PIECE as u64)), 0);
            self.source.read_at(offset, &mut piece)?;
            if piece.windows(needle.len()).any(|window| window == needle) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The path of a source, and the options with which it is opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The path or the URL of the file; `None` for a source that has none.
    pub path: Option<&'a Path>,
    /// The folder of a file that is not on a disk of this machine; `None` for one that is.
    pub folder: Option<&'a dyn Folder>,
    /// The options of the caller.
    pub options: &'a InputOptions,
}

impl Opening<'_> {
    /// Starts a file of `kind` that obeys the options.
    #[must_use]
    pub fn builder(&self, kind: Kind) -> FileBuilder {
        FileBuilder::new(kind, self.options.open.clone())
    }

    /// The file of `builder`, which is read from the one path that was opened.
    ///
    /// # Errors
    ///
    /// As [`FileBuilder::build`].
    pub fn build(&self, builder: FileBuilder) -> Result<Input> {
        Ok(self.input(builder.build()?))
    }

    /// A file that is read from the one path that was opened.
    #[must_use]
    pub fn input(&self, file: File) -> Input {
        Input::new(file, self.paths())
    }

    /// The path as a list, which is empty for a source without a path. A kind that reads further
    /// files appends theirs.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.path.map(ToOwned::to_owned).into_iter().collect()
    }
}
