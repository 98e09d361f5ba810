//! A path, a folder, a URL or `-`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use zt::{Error, Result};
use zt_convert::{ConvertOptions, Input, InputOptions, Split, SplitOptions, Summary};
use zt_foreign::{Fault, is_url, without_secrets};

use crate::delta::{Patch, is_delta};
use crate::location::store::Url;
use crate::location::{LocationOptions, stdin};

/// What a user typed in the place of a file. It is shown without the secrets of a URL.
///
/// | typed | file |
/// | --- | --- |
/// | a path | the file, of any kind; the index of a sharded set opens the set |
/// | a folder | the checkpoint that it is; otherwise the only set in it, or its only tensor file |
/// | `s3://`, `gs://`, `az://`, `https://`, `hf://`, `file://` | the object of a store, with the feature `remote`; the folder of a checkpoint opens it |
/// | `-` | stdin, once in a process |
///
/// ```
/// use zt_model::Location;
///
/// let location = Location::new("https://host/model.zt?signature=Zm9v");
/// assert!(location.is_url());
/// assert_eq!(location.to_string(), "https://host/model.zt?…");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    /// The path; for messages, if it is not one.
    path: PathBuf,
    place: Place,
}

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Path,
    Url(Url),
    Stdin,
}

impl Location {
    /// The place that `typed` means. It need not exist.
    pub fn new(typed: impl AsRef<OsStr>) -> Self {
        let typed = typed.as_ref();
        match typed.to_str() {
            Some("-") => Location { path: typed.into(), place: Place::Stdin },
            Some(text) if is_url(text) => Self::url(text, without_secrets(text)),
            _ => Location { path: typed.into(), place: Place::Path },
        }
    }

    /// The place at a URL, which is shown as `shown`: so two that differ in their secrets are told apart.
    pub fn url(url: impl Into<String>, shown: impl Into<PathBuf>) -> Self {
        Location { path: shown.into(), place: Place::Url(Url(url.into())) }
    }

    /// The path; of another place, the text that is shown for it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a URL.
    pub const fn is_url(&self) -> bool {
        matches!(self.place, Place::Url(_))
    }

    /// Whether it is stdin.
    pub const fn is_stdin(&self) -> bool {
        matches!(self.place, Place::Stdin)
    }

    /// Opens the file, whatever its kind. If it is a delta and the options have a base, gives what it makes of
    /// that.
    ///
    /// # Errors
    ///
    /// As [`Kinds::open`](zt_convert::Kinds::open) and [`Patch::open`]. Code `unsupported` for a URL without the
    /// feature `remote`; `misuse` if stdin was read before.
    pub fn open(&self, options: &LocationOptions<'_>) -> Result<Input> {
        let input = self.open_alone(&options.input, options)?;
        let Some((base, earlier)) = options.base.split_first() else {
            return Ok(input);
        };
        if !is_delta(input.file()) {
            return Ok(input);
        }
        let of_base = options.input.clone().kind(None);
        let whole = |location: &Location| {
            let input = location.open_alone(&of_base, options)?;
            match input.file().truncated() {
                Some(error) => Err(input.blame(error.clone())),
                None => Ok(input),
            }
        };
        let base = whole(base)?;
        let mut deltas: Vec<Input> = earlier.iter().map(whole).collect::<Result<_>>()?;
        deltas.push(input);
        Patch::new(&base, &deltas).check(options.check).open()
    }

    fn open_alone(&self, input: &InputOptions, options: &LocationOptions<'_>) -> Result<Input> {
        let opened = match &self.place {
            Place::Path => options.kinds.open(&self.path, input),
            Place::Url(url) => url.open(&self.path, input, options),
            Place::Stdin => {
                let source = stdin::source(options.progress);
                let opened = source.and_then(|source| options.kinds.open_source(source, input));
                opened.map(|opened| Input::new(opened.into_file(), vec![self.path.clone()]))
            }
        };
        opened.map_err(|error| self.blame(error))
    }

    /// All bytes, of a text such as a list. An object of a store has at most `most`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`], also for a longer object; as [`Location::open`] for URLs and stdin.
    pub fn read(&self, most: u64, options: &LocationOptions<'_>) -> Result<Vec<u8>> {
        let read = match &self.place {
            Place::Path => fs::read(&self.path).map_err(Error::from),
            Place::Url(url) => url.read(most, options),
            Place::Stdin => stdin::bytes(),
        };
        read.map_err(|error| self.blame(error))
    }

    /// Writes `inputs` as one file, which appears here complete or not at all.
    ///
    /// # Errors
    ///
    /// As [`Kinds::convert_to_path`](zt_convert::Kinds::convert_to_path). Code `unsupported` for a store that
    /// takes no uploads.
    pub fn convert(
        &self,
        inputs: &[Input],
        convert: &ConvertOptions<'_>,
        options: &LocationOptions<'_>,
    ) -> Result<Summary> {
        let Place::Url(url) = &self.place else {
            return options.kinds.convert_to_path(inputs, &self.path, convert);
        };
        let mut read = inputs.iter().flat_map(Input::paths);
        let written = match read.find(|input| **input == self.path) {
            Some(input) => Err(Fault::IsInput { input: input.clone() }.into()),
            None => url.write(convert.overwrite, options, |sink| {
                options.kinds.convert(inputs, sink, convert)
            }),
        };
        written.map_err(|error| self.blame(error))
    }

    /// Writes `inputs` as a set into this folder.
    ///
    /// # Errors
    ///
    /// As [`Kinds::split`](zt_convert::Kinds::split) and
    /// [`Kinds::split_to_store`](zt_convert::Kinds::split_to_store).
    pub fn split(
        &self,
        inputs: &[Input],
        split: &SplitOptions<'_>,
        options: &LocationOptions<'_>,
    ) -> Result<Split> {
        let Place::Url(url) = &self.place else {
            return options.kinds.split(inputs, &self.path, split);
        };
        let folder = url.folder(options).map_err(|error| self.blame(error))?;
        options.kinds.split_to_store(inputs, &*folder, split)
    }

    fn blame(&self, error: Error) -> Error {
        error.with_path(&self.path)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Location").field(&self.path).finish()
    }
}
