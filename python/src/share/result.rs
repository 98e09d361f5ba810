//! Results of calls as the classes of `zt/_results.py`.

use pyo3::prelude::*;

use crate::share::error::Result;

/// The class `name`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    py.import("zt._results")?.getattr(name)
}
