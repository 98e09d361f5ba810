//! Errors and warnings of the engine as plain objects. `zt/errors.js` makes exceptions of them.

use wasm_bindgen::JsValue;
use zt::{Error, ErrorKind, Warning};

use crate::value::{number, object};

/// `Result` of calls from JavaScript, which throw the error.
pub(crate) type Result<T, E = JsValue> = std::result::Result<T, E>;

/// Turns an error of the engine into what is thrown.
pub(crate) trait OrThrow<T> {
    /// The value, or the error as an object.
    fn or_throw(self) -> Result<T>;
}

impl<T> OrThrow<T> for zt::Result<T> {
    fn or_throw(self) -> Result<T> {
        self.map_err(|error| fields(&error))
    }
}

/// The fields of an error.
pub(crate) fn fields(error: &Error) -> JsValue {
    object([
        ("message", error.to_string().into()),
        ("kind", kind(error.kind()).into()),
        ("code", error.code().into()),
        ("object", error.object().into()),
        ("component", error.component().into()),
        ("offset", error.offset().map(number).into()),
    ])
}

/// The fields of a warning.
pub(crate) fn warning(warning: &Warning) -> JsValue {
    object([
        ("message", warning.to_string().into()),
        ("code", warning.code.into()),
        ("object", warning.object.as_deref().into()),
        ("component", warning.component.as_deref().into()),
    ])
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Malformed => "malformed",
        ErrorKind::DigestMismatch => "digest-mismatch",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Limit => "limit",
        ErrorKind::Misuse => "misuse",
        ErrorKind::Interrupted => "interrupted",
        _ => "io",
    }
}
