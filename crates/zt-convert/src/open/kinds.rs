//! Recognises and opens files.

use std::path::Path;

use zt::foreign::Kind;
use zt::{Error, ErrorKind, Result, Source};
use zt_foreign::{Fault, FileKind, Folder, Input, InputOptions, Opening, Probe};

use crate::sets::IndexFile;
use crate::table::{self, Kinds};

impl Kinds {
    /// The kind of a file, by its bytes; `None` if no kind recognises it.
    ///
    /// A broken file may have a kind, too: opening it gives the error. A sharded set has the kind of
    /// its shards. Reads the first bytes, and all of a text that may be the index of a set.
    ///
    /// ```
    /// let source = zt::Memory::new(b"Dear all,");
    /// assert_eq!(zt_convert::Kinds::builtin().detect(&source)?, None);
    /// # Ok::<(), zt::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`] if the source cannot be read.
    pub fn detect(&self, source: &dyn Source) -> Result<Option<Kind>> {
        let probe = Probe::new(source)?;
        if let Some(index) = IndexFile::recognise(&probe)? {
            return Ok(Some(index.kind(self)));
        }
        Ok(self.recognise(&probe)?.map(FileKind::kind))
    }

    /// Opens the tensor file at `path`. The index of a sharded set opens the whole set. A folder stands for the
    /// checkpoint of `torch.distributed.checkpoint` that it is, also one in safetensors files; otherwise for the
    /// only index in it, or for its only tensor file.
    ///
    /// The file is read by position and never mapped: if it is cut while it is open, reading it is an
    /// error.
    ///
    /// # Errors
    ///
    /// Code `unknown-kind` if no kind recognises the file; the code of the rule that the file breaks;
    /// `unsupported` for a kind that the table does not have; `names` for a wrong list of names; `misuse` for a
    /// folder with no tensor file, or with several.
    pub fn open(&self, path: impl AsRef<Path>, options: impl Into<InputOptions>) -> Result<Input> {
        let (path, mut options) = (path.as_ref(), self.opening(options));
        let logical = options.logical.take();
        let input = self.open_path(path, &options)?;
        match logical {
            Some(logical) => self.logical(input, logical),
            None => Ok(input),
        }
    }

    fn open_path(&self, path: &Path, options: &InputOptions) -> Result<Input> {
        if path.is_dir() {
            return self.open_folder(path, options);
        }
        let opening = Opening::new(options).at(path);
        let open = |source| self.open_at(Box::new(source), opening);
        let opened = zt::foreign::open_settled(path, open).map_err(|error| {
            let known = table::of_path(path).map(Error::from);
            let link = || Fault::of_link(path).map(Error::from);
            known.or_else(link).unwrap_or(error)
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
        let mut options = self.opening(options);
        let logical = options.logical.take();
        let input = self.open_at(Box::new(source), Opening::new(&options))?;
        match logical {
            Some(logical) => self.logical(input, logical),
            None => Ok(input),
        }
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
        let (url, mut options) = (url.as_ref(), self.opening(options));
        let logical = options.logical.take();
        let mut opening = Opening::new(&options).at(url);
        opening.folder = Some(folder);
        let opened = self.open_at(Box::new(source), opening);
        let input = opened.map_err(|error| error.with_path(url))?;
        match logical {
            Some(logical) => self.logical_in(input, folder, logical),
            None => Ok(input),
        }
    }

    /// Opens a source as the kind that it is: the wished one, the one that its end or its beginning shows, or a
    /// set.
    fn open_at(&self, source: Box<dyn Source>, opening: Opening<'_>) -> Result<Input> {
        let wished = opening.options.kind.map(|kind| self.known(kind)).transpose()?;
        let is_wished = |kind: Kind| wished.is_none_or(|wished| wished.kind() == kind);
        let shown = self.of_end(&*source, &opening)?;
        if let Some(kind) = shown.filter(|kind| is_wished(kind.kind())) {
            return kind.open(source, opening);
        }
        let probe = Probe::new(&source)?;
        let index = IndexFile::recognise(&probe)?;
        if let Some(index) = index.filter(|index| is_wished(index.kind(self))) {
            return index.open(opening, self);
        }
        if wished.is_none()
            && let Some(kind) = self.recognise(&probe)?
        {
            drop(probe);
            return kind.open(source, opening);
        }
        self.open_unrecognised(wished, source, opening)
    }

    /// Opens a source as the wished kind, or as that of its extension: if the bytes fit no kind, this one gives
    /// a better error, `not-zt` in place of `unknown-kind`.
    fn open_unrecognised(
        &self,
        wished: Option<&dyn FileKind>,
        source: Box<dyn Source>,
        opening: Opening<'_>,
    ) -> Result<Input> {
        let probe = Probe::new(&source)?;
        let Some(kind) = wished.or_else(|| self.named(opening.path?)) else {
            return Err(self.unknown(&probe));
        };
        let mut mistake = table::find(&probe);
        if mistake.is_some() && (kind.recognise(&probe)? || kind.recognise_behind(&probe)?) {
            mistake = None;
        }
        drop(probe);
        match (kind.open(source, opening), mistake) {
            (Err(error), Some(mistake)) if error.kind() != ErrorKind::Io => Err(mistake.into()),
            (opened, _) => opened,
        }
    }

    /// The kind that the extension shows. Files of all sorts have the extensions of PyTorch, such as `.bin`.
    fn named(&self, path: &Path) -> Option<&dyn FileKind> {
        let kind = self.of_extension(path)?;
        self.get(kind.as_str()).filter(|_| kind.as_str() != "pytorch")
    }

    /// The kind of a file of a store, by its name and its end. The end came when the file was opened, and the
    /// beginning would be one more request.
    fn of_end(&self, source: &dyn Source, opening: &Opening<'_>) -> Result<Option<&dyn FileKind>> {
        let path = opening.path.filter(|_| source.is_remote());
        let kind = path.and_then(|path| self.of_extension(path));
        let kind = kind.map(|kind| self.known(kind)).transpose()?;
        if kind.map(|kind| kind.recognise_end(source)).transpose()? != Some(true) {
            return Ok(None);
        }
        // An archive may be of two kinds, and the name does not decide between them.
        for kind in self.iter() {
            if kind.recognise_end(source)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }
}
