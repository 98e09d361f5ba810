//! `zt.hash`: the identity of the tensors of a file.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::HashOptions;

use crate::read::open::opened;
use crate::share::error::{Result, exception};
use crate::share::work::{PyProgress, Watch};

/// The identity of a file's tensors. See :func:`hash`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct ContentHash {
    hash: zt::ContentHash,
}

#[pymethods]
impl ContentHash {
    /// ``"sha256:"`` and 64 hexadecimal digits. Equal tensors give the same in any kind of file, order
    /// and encoding. ``None`` if a tensor could not be read.
    #[getter]
    fn content(&self) -> Option<String> {
        self.hash.content.map(|_| self.hash.to_string())
    }

    /// For each tensor by name, a dict of the hashes of its components by role. For a tensor that
    /// cannot be read, the exception.
    #[getter]
    fn tensors<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let tensors = PyDict::new(py);
        for (name, object) in &self.hash.objects {
            match object {
                Ok(object) => {
                    let roles = PyDict::new(py);
                    for (role, hash) in &object.components {
                        roles.set_item(role, hash.to_string())?;
                    }
                    tensors.set_item(name, roles)?;
                }
                Err(error) => tensors.set_item(name, exception(error).into_value(py))?,
            }
        }
        Ok(tensors)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.hash.content.is_some() && self.hash.content == other.hash.content
    }

    fn __hash__(&self) -> u64 {
        let start = self.hash.content.unwrap_or_default();
        start.first_chunk().map_or(0, |start| u64::from_le_bytes(*start))
    }

    fn __str__(&self) -> String {
        self.hash.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<zt.ContentHash {}>", self.hash)
    }
}

/// Identifies the tensors of a file: names, shapes, formats, attributes, types and values.
///
/// Args:
///     source: a :class:`File`, a path, bytes, or a file object.
///     threads: how many threads work.
///     progress: called with the decoded bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`.
#[pyfunction]
#[pyo3(signature = (source, *, threads = None, progress = None, storage_options = None))]
pub(crate) fn hash<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<ContentHash> {
    let open = opened(py, source, storage_options)?;
    let hash = Watch::new(progress)
        .threads(threads)
        .run(py, |progress| open.file().hash(&HashOptions::new().progress(progress)))?;
    Ok(ContentHash { hash })
}
