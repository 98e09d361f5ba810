//! What the arguments of writing calls mean.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use zt::foreign::Kind;
use zt::{DType, DigestAlgorithm, FloatType, WriteOptions};
use zt_convert::{ConvertOptions, FileKind, Kinds, ZT};

use crate::share::dtype::{Row, numpy};
use crate::share::error::{Result, misuse};

/// How a file is written: with zstd of a level, in byte planes, with both, or raw.
///
/// # Errors
///
/// As [`check_level`].
pub(crate) fn write(py: Python<'_>, zstd: Option<i32>, planes: bool) -> Result<WriteOptions> {
    let mut options = WriteOptions::new();
    if planes {
        options = options.planes();
    }
    if let Some(level) = zstd {
        check_level(py, level)?;
        options = options.zstd(level);
    }
    Ok(options)
}

/// The keywords of every call that writes a file of any kind.
pub(crate) struct Stored<'a> {
    pub(crate) zstd: Option<i32>,
    pub(crate) digest: Given<Option<String>>,
    pub(crate) chunk_digests: Option<&'a str>,
    pub(crate) planes: bool,
    pub(crate) dtype: Option<&'a str>,
}

impl Stored<'_> {
    /// The options of a file of this kind.
    ///
    /// # Errors
    ///
    /// As [`write`] and [`digest`]; for a type that values are not cast to.
    pub(crate) fn options(self, py: Python<'_>, kind: Kind) -> Result<ConvertOptions<'static>> {
        let chunk_digests = digest(py, "chunk_digests", self.chunk_digests)?;
        let mut write = write(py, self.zstd, self.planes)?.chunk_digests(chunk_digests);
        if let Given::Yes(name) = self.digest {
            write = write.digest(digest(py, "digest", name.as_deref())?);
        }
        let dtype = self.dtype.map(|name| {
            let long = || FloatType::of_dtype(DType::from_long_name(name)?);
            let known = FloatType::from_name(name).or_else(long);
            known.ok_or_else(|| misuse(py, &format!("values are not cast to {name:?}")))
        });
        Ok(ConvertOptions::new(kind).write(write).dtype(dtype.transpose()?))
    }
}

/// Refuses a level that zstd does not have.
pub(crate) fn check_level(py: Python<'_>, level: i32) -> Result<()> {
    if (-7..=22).contains(&level) {
        return Ok(());
    }
    let text = format!("zstd is {level}: pass a level from -7 to 22");
    Err(misuse(py, &text))
}

/// The algorithm with the name that `argument` has.
pub(crate) fn digest(
    py: Python<'_>,
    argument: &str,
    name: Option<&str>,
) -> Result<Option<DigestAlgorithm>> {
    match name {
        None => Ok(None),
        Some("crc32c") => Ok(Some(DigestAlgorithm::Crc32c)),
        Some("sha256") => Ok(Some(DigestAlgorithm::Sha256)),
        Some(other) => {
            let text = format!("{argument} is {other:?}: pass \"crc32c\", \"sha256\" or None");
            Err(misuse(py, &text))
        }
    }
}

/// An argument that may be left out, where `None` has a meaning of its own.
pub(crate) enum Given<T> {
    No,
    Yes(T),
}

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Given<T> {
    type Error = T::Error;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> std::result::Result<Self, Self::Error> {
        object.extract().map(Given::Yes)
    }
}

/// The kind to write: `kind`, or the kind of the extension.
pub(crate) fn kind_of(
    py: Python<'_>,
    kinds: &Kinds,
    kind: Option<&str>,
    path: Option<&PathBuf>,
) -> Result<Kind> {
    if let Some(name) = kind {
        let known = kinds.get(name).map(FileKind::kind);
        return known.ok_or_else(|| misuse(py, &format!("there is no kind {name:?}")));
    }
    let Some(path) = path else {
        return Ok(ZT);
    };
    let text = || format!("{}: pass `kind`, the extension is of none", path.display());
    kinds.of_extension(path).ok_or_else(|| misuse(py, &text()))
}

/// The type for a name that files have, or for any object that NumPy takes as a dtype.
pub(crate) fn row_of(dtype: &Bound<'_, PyAny>) -> Result<&'static Row> {
    if let Ok(name) = dtype.cast::<PyString>()
        && let Some(row) = Row::named(name.to_str()?)
    {
        return Ok(row);
    }
    let dtype = numpy(dtype.py())?.getattr("dtype")?.call1((dtype,))?;
    let name: String = dtype.getattr("name")?.extract()?;
    Row::named(&name)
        .ok_or_else(|| PyTypeError::new_err(format!("no file has elements of the dtype {name}")))
}
