//! The values of a manifest as JSON.
//!
//! JSON has no spelling for some values of CBOR. They become:
//!
//! | CBOR | JSON |
//! | --- | --- |
//! | bytes | `{"$bytes": "<base64>"}` |
//! | tagged value | `{"$tag": 1, "value": ...}` |
//! | NaN, infinities | `{"$float": "nan"}`, `"inf"`, `"-inf"` |
//! | undefined, unnamed simple values | `null` |
//! | a key that is not text | its JSON as text: `"1"` |
//!
//! Integers of all 65 bits are JSON numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use zt::Value;

use super::text::cell;

/// A map of a manifest; `{}` if there is none.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a>(pub(crate) Option<&'a zt::Attributes>);

impl Attributes<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none_or(zt::Attributes::is_empty)
    }
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(map) = self.0 else {
            return serializer.serialize_map(Some(0))?.end();
        };
        serializer.collect_map(map.iter().map(|(key, value)| {
            let key = match key {
                Value::Text(text) => text.clone(),
                key => serde_json::to_string(&Any(key)).unwrap_or_default(), // Fails for no value.
            };
            (key, Any(value))
        }))
    }
}

/// A value of a manifest.
pub(crate) struct Any<'a>(pub(crate) &'a Value);

impl Serialize for Any<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Unsigned(value) => serializer.serialize_u64(*value),
            Value::Negative(value) => serializer.serialize_i128(!i128::from(*value)),
            Value::Bytes(bytes) => one(serializer, "$bytes", &STANDARD.encode(bytes)),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.items().try_for_each(|item| list.serialize_element(&Any(&item)))?;
                list.end()
            }
            Value::Map(map) => Attributes(Some(map)).serialize(serializer),
            Value::Tag(tag, value) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("$tag", tag)?;
                map.serialize_entry("value", &Any(value))?;
                map.end()
            }
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Null | Value::Undefined | Value::Simple(_) => serializer.serialize_unit(),
            Value::Float(value) => Float(*value).serialize(serializer),
        }
    }
}

impl Any<'_> {
    /// The JSON of the value as a cell.
    pub(crate) fn cell(&self) -> String {
        let text = serde_json::to_string(self); // Fails for no value.
        cell(&text.unwrap_or_default()).into_owned()
    }
}

/// A number, or `{"$float": "nan"}` where JSON has none. All NaNs are spelled alike.
pub(crate) struct Float(pub(crate) f64);

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self.0 {
            value if value.is_finite() => return serializer.serialize_f64(value),
            value if value.is_nan() => "nan",
            value if value > 0.0 => "inf",
            _ => "-inf",
        };
        one(serializer, "$float", name)
    }
}

fn one<S: Serializer, V: Serialize + ?Sized>(
    serializer: S,
    key: &str,
    value: &V,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, value)?;
    map.end()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
