//! `zt.verify`: every tensor of a file, checked.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use zt::VerifyOptions;

use crate::read::open::opened;
use crate::share::error::{Result, exception};
use crate::share::warning;
use crate::share::work::{PyProgress, Watch};

/// The result of :func:`verify`. It is true if there are no problems.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Verification {
    report: zt::Report,
}

#[pymethods]
impl Verification {
    /// Whether there are no problems.
    #[getter]
    fn ok(&self) -> bool {
        self.report.is_ok()
    }

    /// Every fault, as an exception that was not raised, in the order of the data.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let problems = self.report.problems.iter();
        PyList::new(py, problems.map(|error| exception(error).into_value(py)))
    }

    /// Facts that are worth knowing and are no faults.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        warning::all(py, &self.report.warnings)
    }

    /// The components without a digest, as pairs of the tensor's name and the role.
    #[getter]
    fn unverified(&self) -> Vec<(String, String)> {
        self.report.unverified.clone()
    }

    /// Whether the manifest of a ``.zt`` file carries a digest of its own, which was right; None for files of
    /// other kinds.
    #[getter]
    fn manifest_digest(&self) -> Option<bool> {
        self.report.manifest_digest
    }

    /// How many decoded bytes were checked.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.report.bytes
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __repr__(&self) -> String {
        format!(
            "<zt.Verification ok={} problems={}>",
            if self.ok() { "True" } else { "False" },
            self.report.problems.len()
        )
    }
}

/// Checks every tensor of a file: its digests, its contents, the rules of its format.
///
/// Args:
///     source: a :class:`File`, a path, bytes, or a file object.
///     strict: whether faults that readers tolerate are problems too.
///     threads: how many threads work; by default all cores, or ``ZT_NUM_THREADS``.
///     progress: called with the decoded bytes since the last call. An exception from it ends the work.
///     storage_options: as for :func:`open`.
///
/// Returns:
///     The problems. Damage raises an exception only if the file does not open.
///
/// >>> import zt
/// >>> import numpy, zt.numpy
/// >>> bool(zt.verify(zt.numpy.save({"a": numpy.ones(3)})))
/// True
#[pyfunction]
#[pyo3(signature = (source, *, strict = false, threads = None, progress = None, storage_options = None))]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    strict: bool,
    threads: Option<usize>,
    progress: PyProgress<'py>,
    storage_options: Option<&Bound<'py, PyDict>>,
) -> Result<Verification> {
    let open = opened(py, source, storage_options)?;
    let report = Watch::new(progress).threads(threads).run(py, |progress| {
        let options = VerifyOptions::new().strict(strict).progress(progress);
        open.file().verify(&options)
    })?;
    warning::tell(py, &report.warnings, &open.file().warnings())?;
    Ok(Verification { report })
}
