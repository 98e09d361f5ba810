//! A tensor file of any kind, opened.

use std::path::{Path, PathBuf};

use zt::foreign::Kind;
use zt::manifest::Text;
use zt::{Error, File, FloatType, OpenOptions};

use crate::open::Names;
use crate::values::MlDtype;

/// How files of any kind are opened. Every kind obeys `open`; the other options are for some kinds.
#[must_use]
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InputOptions {
    /// Limits, formats, verification, strictness.
    pub open: OpenOptions,
    /// The kind of the file; `None` for the kind that recognises its bytes.
    pub kind: Option<Kind>,
    /// Names for the tensors of a kind that stores none. Other kinds ignore them.
    pub names: Option<Names>,
    /// What opaque elements of NumPy are, by their length: at most one type of each length counts,
    /// the first. NumPy saves types of `ml_dtypes` as `V1`, `V2` or `f1`, but records of as many bytes
    /// too. HDF5 obeys bfloat16; bf16 that Keras declares needs no option.
    pub ml_dtypes: Vec<MlDtype>,
    /// Whether a file that the opened one names, such as a shard, may be reached by a link that leads
    /// out of the folder.
    pub follow_links: bool,
    /// Whether a file whose end is missing opens with the objects that are whole: see
    /// [`File::truncated`]. Objects that are cut are listed with their faults. This is for safetensors, npz
    /// and PyTorch, which are refused otherwise, and for GGUF.
    pub truncated: bool,
    /// Whether a quantized checkpoint opens as the weights that its codes and scales mean.
    pub logical: Option<Logical>,
}

/// How a quantized checkpoint opens as its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Logical {
    /// The type of the values; `None` for the type in which the code of the checkpoint's own library gives them.
    pub float: Option<FloatType>,
    /// Whether all scales are read, to warn of those that are zero, NaN or infinite.
    pub checks_scales: bool,
}

impl Logical {
    /// Values of the library's own type.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        float: Option<FloatType>,
        checks_scales: bool,
    }
}

/// A tensor that is computed from codes and scales.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LogicalTensor {
    /// Its name.
    pub name: String,
    /// How its codes and scales are stored, such as `gptq`.
    pub dialect: Text,
    /// Bits that are stored for each value, scales included; `None` if it has no values.
    pub bits: Option<f64>,
}

impl LogicalTensor {
    /// A tensor of this name.
    pub fn new(name: impl Into<String>, dialect: impl Into<Text>, bits: Option<f64>) -> Self {
        LogicalTensor { name: name.into(), dialect: dialect.into(), bits }
    }
}

impl InputOptions {
    /// The defaults: the kind that recognises the bytes.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        open: OpenOptions,
        kind: Option<Kind>,
        names: Option<Names>,
        ml_dtypes: Vec<MlDtype>,
        follow_links: bool,
        truncated: bool,
        logical: Option<Logical>,
    }
}

impl From<&OpenOptions> for InputOptions {
    fn from(options: &OpenOptions) -> Self {
        InputOptions::new().open(options.clone())
    }
}

impl From<OpenOptions> for InputOptions {
    fn from(options: OpenOptions) -> Self {
        InputOptions::new().open(options)
    }
}

impl From<&InputOptions> for InputOptions {
    fn from(options: &InputOptions) -> Self {
        options.clone()
    }
}

/// An open file, and the paths of all files that it is read from.
///
/// A conversion names these paths in its errors, and never overwrites them.
#[derive(Debug, Clone)]
pub struct Input {
    file: File,
    paths: Vec<PathBuf>,
    logical: Vec<LogicalTensor>,
}

impl Input {
    /// A file that is read from `paths`. The first is the path by which it was opened.
    pub fn new(file: File, paths: Vec<PathBuf>) -> Self {
        Input { file, paths, logical: Vec::new() }
    }

    /// The same input, whose tensors of these names are computed.
    pub fn with_logical(self, logical: Vec<LogicalTensor>) -> Self {
        Input { logical, ..self }
    }

    /// The same input, read from these paths.
    pub fn with_paths(self, paths: Vec<PathBuf>) -> Self {
        Input { paths, ..self }
    }

    /// Another file of the same paths, such as a part of this one.
    pub fn with_file(self, file: File) -> Self {
        Input { file, ..self }
    }

    /// The tensors that are computed from codes and scales. Some may be left out of the file.
    pub fn logical(&self) -> &[LogicalTensor] {
        &self.logical
    }

    /// The file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The file, without its paths.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The path by which it was opened; `None` for a file that was not opened by a path.
    pub fn path(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path)
    }

    /// The paths of all files that it is read from. A sharded set has the index and every shard.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// `error` with the path of this file.
    pub fn blame(&self, error: Error) -> Error {
        match self.path() {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

/// A file that was not opened by a path.
impl From<File> for Input {
    fn from(file: File) -> Self {
        Input::new(file, Vec::new())
    }
}
