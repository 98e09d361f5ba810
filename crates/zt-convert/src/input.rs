//! A tensor file of any kind, opened.

use std::path::{Path, PathBuf};

use zt::{Error, File, Kind, OpenOptions, Result, Source};

use crate::detect::member_of;
use crate::fault::Fault;
use crate::member::{Member, member};
use crate::name_list::Names;

/// Opens the tensor file at `path`, of whatever kind its bytes are; its name does not matter. The
/// index of a sharded set opens the whole set.
///
/// The file is read by position and never mapped: one that is cut while it is open gives an error.
///
/// # Errors
///
/// Code `unknown-kind` where no kind recognises it; what the reader of its kind finds wrong.
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<File> {
    Input::open(path, options).map(Input::into_file)
}

/// Opens the tensor file at `path` as one of `kind`, whatever it looks like.
///
/// # Errors
///
/// What the reader of that kind finds wrong; code `unsupported` where this build has none.
pub fn open_as(path: impl AsRef<Path>, kind: Kind, options: &OpenOptions) -> Result<File> {
    Input::open_as(path, kind, options).map(Input::into_file)
}

/// Opens a tensor file from any source: bytes in memory, a map, one of your own. Components that
/// are plain ranges of it are lent from there.
///
/// # Errors
///
/// As [`open`]; code `unsupported` for a sharded set, whose other files nobody can find.
pub fn open_source(source: impl Source + 'static, options: &OpenOptions) -> Result<File> {
    Input::from_source(source, &InputOptions::from(options)).map(Input::into_file)
}

/// How files of any kind are opened: what every kind obeys, and what only some ask for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InputOptions {
    /// Limits, formats, verification, strictness.
    pub open: OpenOptions,
    /// What the file is; `None` for what its bytes look like.
    pub kind: Option<Kind>,
    /// Names for the tensors of a kind that stores none; others have no use for them.
    pub names: Option<Names>,
    /// Whether NumPy's `V2`, two bytes without a meaning, is bf16: that is what the bfloat16 of
    /// `ml_dtypes` is saved as, and records of two bytes as well. In HDF5, too; what Keras says to be
    /// bf16 is that anyway.
    pub void2_as_bf16: bool,
}

impl From<&OpenOptions> for InputOptions {
    fn from(options: &OpenOptions) -> Self {
        InputOptions {
            open: options.clone(),
            ..InputOptions::default()
        }
    }
}

/// Where a source comes from, and how it is to be opened.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) path: Option<&'a Path>,
    pub(crate) options: &'a OpenOptions,
    pub(crate) names: Option<&'a Names>,
    pub(crate) void2_as_bf16: bool,
}

/// An open file, and the paths of everything that it is read from.
///
/// A conversion asks for the paths, to name them in errors and never to write over them.
#[derive(Debug, Clone)]
pub struct Input {
    file: File,
    paths: Vec<PathBuf>,
}

impl Input {
    /// Opens the tensor file at `path`: see [`open`].
    ///
    /// # Errors
    ///
    /// As [`open`].
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        Self::open_with(path, &InputOptions::from(options))
    }

    /// Opens the tensor file at `path` as one of `kind`: see [`open_as`].
    ///
    /// # Errors
    ///
    /// As [`open_as`].
    pub fn open_as(path: impl AsRef<Path>, kind: Kind, options: &OpenOptions) -> Result<Self> {
        let kind = Some(kind);
        Self::open_with(
            path,
            &InputOptions {
                kind,
                ..InputOptions::from(options)
            },
        )
    }

    /// Opens the tensor file at `path` with all that can be said about it.
    ///
    /// # Errors
    ///
    /// As [`open`]; code `unsupported` for a kind that this build does not have, `names` for names
    /// that do not fit the file.
    pub fn open_with(path: impl AsRef<Path>, options: &InputOptions) -> Result<Self> {
        let path = path.as_ref();
        let open = |source| Self::open_from(Box::new(source), Some(path), options);
        zt::open_settled(path, open).map_err(|error| error.with_path(path))
    }

    /// Opens a tensor file from any source: see [`open_source`].
    ///
    /// # Errors
    ///
    /// As [`open_source`] and [`Input::open_with`].
    pub fn from_source(source: impl Source + 'static, options: &InputOptions) -> Result<Self> {
        Self::open_from(Box::new(source), None, options)
    }

    fn open_from(
        source: Box<dyn Source>,
        path: Option<&Path>,
        options: &InputOptions,
    ) -> Result<Self> {
        let member: &Member = match options.kind {
            Some(kind) => member(kind.as_str()).ok_or(Fault::NoSuchMember { kind })?,
            None => member_of(&source)?,
        };
        let origin = Origin {
            path,
            options: &options.open,
            names: options.names.as_ref(),
            void2_as_bf16: options.void2_as_bf16,
        };
        (member.open)(source, origin)
    }

    /// A file that is read from `paths`, the one it was opened by first.
    pub(crate) fn new(file: File, paths: Vec<PathBuf>) -> Self {
        Input { file, paths }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The file, without its paths.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// The path that it was opened by; `None` where it was not opened by a path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path)
    }

    /// The paths of all files that it is read from: of a sharded set, the index and every shard.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// An error of the file says which it is.
    pub(crate) fn blame(&self, error: Error) -> Error {
        self.path().into_iter().fold(error, Error::with_path)
    }
}

/// A file that was not opened by a path.
impl From<File> for Input {
    fn from(file: File) -> Self {
        Input::new(file, Vec::new())
    }
}
