//! The contract of a kind of file.

use std::path::Path;

use zt::foreign::Kind;
use zt::{Attributes, Result, Source};

use crate::{Fault, Incoming, Input, InputOptions, Job, Merged, Opening, Probe, Sink};

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
        let path = None;
        self.open(source, Opening { path, options })
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
