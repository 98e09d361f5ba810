//! A path, a folder, a URL or `-`.
#![cfg_attr(not(feature = "remote"), expect(unused_variables, reason = "every URL is refused"))]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use zt::{Error, Result, Warning};
#[cfg(not(feature = "remote"))]
use zt::{ErrorKind, codes};
use zt_convert::{ConvertOptions, Input, InputOptions, Split, SplitOptions, Summary};
use zt_foreign::{Fault, is_url, without_secrets};
#[cfg(feature = "remote")]
use {
    std::io,
    zt::container::memory,
    zt::{Source as _, Span},
    zt_convert::CHECKPOINT_METADATA,
    zt_remote::Remote,
};

use crate::delta::{Patch, is_delta};
use crate::location::{LocationOptions, stdin};

/// The code of the warning that a file is no delta, so the base of the options was not used.
pub const BASE_UNUSED: &str = "base-unused";

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
    pub(super) path: PathBuf,
    /// With its secrets, which are never shown.
    pub(super) url: Option<String>,
}

/// What is done with a URL. A build without the feature `remote` refuses it.
macro_rules! of_store {
    ($does:block) => {{
        #[cfg(feature = "remote")]
        let run = || $does;
        #[cfg(not(feature = "remote"))]
        let run = || {
            let message = "this build opens no URLs: build it with the feature `remote`";
            Err(Error::new(ErrorKind::Unsupported, codes::UNSUPPORTED, message))
        };
        run()
    }};
}
pub(super) use of_store;

impl Location {
    /// The place that `typed` means. It need not exist.
    pub fn new(typed: impl AsRef<OsStr>) -> Self {
        let typed = typed.as_ref();
        match typed.to_str().filter(|text| is_url(text)) {
            Some(url) => Location::url(url, without_secrets(url)),
            None => Location { path: typed.into(), url: None },
        }
    }

    /// The place at a URL, which is shown as `shown`: so two that differ in their secrets are told apart.
    pub fn url(url: impl Into<String>, shown: impl Into<PathBuf>) -> Self {
        Location { path: shown.into(), url: Some(url.into()) }
    }

    /// The path; of another place, the text that is shown for it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a URL.
    pub const fn is_url(&self) -> bool {
        self.url.is_some()
    }

    /// Whether it is stdin.
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-" && !self.is_url()
    }

    /// Opens the file, whatever its kind. If it is a delta and the options have a base, gives what it makes of
    /// that.
    ///
    /// # Errors
    ///
    /// As [`Kinds::open`](zt_convert::Kinds::open) and [`Patch::open`]. Code `unsupported` for a URL without the
    /// feature `remote`; `misuse` if stdin was read before.
    pub fn open(&self, options: &LocationOptions<'_>) -> Result<Input> {
        let Some((base, earlier)) = options.base.split_first() else {
            return self.open_first(&options.input, options);
        };
        // Deltas are of codes.
        let stored = options.input.clone().logical(None);
        let result = self.open_with(base, earlier, &stored, options)?;
        match options.input.logical {
            Some(logical) => options.kinds.logical(result, logical),
            None => Ok(result),
        }
    }

    fn open_with(
        &self,
        base: &Location,
        earlier: &[Location],
        of_file: &InputOptions,
        options: &LocationOptions<'_>,
    ) -> Result<Input> {
        let input = self.open_first(of_file, options)?;
        if !is_delta(input.file()) {
            let message = "the file is no delta, so the base was not used";
            let file = input.file().with_warnings([Warning::new(BASE_UNUSED, message)])?;
            return Ok(Input::new(file, input.paths().to_vec()));
        }
        let of_base = of_file.clone().kind(None);
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

    /// The file that was typed, and not its base.
    fn open_first(&self, input: &InputOptions, options: &LocationOptions<'_>) -> Result<Input> {
        match &options.seal {
            Some(seal) => self.open_sealed(seal, input, options),
            None => self.open_alone(input, options),
        }
    }

    fn open_alone(&self, input: &InputOptions, options: &LocationOptions<'_>) -> Result<Input> {
        let opened = if let Some(url) = &self.url {
            of_store!({
                let stores = options.remote.clone().end_first(options.kinds.read_from_end());
                // The object, or the file that describes a checkpoint's folder.
                let remote = Remote::open_or_within(url, CHECKPOINT_METADATA, &stores)?;
                let is_within = remote.url().ends_with(CHECKPOINT_METADATA);
                let shown = if is_within { Path::new(remote.url()) } else { &*self.path };
                options.kinds.open_in(remote.clone(), shown, &remote, input)
            })
        } else if self.is_stdin() {
            let source = stdin::source(options.progress);
            let opened = source.and_then(|source| options.kinds.open_source(source, input));
            opened.map(|opened| opened.with_paths(vec![self.path.clone()]))
        } else {
            options.kinds.open(&self.path, input)
        };
        opened.map_err(|error| self.blame(error))
    }

    /// All bytes, of a text such as a list. An object of a store has at most `most`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`], also for a longer object; as [`Location::open`] for URLs and stdin.
    pub fn read(&self, most: u64, options: &LocationOptions<'_>) -> Result<Vec<u8>> {
        let read = if let Some(url) = &self.url {
            of_store!({
                let remote = Remote::open(url, &options.remote)?;
                let whole = Span::new(0, remote.byte_len()).filter(|it| it.byte_len() <= most);
                let whole = whole.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
                let mut bytes = Vec::new();
                memory::fetch(&mut bytes, &remote, whole)?;
                Ok(bytes)
            })
        } else if self.is_stdin() {
            stdin::bytes()
        } else {
            fs::read(&self.path).map_err(Error::from)
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
        let Some(url) = &self.url else {
            return options.kinds.convert_to_path(inputs, &self.path, convert);
        };
        let mut read = inputs.iter().flat_map(Input::paths);
        let written = match read.find(|input| **input == self.path) {
            Some(input) => Err(Fault::IsInput { input: input.clone() }.into()),
            None => of_store!({
                let stores = options.remote.clone().overwrite(convert.overwrite);
                let mut upload = zt_remote::Upload::create(url, &stores)?;
                // If this fails, the upload is cancelled.
                let written = options.kinds.convert(inputs, &mut upload, convert)?;
                upload.finish()?;
                Ok(written)
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
        let Some(url) = &self.url else {
            return options.kinds.split(inputs, &self.path, split);
        };
        let written = of_store!({
            let folder = zt_remote::RemoteFolder::new(url, &options.remote)?;
            options.kinds.split_to_store(inputs, &folder, split)
        });
        written.map_err(|error| self.blame(error))
    }

    pub(super) fn blame(&self, error: Error) -> Error {
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
