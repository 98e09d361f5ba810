//! Errors of the engine, turned into the exceptions of `zt/_errors.py`.

use std::io;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use zt::ErrorKind;

/// `Result` with Python's error.
pub(crate) type Result<T, E = PyErr> = std::result::Result<T, E>;

/// Turns an error of the engine into an exception.
pub(crate) trait OrRaise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self) -> Result<T>;
}

impl<T> OrRaise<T> for zt::Result<T> {
    fn or_raise(self) -> Result<T> {
        self.map_err(|error| exception(&error))
    }
}

/// `error` as an exception.
pub(crate) fn exception(error: &zt::Error) -> PyErr {
    Python::attach(|py| raised(py, error).unwrap_or_else(|broken| broken))
}

fn raised(py: Python<'_>, error: &zt::Error) -> Result<PyErr> {
    let system = system_error(error);
    // An exception of a file object comes out as it was raised.
    if let Some(raised) = system.and_then(|error| error.get_ref()?.downcast_ref::<PyErr>()) {
        return Ok(raised.clone_ref(py));
    }
    let class = class(py, name_of(error, system))?;
    let value = class.call((error.to_string(),), Some(&fields(py, error)?))?;
    if error.kind() == ErrorKind::Io {
        value.setattr("errno", system.and_then(io::Error::raw_os_error))?;
        value.setattr("filename", error.path())?;
    }
    Ok(PyErr::from_value(value))
}

/// The attributes of the exception for `error`.
pub(crate) fn fields<'py>(py: Python<'py>, error: &zt::Error) -> Result<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("code", error.code())?;
    fields.set_item("object", error.object())?;
    fields.set_item("component", error.component())?;
    fields.set_item("offset", error.offset())?;
    fields.set_item("path", error.path().map(|path| path.display().to_string()))?;
    Ok(fields)
}

/// A `MisuseError` with this text: the call is wrong.
pub(crate) fn misuse(py: Python<'_>, message: &str) -> PyErr {
    new(py, "MisuseError", "misuse", message)
}

/// An `UnsupportedError` with this text.
pub(crate) fn unsupported(py: Python<'_>, message: &str) -> PyErr {
    new(py, "UnsupportedError", "unsupported", message)
}

/// A `MissingFileError` with this text.
pub(crate) fn missing(py: Python<'_>, message: &str) -> PyErr {
    new(py, "MissingFileError", zt::codes::IO, message)
}

/// A `TypeError` for a handle that is pickled: it holds an open file.
pub(crate) fn no_pickling(what: &str) -> PyErr {
    PyTypeError::new_err(format!("cannot pickle {what}: pass the path, and open the file there"))
}

/// Whether a `with` block ended by an exception. `__exit__` gets three arguments: its class, the
/// exception and its traceback, or `None` for each.
pub(crate) fn is_raised(exception: &Bound<'_, PyTuple>) -> bool {
    exception.iter().any(|part| !part.is_none())
}

fn new(py: Python<'_>, name: &str, code: &str, message: &str) -> PyErr {
    let fields = PyDict::new(py);
    let made = fields
        .set_item("code", code)
        .and_then(|()| class(py, name)?.call((message,), Some(&fields)));
    made.map_or_else(|broken| broken, PyErr::from_value)
}

fn name_of(error: &zt::Error, system: Option<&io::Error>) -> &'static str {
    match error.kind() {
        ErrorKind::Io if system.is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            "MissingFileError"
        }
        ErrorKind::Io => "FileError",
        ErrorKind::Malformed => "MalformedError",
        ErrorKind::DigestMismatch => "DigestMismatchError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::Misuse => match error.code() {
            zt::codes::NOT_FOUND => "TensorNotFoundError",
            zt::codes::WRONG_BASE => "WrongBaseError",
            _ => "MisuseError",
        },
        _ => "ZtError",
    }
}

/// The system's error that caused `error`.
fn system_error(error: &zt::Error) -> Option<&io::Error> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// The class or the function `name` of `zt/_errors.py`.
pub(crate) fn class<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("zt._errors").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}
