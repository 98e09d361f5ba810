//! The table of kinds, as a value.

use std::path::Path;
use std::sync::Arc;

use zt::foreign::Kind;
use zt::{Error, ErrorKind, Result, Source};
use zt_foreign::{Fault, FileKind, FileWriter, Folder, Input, InputOptions, Opening, Probe};

use crate::{Zt, mistakes, sets};

/// The kinds of files that are opened and written.
///
/// [`Kinds::builtin`] has all kinds of this build; [`Kinds::with`] adds one of your own.
///
/// ```
/// let kinds = zt_convert::Kinds::builtin();
/// assert_eq!(kinds.of_extension("out/Model.ZT".as_ref()), Some(zt_convert::ZT));
/// assert_eq!(kinds.of_extension("model.txt".as_ref()), None);
/// ```
#[derive(Clone)]
pub struct Kinds(Vec<Arc<dyn FileKind>>);

/// The kind that a file's bytes show.
enum Found<'k> {
    /// The index of a set, already read.
    Set(sets::IndexFile),
    /// A file of this kind.
    File(&'k dyn FileKind),
}

impl Kinds {
    /// The kinds of this build, one for each feature, and `.zt`.
    #[must_use]
    pub fn builtin() -> Self {
        // In the order in which files are tried: kinds with a magic before those without.
        Kinds(vec![
            Arc::new(Zt),
            #[cfg(feature = "zt2")]
            Arc::new(zt_ztensor2::ZTensor2),
            #[cfg(feature = "gguf")]
            Arc::new(zt_gguf::Gguf),
            #[cfg(feature = "pytorch")]
            Arc::new(zt_pytorch::PyTorch),
            #[cfg(feature = "npy")]
            Arc::new(zt_npy::Npy),
            #[cfg(feature = "npy")]
            Arc::new(zt_npy::Npz),
            #[cfg(feature = "squizd")]
            Arc::new(zt_squizd::Squizd),
            #[cfg(feature = "slm1")]
            Arc::new(zt_slm1::Slm1),
            #[cfg(feature = "hdf5")]
            Arc::new(zt_hdf5::Hdf5),
            #[cfg(feature = "onnx")]
            Arc::new(zt_onnx::Onnx),
            #[cfg(feature = "safetensors")]
            Arc::new(zt_safetensors::SafeTensors),
        ])
    }

    /// Adds a kind, which is tried before all others. It replaces a kind of the same name.
    #[must_use]
    pub fn with(mut self, kind: impl FileKind + 'static) -> Self {
        self.0.retain(|known| known.kind() != kind.kind());
        self.0.insert(0, Arc::new(kind));
        self
    }

    /// Every kind, in the order in which files are tried.
    pub fn iter(&self) -> impl Iterator<Item = &dyn FileKind> {
        self.0.iter().map(|kind| &**kind)
    }

