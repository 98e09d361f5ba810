//! What attributes take in memory, about: what is made again and again is counted by it.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Attributes, Value};

/// Bytes of attributes.
pub(super) fn of_all(attributes: &Attributes) -> u64 {
    let pairs = attributes
        .iter()
        .map(|(key, value)| of(key).saturating_add(of(value)));
    pairs.fold(0, u64::saturating_add)
}

/// Bytes of a value.
pub(super) fn of(value: &Value) -> u64 {
    let own = size_of::<Value>() as u64;
    let held = match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::Array(items) => items.iter().map(of).fold(0, u64::saturating_add),
        Value::Map(map) => of_all(map),
        Value::Tag(_, value) => of(value),
        _ => 0,
    };
    own.saturating_add(held)
}
