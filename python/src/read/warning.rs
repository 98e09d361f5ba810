//! `zt.FileWarning`.

use pyo3::prelude::*;

/// A fact about a file that is worth knowing and is no error.
#[pyclass(frozen, module = "zt", name = "FileWarning")]
pub(crate) struct FileWarning(zt::Warning);

impl FileWarning {
    pub(crate) fn all(warnings: Vec<zt::Warning>) -> Vec<Self> {
        warnings.into_iter().map(FileWarning).collect()
    }
}

#[pymethods]
impl FileWarning {
    /// A stable word for it, listed in ``spec/warnings.md``.
    #[getter]
    fn code(&self) -> &str {
        self.0.code
    }

    /// The text of the warning.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// The name of the tensor that it concerns, or ``None``.
    #[getter]
    fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// The role of the component that it concerns, or ``None``.
    #[getter]
    fn component(&self) -> Option<&str> {
        self.0.component.as_deref()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<zt.FileWarning {}: {}>", self.0.code, self.0)
    }
}
