//! What the arguments of writing calls mean.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use zt::foreign::Kind;
use zt::{DigestAlgorithm, FloatType, WriteOptions};
use zt_convert::{ConvertOptions, FileKind, Input, Kinds, ZT};

use crate::read::select::named;
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
pub(crate) struct Stored<'a, 'py> {
    pub(crate) zstd: Option<i32>,
    pub(crate) digest: Option<&'a str>,
    pub(crate) chunk_digests: Option<&'a str>,
    pub(crate) planes: bool,
    pub(crate) dtype: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Stored<'_, 'py> {
    /// The options of a file of this kind with the tensors of `inputs`.
    ///
    /// # Errors
    ///
    /// As [`write`] and [`digest`]; for a type that values are not cast to. Code `not-found` for a pattern of types
    /// that matches no tensor.
    pub(crate) fn options(
        self,
        py: Python<'py>,
        kind: Kind,
        inputs: &[Input],
    ) -> Result<ConvertOptions<'static>> {
        let chunk_digests = digest(py, "chunk_digests", self.chunk_digests)?;
        let mut write = write(py, self.zstd, self.planes)?.chunk_digests(chunk_digests);
        if self.digest != Some(DEFAULT) {
            write = write.digest(digest(py, "digest", self.digest)?);
        }
        let options = ConvertOptions::new(kind).write(write);
        let Some(dtype) = self.dtype else {
            return Ok(options);
        };
        let Ok(types) = dtype.cast::<PyDict>() else {
            return Ok(options.dtype(float_type(py, dtype.extract()?)?));
        };
        let mut dtypes = HashMap::new();
        for (pattern, to) in types {
            let to = float_type(py, to.extract()?)?;
            let chosen = named(&pattern.cast_into()?, inputs)?;
            dtypes.extend(chosen.into_iter().map(|name| (name, to)));
        }
        Ok(options.dtypes(dtypes))
    }
}

/// The type that values are cast to, by any of its names.
pub(crate) fn float_type(py: Python<'_>, name: &str) -> Result<FloatType> {
    FloatType::from_typed(name).ok_or_else(|| {
        let all = FloatType::ALL.map(FloatType::as_str);
        unknown(py, &format!("values are not cast to {name:?}"), name, &all)
    })
}

/// The error for a name that is none of `all`: with the closest one, and with all.
fn unknown(py: Python<'_>, what: &str, name: &str, all: &[&str]) -> PyErr {
    let near = zt::nearest(name, all.iter().copied());
    let near = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    misuse(py, &format!("{what}: {near}pass one of {}", all.join(", ")))
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

/// An argument that is left out, where `None` has a meaning of its own.
pub(crate) const DEFAULT: &str = "default";

/// The compression of a tensor.
pub(crate) enum Level {
    /// The writer's.
    Default,
    Own(Option<i32>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Level {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> Result<Self> {
        if object.eq(DEFAULT)? { Ok(Level::Default) } else { object.extract().map(Level::Own) }
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
        return kind_named(py, kinds, name);
    }
    let Some(path) = path else {
        return Ok(ZT);
    };
    let text = || format!("{}: pass `kind`, the extension is of none", path.display());
    kinds.of_extension(path).ok_or_else(|| misuse(py, &text()))
}

/// The kind with this name.
pub(crate) fn kind_named(py: Python<'_>, kinds: &Kinds, name: &str) -> Result<Kind> {
    kinds.get(name).map(FileKind::kind).ok_or_else(|| {
        let written = kinds.iter().filter(|kind| kind.writer().is_some());
        let all: Vec<&str> = written.map(|kind| kind.kind().as_str()).collect();
        unknown(py, &format!("there is no kind {name:?}"), name, &all)
    })
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
