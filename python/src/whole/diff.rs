//! `zt.diff`: the differences of two files.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::diff::{Change, DiffOptions, Tolerance};

use crate::read::open::opened;
use crate::share::error::{Result, misuse};
use crate::share::work::{PyProgress, Watch};

/// The differences of two files. See :func:`diff`. It is true if there are any.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Difference {
    diff: zt::diff::Diff,
}

#[pymethods]
impl Difference {
    /// Whether there is no difference.
    #[getter]
    fn same(&self) -> bool {
        self.diff.is_same()
    }

    /// The names of tensors that only the first file has.
    #[getter]
    fn only_a(&self) -> Vec<String> {
        self.diff.only_a.clone()
    }

    /// The names of tensors that only the second file has.
    #[getter]
    fn only_b(&self) -> Vec<String> {
        self.diff.only_b.clone()
    }

    /// By the name of each tensor that differs, a list of its differences: ``"shape"``, ``"format"``,
    /// ``"attribute"``, ``"component"``, ``"dtype"``, ``"values"`` or ``"unreadable"``.
    #[getter]
    fn changed<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let changed = PyDict::new(py);
        for object in &self.diff.changed {
            let mut words: Vec<&str> = Vec::new();
            for change in &object.changes {
                let word = word_of(change);
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            changed.set_item(&object.name, words)?;
        }
        Ok(changed)
    }

    /// Whether the attributes of the files differ.
    #[getter]
    fn attributes_differ(&self) -> bool {
        !self.diff.attributes.is_empty()
    }

    fn __bool__(&self) -> bool {
        !self.same()
    }

    fn __repr__(&self) -> String {
        format!(
            "<zt.Difference only_a={} only_b={} changed={}>",
            self.diff.only_a.len(),
            self.diff.only_b.len(),
            self.diff.changed.len()
        )
    }
}

fn word_of(change: &Change) -> &'static str {
    match change {
        Change::Shape { .. } => "shape",
        Change::Format { .. } => "format",
        Change::Attribute { .. } => "attribute",
        Change::Component { .. } => "component",
        Change::DType { .. } | Change::LogicalType { .. } => "dtype",
        Change::Values { .. } => "values",
        _ => "unreadable",
    }
}

/// Compares two files of any kinds: names, shapes, formats, attributes, types and values. The encoding
/// of values does not matter.
///
/// Args:
///     a, b: each a :class:`File`, a path, bytes, or a file object.
///     dense: whether to compare sparse and quantized tensors by their dense values.
///     only_values: whether to compare nothing but shapes and dense values, across types and kinds of
///         files: a model with its cast, or GGUF with the original.
///     rtol, atol: values within ``atol + rtol * abs(b)`` are equal.
///     threads: how many threads work.
///     progress: called with the bytes since the last call, of both files.
///     storage_options: as for :func:`open`, for both.
#[pyfunction]
#[pyo3(signature = (
    a, b, *, dense = false, only_values = false, rtol = None, atol = None, threads = None,
    progress = None, storage_options = None
))]
#[expect(clippy::too_many_arguments, reason = "the keywords of Python's call")]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    dense: bool,
    only_values: bool,
    rtol: Option<f64>,
    atol: Option<f64>,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Difference> {
    let tolerance = Tolerance { atol: atol.unwrap_or(0.0), rtol: rtol.unwrap_or(0.0) };
    if !(tolerance.atol >= 0.0 && tolerance.rtol >= 0.0) {
        return Err(misuse(py, "a tolerance is at least 0"));
    }
    let (a, b) = (opened(py, a, storage_options)?, opened(py, b, storage_options)?);
    let diff = Watch::new(progress).threads(threads).run(py, |progress| {
        let mut options = DiffOptions::new().dense(dense).only_values(only_values);
        if rtol.is_some() || atol.is_some() {
            options = options.tolerance(tolerance);
        }
        zt::diff::diff(a.file(), b.file(), &options.progress(progress))
    })?;
    Ok(Difference { diff })
}
