//! `zt.examine`: whether the files of a folder make one model.

use std::path::PathBuf;

use pyo3::prelude::*;
use zt_model::ExamineOptions;

use crate::share::error::{OrRaise, Result};
use crate::share::kinds::kinds;

/// Something about the files of a model that no single file shows. See :func:`examine`.
#[pyclass(frozen, module = "zt")]
pub(crate) struct Finding(zt_model::Finding);

#[pymethods]
impl Finding {
    /// A stable word for it, listed in ``spec/warnings.md``.
    #[getter]
    fn code(&self) -> &str {
        self.0.code
    }

    /// The paths of the files that it is about.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.0.files.clone()
    }

    /// What is wrong.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do.
    #[getter]
    fn advice(&self) -> &str {
        &self.0.advice
    }

    /// Whether weights are missing or ambiguous for certain. Other findings may be intended.
    #[getter]
    fn is_problem(&self) -> bool {
        self.0.is_problem()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<zt.Finding {}: {}>", self.0.code, self.0)
    }
}

/// Finds what does not fit together in a folder of weights: shards of an older split, files beside a set, two
/// indexes, gaps, weights that contradict ``config.json``, adapters of another base.
///
/// It reads the headers of the files. A file that cannot be opened is passed over.
///
/// Args:
///     folder: a path.
///     values: compare the values of tensors that two shards have.
#[pyfunction]
#[pyo3(signature = (folder, *, values = false))]
pub(crate) fn examine(py: Python<'_>, folder: PathBuf, values: bool) -> Result<Vec<Finding>> {
    let options = ExamineOptions::new().values(values);
    let found = py.detach(|| zt_model::examine(&kinds(), folder, &options));
    let found = found.or_raise()?;
    Ok(found.into_iter().map(Finding).collect())
}
