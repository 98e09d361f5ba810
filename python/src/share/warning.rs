//! Warnings of the engine as `zt.FileWarning`, and as warnings of Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use zt::Warning;

use crate::share::error::{Result, class};

/// Each as a `zt.FileWarning`.
pub(crate) fn all<'py>(py: Python<'py>, warnings: &[Warning]) -> Result<Vec<Bound<'py, PyAny>>> {
    let one = |warning: &Warning| {
        let fields = PyDict::new(py);
        fields.set_item("code", warning.code)?;
        fields.set_item("message", &warning.message)?;
        fields.set_item("object", &warning.object)?;
        fields.set_item("component", &warning.component)?;
        class(py, "FileWarning")?.call((warning.to_string(),), Some(&fields))
    };
    warnings.iter().map(one).collect()
}

/// Warns of each that is not among those that an earlier call has `told`. Every call that the program answers
/// with warnings comes here.
///
/// # Errors
///
/// The warning itself, if the filter of Python's `warnings` makes it an error.
pub(crate) fn tell(py: Python<'_>, warnings: &[Warning], told: &[Warning]) -> Result<()> {
    let new = warnings.iter().filter(|warning| !told.contains(warning));
    let new: Vec<Warning> = new.cloned().collect();
    if !new.is_empty() {
        class(py, "warn")?.call1((all(py, &new)?,))?;
    }
    Ok(())
}
