//! How a kind of file is recognised and opened.

use std::path::Path;

use zt::foreign::Kind;
use zt::{Attributes, Result, Source};

use crate::contract::FileWriter;
use crate::faults::Fault;
use crate::open::{Input, InputOptions, Opening, Probe};
use crate::outgoing::AttributeChange;

/// One kind of file: how it is recognised, opened and written.
///
/// A new kind is a type that implements this trait; a table of kinds takes it as a value. With the feature
/// `test-kit`, `test_kit::check_kind` tests it in one call.
pub trait FileKind: Send + Sync {
    /// Its name in messages, in options and in [`zt::File::kind`].
    fn kind(&self) -> Kind;

    /// The extensions of its files in lower case, without the dot; the usual one first.
    fn extensions(&self) -> &'static [&'static str];

    /// The extensions of files whose reader begins at the end, where a manifest or the directory of an archive
    /// is. When such a file of a store is opened, its end is fetched first, which saves a request.
    fn read_from_end(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a file is meant to be of this kind, valid or not.
    ///
    /// A broken file is recognised too: [`FileKind::open`] then reports its fault.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the source cannot be read.
    fn recognise(&self, probe: &Probe<'_>) -> Result<bool>;

    /// Whether the end of a file shows that it is of this kind. For a file in a store, the
    /// table asks the kind that the name shows. If it agrees, the table asks every kind, in order. So the beginning
    /// of the file need not be read.
    ///
    /// # Errors
    ///
    /// As [`FileKind::recognise`].
    fn recognise_end(&self, _: &dyn Source) -> Result<bool> {
        Ok(false)
    }

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

    /// Opens a file, even if its bytes are not recognised. Components are ranges of `source` wherever
    /// the bytes allow it. `zt_convert::open` opens files of every kind.
    ///
    /// A read beyond the end of `source` is an error of the kind [`zt::ErrorKind::Io`], which blames the system.
    /// A file that is cut must blame the file: compare each length with [`Source::byte_len`] before you read, and
    /// return [`zt::ErrorKind::Malformed`] with the code [`zt::codes::TRUNCATED`].
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
        let opening = Opening::new(options).at(path);
        let open = |source| self.open(Box::new(source), opening);
        zt::foreign::open_settled(path, open).map_err(|error| error.with_path(path))
    }

    /// Opens a source without a path as a file of this kind, even if its bytes are not recognised.
    ///
    /// # Errors
    ///
    /// As [`FileKind::open`].
    fn open_source(&self, source: Box<dyn Source>, options: &InputOptions) -> Result<Input> {
        self.open(source, Opening::new(options))
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

    /// Sets an attribute of a file of this kind to the first value of `change` that it can represent.
    ///
    /// # Errors
    ///
    /// Code `misuse` if it can represent none, or has no such type.
    fn set_attribute(&self, attributes: &mut Attributes, change: &AttributeChange) -> Result<()> {
        if let Some(value_type) = &change.value_type {
            let value_type = value_type.clone();
            return Err(Fault::NoAttributeType { value_type }.into());
        }
        if let Some(value) = change.values.first() {
            attributes.insert(change.key.as_str(), value.clone());
        }
        Ok(())
    }

    /// How files of this kind are written; `None` for a kind that is only read.
    fn writer(&self) -> Option<&dyn FileWriter> {
        None
    }
}
