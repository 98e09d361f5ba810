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
    /// What floating-point values of dense objects, FP8 among them, are cast to: f64, f32, f16 or
    /// bf16, rounded once, to nearest, ties to even. Values of other types stay as they are. A finite
    /// value that becomes infinite is a loss.
    pub dtype: Option<DType>,
    /// Whether a loss is a warning and not an error.
    ///
    /// An object is written as far as the target can represent it: its dense value without its
    /// layout, its storage type without its logical type. An object that the target cannot represent
    /// at all is left out. So is an object that is at fault in its input; to find these, the inputs
    /// are verified first. If an input has something twice, the first is taken, or the one that the
    /// index lists.
    pub lossy: bool,
    /// Whether components of the same bytes are stored once in a `.zt` file: tied weights, whatever
    /// their names, dtypes and inputs. Copies are looked for from 4 KiB on, and compared byte for
    /// byte. On by default.
    pub deduplicate: bool,
    /// Told of bytes of values as they are written.
    pub progress: Option<Progress<'p>>,
}

impl<'p> ConvertOptions<'p> {
    /// To `target`, with nothing changed and nothing lost.
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

    /// Sets what floating-point values are cast to.
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

    /// Sets what is told of bytes of values as they are written.
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
    /// Bytes of values that share the blob of others, and were not written again.
    pub shared: u64,
    /// Bytes of the output.
    pub byte_len: u64,
    /// Names of objects that were left out, if losses are allowed. Each is in a warning, too.
    pub left_out: Vec<String>,
    /// The warnings of the inputs, each with its code; what was lost, if that was allowed, with the
    /// code `lossy`; and that writing a kind is an experiment, with the code `experimental`.
    pub warnings: Vec<Warning>,
}
