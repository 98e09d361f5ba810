//! Reading the attributes of an object: a value of the type that the format asks for, or an error
//! that names the attribute (`attribute`).
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt_manifest::{Map, Value};

use crate::base::error::{AttributeFault, Error, Result, Violation, abridged};

/// The text of this attribute; `None` where there is no such attribute.
///
/// # Errors
///
/// Malformed: the attribute is not a text.
pub fn text<'a>(attributes: &'a Map, name: &'static str) -> Result<Option<&'a str>> {
    typed(attributes, name, Value::as_str, "a text")
}

/// The bool of this attribute; `None` where there is no such attribute.
///
/// # Errors
///
/// Malformed: the attribute is not a bool.
pub fn bool(attributes: &Map, name: &'static str) -> Result<Option<bool>> {
    typed(attributes, name, Value::as_bool, "a bool")
}

/// The number of this attribute; `None` where there is no such attribute.
///
/// # Errors
///
/// Malformed: the attribute is not an unsigned integer.
pub fn unsigned(attributes: &Map, name: &'static str) -> Result<Option<u64>> {
    typed(attributes, name, Value::as_u64, "an unsigned integer")
}

fn typed<'a, T>(
    attributes: &'a Map,
    name: &'static str,
    read: impl Fn(&'a Value) -> Option<T>,
    expected: &'static str,
) -> Result<Option<T>> {
    match attributes.get(name).map(read) {
        Some(None) => Err(fault(name, AttributeFault::Type { expected })),
        Some(value) => Ok(value),
        None => Ok(None),
    }
}

/// The error for a format that cannot do without this attribute.
#[must_use]
pub fn missing(name: &'static str) -> Error {
    fault(name, AttributeFault::Missing)
}

/// The error for a text that is none of those expected.
#[must_use]
pub fn other_text(name: &'static str, found: &str, expected: &'static str) -> Error {
    let found = abridged(found);
    fault(name, AttributeFault::Text { found, expected })
}

/// The error for a number outside its range.
#[must_use]
pub fn out_of_range(name: &'static str, found: u64, min: u64, max: u64) -> Error {
    fault(name, AttributeFault::Range { found, min, max })
}

const fn fault(name: &'static str, fault: AttributeFault) -> Error {
    Violation::Attribute { name, fault }.of_object()
}