    /// The kind with this name, if the table has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn FileKind> {
        self.iter().find(|kind| kind.kind().as_str() == name)
    }

    /// The kind of an output, by the extension of its path in any case: `.zt`, `.safetensors`. For an
    /// existing file, ask [`Kinds::detect`], which reads its bytes.
    #[must_use]
    pub fn of_extension(&self, path: &Path) -> Option<Kind> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let known = |kind: &&dyn FileKind| kind.extensions().contains(&extension.as_str());
        self.iter().find(known).map(FileKind::kind)
    }

    /// The kind of a file, by its bytes; `None` if no kind recognises it.
    ///
    /// A broken file may have a kind, too: opening it gives the error. A sharded set has the kind of
    /// its shards. Reads the first bytes, and all of a text that may be the index of a set.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the source cannot be read.
    pub fn detect(&self, source: &dyn Source) -> Result<Option<Kind>> {
        let found = self.recognise(&Probe::new(source)?)?;
        Ok(found.map(|found| match found {
            Found::Set(index) => index.kind(self),
            Found::File(kind) => kind.kind(),
        }))
    }

    /// Opens the tensor file at `path`. The index of a sharded set opens the whole set.
    ///
    /// The file is read by position and never mapped: if it is cut while it is open, reading it is an
    /// error.
    ///
    /// # Errors
    ///
    /// Code `unknown-kind` if no kind recognises the file; the code of the rule that the file breaks;
    /// `unsupported` for a kind that the table does not have; `names` for a wrong list of names.
    pub fn open(&self, path: impl AsRef<Path>, options: impl Into<InputOptions>) -> Result<Input> {
        let (path, options) = (path.as_ref(), &options.into());
        let opening = Opening {
            path: Some(path),
            folder: None,
            options,
        };
        let open = |source| self.open_at(Box::new(source), opening);
        let opened = zt::foreign::open_settled(path, open).map_err(|error| {
            // Only a folder has files in it, and no folder opens.
            mistakes::of_folder(path).map_or(error, Error::from)
        });
        opened.map_err(|error| error.with_path(path))
    }

    /// Opens a tensor file from any source: bytes in memory, a map, or your own. Components that are
    /// plain ranges of the source are lent from it.
    ///
    /// # Errors
    ///
    /// As [`Kinds::open`]; code `unsupported` for the index of a sharded set, because only a path
    /// leads to its shards.
    pub fn open_source(
        &self,
        source: impl Source + 'static,
        options: impl Into<InputOptions>,
    ) -> Result<Input> {
        let options = &options.into();
        let opening = Opening {
            path: None,
            folder: None,
            options,
        };
        self.open_at(Box::new(source), opening)
    }

    /// Opens a tensor file that is not on a disk of this machine, such as one of an object store. `url`
    /// names it in messages, and `folder` opens the files that it names: the shards of a set.
    ///
    /// # Errors
    ///
    /// As [`Kinds::open`].
    pub fn open_in(
        &self,
        source: impl Source + 'static,
        url: impl AsRef<Path>,
        folder: &dyn Folder,
        options: impl Into<InputOptions>,
    ) -> Result<Input> {
        let (url, options) = (url.as_ref(), &options.into());
        let opening = Opening {
            path: Some(url),
            folder: Some(folder),
            options,
        };
        let opened = self.open_at(Box::new(source), opening);
        opened.map_err(|error| error.with_path(url))
    }

    fn open_at(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let Some(wished) = opening.options.kind else {
            return self.open_by_bytes(source, opening);
        };
        let kind = self.known(wished)?;
        let probe = Probe::new(&source)?;
        match sets::IndexFile::recognise(&probe)? {
            Some(index) if index.kind(self) == wished => return index.open(opening, self),
            _ => {}
        }
        let mistake = match mistakes::find(&probe) {
            Some(_) if kind.recognise(&probe)? || kind.recognise_behind(&probe)? => None,
            mistake => mistake,
        };
        drop(probe);
        match (kind.open(source, opening), mistake) {
            (Err(error), Some(mistake)) if error.kind() != ErrorKind::Io => Err(mistake.into()),
            (opened, _) => opened,
        }
    }

    /// Opens a source as the kind that its bytes show. Ignores the kind in the options.
    pub(crate) fn open_by_bytes(
        &self,
        source: Box<dyn Source>,
        opening: Opening<'_>,
    ) -> Result<Input> {
        let probe = Probe::new(&source)?;
        let Some(found) = self.recognise(&probe)? else {
            let unknown = || Fault::UnknownKind {
                start: probe.head().iter().take(8).copied().collect(),
                known: self.names(|_| true),
            };
            return Err(mistakes::find(&probe).map_or_else(|| unknown().into(), Error::from));
        };
        drop(probe);
        match found {
            Found::Set(index) => index.open(opening, self),
            Found::File(kind) => kind.open(source, opening),
        }
    }

    fn recognise(&self, probe: &Probe<'_>) -> Result<Option<Found<'_>>> {
        if let Some(index) = sets::IndexFile::recognise(probe)? {
            return Ok(Some(Found::Set(index)));
        }
        for kind in self.iter() {
            if kind.recognise(probe)? {
                return Ok(Some(Found::File(kind)));
            }
        }
        for kind in self.iter() {
            if kind.recognise_behind(probe)? {
                return Ok(Some(Found::File(kind)));
            }
        }
        Ok(None)
    }

    fn known(&self, kind: Kind) -> Result<&dyn FileKind> {
        let known = self.get(kind.as_str());
        Ok(known.ok_or_else(|| Fault::NoSuchKind {
            kind,
            known: self.names(|_| true),
        })?)
    }

    /// The writer of files of `kind`.
    pub(crate) fn writer(&self, kind: Kind) -> Result<&dyn FileWriter> {
        let writer = self.known(kind)?.writer();
        Ok(writer.ok_or_else(|| Fault::NotWritable {
            kind,
            writable: self.names(|kind| kind.writer().is_some()),
        })?)
    }

    fn names(&self, wanted: fn(&dyn FileKind) -> bool) -> Vec<Kind> {
        let kinds = self.iter().filter(|kind| wanted(*kind));
        kinds.map(FileKind::kind).collect()
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds::builtin()
    }
}

impl std::fmt::Debug for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.iter().map(|kind| kind.kind().as_str());
        f.debug_list().entries(names).finish()
    }
}
