//! How files are converted, and what a conversion has done.

use std::fmt;

use zt::foreign::Kind;
use zt::{DType, Progress, Warning, WriteOptions};

/// How files are converted.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConvertOptions<'p> {
    /// The kind of file to write.
    pub target: Kind,
    /// How `.zt` is written: compression, digests, alignment, threads. Other kinds ignore these.
    pub write: WriteOptions,
    /// Whether sparse, quantized and other objects are written as their dense values. Each such
    /// value is made in memory.
    pub dense: bool,
    /// The dtype that floating-point values of dense objects, FP8 included, are cast to: f64, f32, f16
    /// or bf16. Values are rounded once, to nearest, ties to even; values of other types are kept. A
    /// finite value that becomes infinite is a loss.
    pub dtype: Option<DType>,
    /// Whether a loss is a warning and not an error.
    ///
    /// An object is written as far as the target can represent it: its dense value without its
    /// format, its storage type without its logical type. An object that the target cannot represent
    /// at all is left out. So is a damaged object; the inputs are verified first to find these. Of
    /// duplicates in an input, the first is taken, or the one that the index lists.
    pub lossy: bool,
    /// Whether components with the same bytes are stored once in a `.zt` file, such as tied weights.
    /// Names, dtypes and inputs may differ. Copies of at least 4 KiB are compared byte for byte. On
    /// by default.
    pub deduplicate: bool,
    /// Called with the number of bytes of values as they are written.
    pub progress: Option<Progress<'p>>,
}

impl<'p> ConvertOptions<'p> {
    /// A conversion to `target` that changes and loses nothing.
    #[must_use]
    pub fn new(target: Kind) -> Self {
        ConvertOptions {
            target,
            write: WriteOptions::new(),
            dense: false,
            dtype: None,
            lossy: false,
            deduplicate: true,
            progress: None,
        }
    }

    /// Sets how `.zt` is written.
    #[must_use]
    pub fn write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// Sets whether objects are written as their dense values.
    #[must_use]
    pub fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// Sets the dtype that floating-point values are cast to.
    #[must_use]
    pub fn dtype(mut self, dtype: impl Into<Option<DType>>) -> Self {
        self.dtype = dtype.into();
        self
    }

    /// Sets whether a loss is a warning and not an error.
    #[must_use]
    pub fn lossy(mut self, lossy: bool) -> Self {
        self.lossy = lossy;
        self
    }

    /// Sets whether components of the same bytes are stored once.
    #[must_use]
    pub fn deduplicate(mut self, deduplicate: bool) -> Self {
        self.deduplicate = deduplicate;
        self
    }

    /// Sets the function that is called with the number of bytes as they are written.
    #[must_use]
    pub fn progress(mut self, progress: Progress<'p>) -> Self {
        self.progress = Some(progress);
        self
    }
}

impl fmt::Debug for ConvertOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConvertOptions")
            .field("target", &self.target)
            .field("write", &self.write)
            .field("dense", &self.dense)
            .field("dtype", &self.dtype)
            .field("lossy", &self.lossy)
            .field("deduplicate", &self.deduplicate)
            .finish_non_exhaustive()
    }
}

/// What a conversion has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Objects that were written.
    pub objects: u64,
    /// Bytes of their values, before compression.
    pub bytes: u64,
    /// Bytes of values that share a blob and were not written again.
    pub shared: u64,
    /// Bytes of the output.
    pub byte_len: u64,
    /// Names of objects that were left out, if losses are allowed. Each has a warning too.
    pub left_out: Vec<String>,
    /// The warnings of the inputs; a warning with code `lossy` for each loss that was allowed; and
    /// one with code `experimental` for a kind whose writer is an experiment.
    pub warnings: Vec<Warning>,
}
