//! The program `zt`, which the wheel installs.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::share::kinds::kinds;

/// Runs the program with these arguments, the first of which is its name, and returns its exit code.
#[pyfunction]
pub(crate) fn _program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| zt_cli::main_with(arguments.into_iter(), kinds()))
}
