//! Attributes of an object, each as a value of one type, and the errors (`attribute`) that name
//! them.

use zt_manifest::{Attributes, Value};

use crate::base::error::{AttributeFault, Error, FormatViolation, Result, abridged};

/// The attribute `name` as a text; `None` if it is absent.
///
/// # Errors
///
/// Malformed: the attribute is not a text.
pub fn text<'a>(attributes: &'a Attributes, name: &'static str) -> Result<Option<&'a str>> {
    typed(attributes, name, Value::as_str, "a text")
}

/// The attribute `name` as a bool; `None` if it is absent.
///
/// # Errors
///
/// Malformed: the attribute is not a bool.
pub fn bool(attributes: &Attributes, name: &'static str) -> Result<Option<bool>> {
    typed(attributes, name, Value::as_bool, "a bool")
}

/// The attribute `name` as an unsigned integer; `None` if it is absent.
///
/// # Errors
///
/// Malformed: the attribute is not an unsigned integer.
pub fn unsigned(attributes: &Attributes, name: &'static str) -> Result<Option<u64>> {
    typed(attributes, name, Value::as_u64, "an unsigned integer")
}

/// The attribute `name` as a map; `None` if it is absent.
///
/// # Errors
///
/// Malformed: the attribute is not a map.
pub fn map<'a>(attributes: &'a Attributes, name: &'static str) -> Result<Option<&'a Attributes>> {
    typed(attributes, name, Value::as_map, "a map")
}

fn typed<'a, T>(
    attributes: &'a Attributes,
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

/// The error for a missing attribute that the format requires.
pub fn missing(name: &'static str) -> Error {
    fault(name, AttributeFault::Missing)
}

/// The error for a text that is not one of the expected ones.
pub fn other_text(name: &'static str, found: &str, expected: &'static str) -> Error {
    let found = abridged(found);
    fault(name, AttributeFault::Text { found, expected })
}

/// The error for a number outside its range.
pub fn out_of_range(name: &'static str, found: u64, min: u64, max: u64) -> Error {
    fault(name, AttributeFault::Range { found, min, max })
}

pub(crate) const fn fault(name: &'static str, fault: AttributeFault) -> Error {
    FormatViolation::Attribute { name, fault }.of_object()
}
