//! `zt.diff`: the differences of two files.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::diff::{Change, DiffOptions, Distance, Summary, Tolerance};

use crate::read::open::opened;
use crate::share::error::{Result, misuse};
use crate::share::result;
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
            changed.set_item(&object.name, words_of(&object.changes))?;
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

/// A word for each kind of change.
fn words_of(changes: &[Change]) -> Vec<&'static str> {
    let mut words = Vec::new();
    for word in changes.iter().map(word_of) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
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
///     summary: whether to measure how far the dense values of each tensor are from each other. It compares as
///         ``only_values`` does.
///     threads: how many threads work.
///     progress: called with the bytes since the last call, of both files.
///     storage_options: as for :func:`open`, for both.
///
/// Returns:
///     A :class:`Difference`; with ``summary``, a :class:`DifferenceSummary`.
#[pyfunction]
#[pyo3(signature = (
    a, b, *, dense = false, only_values = false, rtol = None, atol = None, summary = false,
    threads = None, progress = None, storage_options = None
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
    summary: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let tolerance = Tolerance { atol: atol.unwrap_or(0.0), rtol: rtol.unwrap_or(0.0) };
    if !(tolerance.atol >= 0.0 && tolerance.rtol >= 0.0) {
        return Err(misuse(py, "a tolerance is at least 0"));
    }
    if summary && (dense || only_values || rtol.is_some() || atol.is_some()) {
        let text = "`summary` compares as `only_values` does, and takes no other way of comparing";
        return Err(misuse(py, text));
    }
    let (a, b) = (opened(py, a, storage_options)?, opened(py, b, storage_options)?);
    if summary {
        let found = Watch::new(progress).threads(threads).run(py, |progress| {
            zt::diff::summary(a.file(), b.file(), &DiffOptions::new().progress(progress))
        })?;
        return summed(py, a.file(), b.file(), found);
    }
    let diff = Watch::new(progress).threads(threads).run(py, |progress| {
        let mut options = DiffOptions::new().dense(dense).only_values(only_values);
        if rtol.is_some() || atol.is_some() {
            options = options.tolerance(tolerance);
        }
        zt::diff::diff(a.file(), b.file(), &options.progress(progress))
    })?;
    Ok(Bound::new(py, Difference { diff })?.into_any())
}

/// The summary, with the largest change first.
fn summed<'py>(
    py: Python<'py>,
    a: &zt::File,
    b: &zt::File,
    found: Summary,
) -> Result<Bound<'py, PyAny>> {
    let (mut near, unlike): (Vec<_>, Vec<_>) = found
        .objects
        .into_iter()
        .map(|object| (object.name, object.distance))
        .partition(|(_, distance)| distance.is_ok());
    // NaN and infinities have no distance, and come first.
    near.sort_by(|(_, x), (_, y)| {
        let key = |found: &std::result::Result<Distance, _>| {
            let distance = found.as_ref().ok();
            distance.map_or((0, 0.0), |it| (it.not_finite, it.relative()))
        };
        let ((x, of_x), (y, of_y)) = (key(x), key(y));
        (y > 0).cmp(&(x > 0)).then(of_y.total_cmp(&of_x))
    });
    let distances = PyDict::new(py);
    for (name, distance) in near {
        let Ok(distance) = distance else { continue };
        let dtype =
            |file: &zt::File| file.tensor(&name).ok()?.value_type().map(|it| it.to_string());
        let fields = (
            distance.count,
            distance.different,
            distance.not_finite,
            distance.relative(),
            distance.cosine(),
            distance.max_abs,
            (dtype(a), dtype(b)),
        );
        distances.set_item(&name, result::class(py, "Distance")?.call1(fields)?)?;
    }
    let changed = PyDict::new(py);
    for (name, distance) in unlike {
        changed.set_item(name, words_of(&distance.err().unwrap_or_default()))?;
    }
    let fields = (distances, found.only_a, found.only_b, changed);
    result::class(py, "DifferenceSummary")?.call1(fields)
}
