//! Errors, in the words that hosts and the tests of safetensors expect.

use pyo3::prelude::*;
use zt_safetensors::SafetensorsViolation;

use crate::share::error::{class, fields};

/// A `SafetensorError` with this message.
pub(crate) fn refuse(message: impl Into<String>) -> PyErr {
    raise("SafetensorError", &message.into(), None)
}

/// A `SafetensorError` for an error of the engine. `doing` names the failed step.
pub(crate) fn failed(doing: &str, error: &zt::Error) -> PyErr {
    let message = format!("{doing}: {}", text(error));
    raise("SafetensorError", &message, Some(error))
}

/// The message of safetensors 0.8 for the same fault, or else the engine's.
fn text(error: &zt::Error) -> String {
    let name = error.object().unwrap_or_default();
    let violation = error.inner().and_then(|inner| inner.downcast_ref::<SafetensorsViolation>());
    let official = violation.and_then(|violation| official(violation, name));
    official.unwrap_or_else(|| error.to_string())
}

fn official(violation: &SafetensorsViolation, name: &str) -> Option<String> {
    Some(match violation {
        SafetensorsViolation::TooShort { .. } => "header too small".to_owned(),
        SafetensorsViolation::HeaderTooLong { .. } => "header too large".to_owned(),
        SafetensorsViolation::HeaderPastEnd { .. } => "invalid header length".to_owned(),
        SafetensorsViolation::NotUtf8 => "invalid UTF-8 in header".to_owned(),
        SafetensorsViolation::NoHeader
        | SafetensorsViolation::Start { .. }
        | SafetensorsViolation::Padding { .. }
        | SafetensorsViolation::Json(_)
        | SafetensorsViolation::RepeatedKey { .. } => {
            format!("invalid JSON in header: {violation}")
        }
        SafetensorsViolation::Backwards { .. } | SafetensorsViolation::Misplaced { .. } => {
            format!("invalid offset for tensor `{name}`")
        }
        SafetensorsViolation::Overflow { .. } => {
            "overflow computing buffer size from shape and/or element type".to_owned()
        }
        SafetensorsViolation::PartialByte { .. } => MISALIGNED.to_owned(),
        SafetensorsViolation::Size { .. } => {
            "invalid shape, data type, or offset for tensor".to_owned()
        }
        SafetensorsViolation::Cut { .. } | SafetensorsViolation::End { .. } => {
            "incomplete metadata, file not fully covered".to_owned()
        }
        _ => return None,
    })
}

/// For elements that do not fill their last byte.
pub(crate) const MISALIGNED: &str = "The slice is slicing for subbytes dtypes, and the slice does \
     not end up at a byte boundary, this is invalid.";

/// A `FileNotFoundError`: the official package raises it for every error of the system.
pub(crate) fn no_file(message: &str, error: &zt::Error) -> PyErr {
    raise("MissingFileError", message, Some(error))
}

fn raise(class_name: &str, message: &str, error: Option<&zt::Error>) -> PyErr {
    Python::attach(|py| {
        let make = || {
            let fields = error.map(|error| fields(py, error)).transpose()?;
            class(py, class_name)?.call((message,), fields.as_ref())
        };
        make().map_or_else(|broken| broken, PyErr::from_value)
    })
}
