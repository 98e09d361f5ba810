//! CBOR values as JSON, by the conventions of `corpus/README.md`, and hexadecimal.

use serde_json::{Value as Json, json};
use zt::{Attributes, Value};

/// A map of attributes; `null` where there is none.
#[must_use]
pub fn of_attributes(attributes: Option<&Attributes>) -> Json {
    attributes.map_or(Json::Null, of_map)
}

/// A value. What JSON cannot say becomes a map whose first key begins with `$`.
#[must_use]
pub fn of_value(value: &Value) -> Json {
    match value {
        Value::Unsigned(number) => json!(number),
        Value::Negative(number) => match i64::try_from(!i128::from(*number)) {
            Ok(number) => json!(number),
            Err(_) => json!({ "$int": (!i128::from(*number)).to_string() }),
        },
        Value::Bytes(content) => json!({ "$bytes_hex": hex(content) }),
        Value::Text(content) => json!(content),
        Value::Array(items) => items.iter().map(of_value).collect(),
        Value::Map(content) => of_map(content),
        Value::Tag(number, item) => json!({ "$tag": number, "value": of_value(item) }),
        Value::Bool(content) => json!(content),
        Value::Null => Json::Null,
        Value::Undefined => json!({ "$simple": 23 }),
        Value::Simple(number) => json!({ "$simple": number }),
        Value::Float(number) if number.is_finite() => json!(number),
        Value::Float(number) => json!({ "$float": not_finite(*number) }),
    }
}

fn of_map(map: &Attributes) -> Json {
    let texts = map.iter().map(|(key, value)| Some((key.as_str()?.to_owned(), of_value(value))));
    if let Some(object) = texts.collect::<Option<serde_json::Map<String, Json>>>() {
        return Json::Object(object);
    }
    // CBOR maps have no order: any will do, as long as it is always the same.
    let mut pairs: Vec<Json> =
        map.iter().map(|(key, value)| json!([of_value(key), of_value(value)])).collect();
    pairs.sort_by_cached_key(Json::to_string);
    json!({ "$map": pairs })
}

/// How an infinity or a NaN is spelled.
#[must_use]
pub fn not_finite(number: f64) -> &'static str {
    match number {
        _ if number.is_nan() => "nan",
        _ if number > 0.0 => "inf",
        _ => "-inf",
    }
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
