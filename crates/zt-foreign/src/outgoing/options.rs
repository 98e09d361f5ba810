//! How files are converted, and what a conversion has done.

use std::collections::HashMap;
use std::path::PathBuf;

use zt::foreign::Kind;
use zt::formats::FloatType;
use zt::{Progress, Value, Warning, WriteOptions};

use crate::faults::Cast;

/// How files are converted.
#[must_use]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConvertOptions<'p> {
    /// The kind of file to write.
    pub target: Kind,
    /// How `.zt` is written: compression, digests, alignment, threads. Other kinds ignore these.
    pub write: WriteOptions,
    /// Whether sparse, quantized and other objects are written as their dense values. Each such
    /// value is made in memory.
    pub dense: bool,
    /// The type that floating-point values of dense objects, FP8, FP6 and FP4 included, are cast to. Values are
    /// rounded once, to nearest, ties to even; values of other types are kept.
    pub dtype: Option<FloatType>,
    /// The types of single objects, by the names that are written, in the place of [`dtype`](Self::dtype).
    pub dtypes: HashMap<String, FloatType>,
    /// The dialect in which quantized weights are written, without quantizing them anew: `zt` for objects of `.zt`, `gguf`,
    /// `compressed-tensors` or `deepseek`. A weight whose codes have no place in it is an error. Without a dialect weights
    /// are written as they are stored, and those that are objects of `.zt` as the tensors that they were.
    pub dialect: Option<String>,
    /// Whether values that the target cannot represent are dropped, each with a warning.
    ///
    /// An object is written as far as the target can represent it: its dense value without its
    /// format, its storage type without its logical type. An object that the target cannot represent
    /// at all is left out. Metadata that the target cannot represent is dropped in any case, with a
    /// warning.
    pub drop_unsupported: bool,
    /// Whether damaged objects are left out, each with a warning. The inputs are verified first to
    /// find them.
    pub skip_damaged: bool,
    /// Whether values may be out of range for a cast, with a warning for each object. They become infinite, or the
    /// greatest value of `f8_e4m3fn`.
    pub allow_inf: bool,
    /// Whether components with the same bytes are stored once in a `.zt` file, such as tied weights.
    /// Names, dtypes and inputs may differ. Copies of at least 4 KiB are compared byte for byte. On
    /// by default.
    pub deduplicate: bool,
    /// Which object is written if several inputs have one of the same name.
    pub on_duplicate: OnDuplicate,
    /// Changes of the file's attributes, after those of the inputs are joined.
    pub attributes: Vec<AttributeChange>,
    /// Whether an existing file at the path of the output is replaced, or a set of the same name.
    /// Without a path this has no effect.
    pub overwrite: bool,
    /// Called with the number of bytes of values as they are written.
    pub progress: Option<Progress<'p>>,
}

impl<'p> ConvertOptions<'p> {
    /// A conversion to `target` that changes and loses nothing.
    pub fn new(target: Kind) -> Self {
        ConvertOptions {
            target,
            write: WriteOptions::new(),
            dense: false,
            dtype: None,
            dtypes: HashMap::new(),
            dialect: None,
            drop_unsupported: false,
            skip_damaged: false,
            allow_inf: false,
            deduplicate: true,
            on_duplicate: OnDuplicate::Error,
            attributes: Vec::new(),
            overwrite: false,
            progress: None,
        }
    }

    setters! {
        write: WriteOptions,
        dense: bool,
        dtype: Option<FloatType>,
        dtypes: HashMap<String, FloatType>,
        dialect: Option<String>,
        drop_unsupported: bool,
        skip_damaged: bool,
        allow_inf: bool,
        deduplicate: bool,
        on_duplicate: OnDuplicate,
        attributes: Vec<AttributeChange>,
        overwrite: bool,
        progress: Option<Progress<'p>>,
    }

    /// Allows every loss, or none: [`drop_unsupported`](Self::drop_unsupported),
    /// [`skip_damaged`](Self::skip_damaged) and [`allow_inf`](Self::allow_inf).
    pub fn lossy(self, lossy: bool) -> Self {
        self.drop_unsupported(lossy).skip_damaged(lossy).allow_inf(lossy)
    }

    /// The type that floating-point values of the object `name` are cast to.
    pub fn dtype_of(&self, name: &str) -> Option<FloatType> {
        self.dtypes.get(name).copied().or(self.dtype)
    }

    /// Whether any object is cast.
    pub fn casts(&self) -> bool {
        self.dtype.is_some() || !self.dtypes.is_empty()
    }

    /// These options with f64 in the place of each type: for values that are computed before they are written. The
    /// writer rounds them once, and counts what that loses.
    pub fn before_cast(&self) -> Self {
        let wide = self.dtypes.keys().map(|name| (name.clone(), FloatType::F64));
        let wide: HashMap<_, _> = wide.collect();
        self.clone().dtypes(wide).dtype(self.dtype.map(|_| FloatType::F64))
    }
}

/// A change of an attribute of the file that is written.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeChange {
    /// The key.
    pub key: String,
    /// Readings of the new value, such as a number and its text. The first one that the target can represent
    /// counts. None of them removes the attribute.
    pub values: Vec<Value>,
    /// The type in the target, for a kind whose attributes have types: `u32` of GGUF. `None` keeps the type of
    /// an attribute that exists.
    pub value_type: Option<String>,
}

/// Which object is written if several inputs have one of the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// None: the name is an error, code `duplicate-name`.
    #[default]
    Error,
    /// The object of the first input that has one.
    First,
    /// The object of the last input that has one, in the place of the first.
    Last,
    /// The first one if [`zt::diff::diff_tensors`] finds no difference to the others. A difference is
    /// an error, code `duplicate-name`. Both objects are read.
    Same,
}

/// An object that was not written, because another one of the same name was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicate {
    /// The name.
    pub name: String,
    /// The path of the input that has the object, or of the file that it was removed from. `None` for
    /// an input that was not opened by a path.
    pub path: Option<PathBuf>,
}

impl Duplicate {
    /// The object `name` of the file at `path`.
    pub fn new(name: impl Into<String>, path: Option<PathBuf>) -> Self {
        Duplicate { name: name.into(), path }
    }
}

/// What a conversion has done.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Names of objects that were left out. Each has a warning too.
    pub left_out: Vec<String>,
    /// Those of [`Summary::left_out`] that are damaged.
    pub damaged: Vec<String>,
    /// Objects that were not written, because [`ConvertOptions::on_duplicate`] chose another one of the same name.
    pub duplicates: Vec<Duplicate>,
    /// What casts have lost, one for each type.
    pub casts: Vec<Cast>,
    /// The warnings of the inputs; a warning with code `lossy` for each loss; and one with code
    /// `experimental` for a kind whose writer is an experiment.
    pub warnings: Vec<Warning>,
}
