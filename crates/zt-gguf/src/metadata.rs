//! The pairs of a file, and the attributes that they become.
//!
//! Values become values of CBOR. The attribute `gguf.types` keeps their order and their types in
//! GGUF: `[["general.architecture", "string"], ...]`.

use std::collections::HashMap;

use zt::{Attributes, Error, Result, Value};
use zt_foreign::{display, repeated};

use crate::cursor::Cursor;
use crate::pairs::TYPES;
use crate::value_type::{Scalar, VALUES_MAX, ValueType};
use crate::violation::Violation;

/// The pair with the alignment, and the alignment without that pair.
pub(super) const ALIGNMENT: &str = "general.alignment";
pub(super) const DEFAULT_ALIGNMENT: u64 = 32;

/// Keys, types and values, in the order of the file. Keys are unique.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pairs: Vec<(String, ValueType, Value)>,
}

impl Metadata {
    pub(super) fn read(cursor: &mut Cursor<'_>, count: u64) -> Result<Self> {
        let mut budget = VALUES_MAX;
        let mut pairs = Vec::new();
        for _ in 0..count {
            let key = cursor.text("a key")?;
            let (value_type, value) = ValueType::read(cursor, &mut budget)?;
            pairs.push((key, value_type, value));
        }
        let mut keys: Vec<&str> = pairs.iter().map(|(key, ..)| key.as_str()).collect();
        if keys.contains(&TYPES) {
            return Err(Violation::ReservedKey { key: TYPES }.into());
        }
        if let Some(key) = repeated(&mut keys) {
            let key = key.to_owned();
            return Err(Violation::RepeatedKey { key }.into());
        }
        Ok(Metadata { pairs })
    }

    /// The number that all offsets are multiples of.
    pub(super) fn alignment(&self) -> Result<u64> {
        let Some((_, value_type, value)) = self.pairs.iter().find(|(key, ..)| key == ALIGNMENT)
        else {
            return Ok(DEFAULT_ALIGNMENT);
        };
        let alignment = value.as_u64().filter(|_| value_type.name() == "uint32");
        alignment.filter(|alignment| alignment.is_power_of_two()).ok_or_else(|| {
            let value = match value.as_i128() {
                Some(number) => format!("the {value_type} {number}"),
                None => format!("of type {value_type}"),
            };
            Error::from(Violation::Alignment { value })
        })
    }

    /// The attributes; `None` if there are no pairs.
    pub(super) fn into_attributes(self) -> Option<Attributes> {
        if self.pairs.is_empty() {
            return None;
        }
        let types = self.pairs.iter().map(|(key, value_type, _)| {
            Value::array(vec![key.as_str().into(), value_type.name().into()])
        });
        let types = Value::array(types.collect());
        let pairs = self.pairs.into_iter().map(|(key, _, value)| (key, value));
        Some(pairs.chain([(TYPES.to_owned(), types)]).collect())
    }

    /// The pairs for these attributes, and the keys of attributes that no pair can represent. A pair
    /// keeps its old place, and its old type if that still holds the value.
    pub(super) fn from_attributes(attributes: Attributes) -> (Self, Vec<String>) {
        let mut places: HashMap<String, (usize, ValueType)> = HashMap::new();
        let types = attributes.get(TYPES).and_then(Value::as_array);
        for (place, item) in types.unwrap_or_default().iter().enumerate() {
            if let Some([key, value_type]) = item.as_array()
                && let (Some(key), Some(value_type)) = (key.as_str(), value_type.as_str())
                && let Some(value_type) = ValueType::from_name(value_type)
            {
                places.insert(key.to_owned(), (place, value_type));
            }
        }
        let (mut placed, mut lost) = (Vec::new(), Vec::new());
        for (key, value) in attributes {
            if key.as_str() == Some(TYPES) {
                continue;
            }
            let known = key.as_str().and_then(|key| places.get(key).copied());
            let mut scratch = Vec::new();
            let held = known.filter(|(_, value_type)| value_type.write(&value, &mut scratch));
            let value_type = held.map(|(_, value_type)| value_type);
            match (key, value_type.or_else(|| ValueType::of(&value))) {
                (Value::Text(key), Some(value_type)) => {
                    let place = known.map_or(usize::MAX, |(place, _)| place);
                    placed.push((place, (key, value_type, value)));
                }
                (key, _) => lost.push(display(&key)),
            }
        }
        // The sort is stable: pairs without an old place come last, in the order of the attributes.
        placed.sort_by_key(|(place, _)| *place);
        let pairs = placed.into_iter().map(|(_, pair)| pair).collect();
        (Metadata { pairs }, lost)
    }

    /// Adds a pair, unless there is one with this key.
    pub(super) fn add(&mut self, key: String, value: Value) {
        let int32 = ValueType::Array(Scalar::Int32);
        let held = Some(int32).filter(|int32| int32.write(&value, &mut Vec::new()));
        let value_type = held.or_else(|| ValueType::of(&value));
        let value_type = value_type.filter(|_| self.pairs.iter().all(|(known, ..)| *known != key));
        self.pairs.extend(value_type.map(|value_type| (key, value_type, value)));
    }

    /// Gives a pair another value, if there is one with this key and its type holds the value.
    pub(super) fn replace(&mut self, key: &str, new: Value) {
        if let Some((_, value_type, value)) = self.pairs.iter_mut().find(|(known, ..)| known == key)
            && value_type.write(&new, &mut Vec::new())
        {
            *value = new;
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.pairs.retain(|(known, ..)| known != key);
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Writes the pairs, little-endian.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (key, value_type, value) in &self.pairs {
            out.extend((key.len() as u64).to_le_bytes());
            out.extend(key.as_bytes());
            // Writes always: a pair holds a value of its type.
            value_type.write(value, out);
        }
    }
}
