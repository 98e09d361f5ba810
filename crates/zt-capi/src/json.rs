//! Attributes as JSON text, spelled as `zt meta get --json` spells them.
//!
//! | value | JSON |
//! | --- | --- |
//! | bytes | `{"$bytes": "<base64>"}` |
//! | tagged value | `{"$tag": 1, "value": ...}` |
//! | NaN, infinities | `{"$float": "nan"}`, `"inf"`, `"-inf"` |
//! | undefined, unnamed simple values | `null` |
//! | a key that is not text | its JSON as text: `"1"` |

use std::ffi::CString;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};
use zt::{Attributes, Result, Value};

use crate::border::misuse;
use crate::error::c_text;

pub(crate) fn text_of(attributes: &Attributes) -> CString {
    let mut out = String::new();
    map(attributes, &mut out);
    c_text(&out)
}

fn map(attributes: &Attributes, out: &mut String) {
    out.push('{');
    for (at, (key, value)) in attributes.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "," });
        if let Some(key) = key.as_str() {
            string(key, out);
        } else {
            let mut json = String::new();
            write(key, &mut json);
            string(&json, out);
        }
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

fn write(value: &Value, out: &mut String) {
    // Writing to a string does not fail.
    let _ = match value {
        Value::Unsigned(value) => write!(out, "{value}"),
        Value::Negative(value) => write!(out, "{}", !i128::from(*value)),
        Value::Bytes(bytes) => write!(out, "{{\"$bytes\":\"{}\"}}", STANDARD.encode(bytes)),
        Value::Text(text) => {
            string(text, out);
            Ok(())
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.items().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write(&item, out);
            }
            out.push(']');
            Ok(())
        }
        Value::Map(attributes) => {
            map(attributes, out);
            Ok(())
        }
        Value::Tag(tag, value) => {
            let begun = write!(out, "{{\"$tag\":{tag},\"value\":");
            write(value, out);
            out.push('}');
            begun
        }
        Value::Bool(value) => write!(out, "{value}"),
        Value::Null | Value::Undefined | Value::Simple(_) => write!(out, "null"),
        Value::Float(value) if value.is_finite() => write!(out, "{}", Json::from(*value)),
        Value::Float(value) if value.is_nan() => write!(out, "{{\"$float\":\"nan\"}}"),
        Value::Float(value) if *value > 0.0 => write!(out, "{{\"$float\":\"inf\"}}"),
        Value::Float(_) => write!(out, "{{\"$float\":\"-inf\"}}"),
    };
}

fn string(text: &str, out: &mut String) {
    let _ = write!(out, "{}", Json::from(text));
}

/// The attributes in a JSON object. A key that occurs twice has its last value. An integer beyond 64 bits is a float.
///
/// # Errors
///
/// `misuse` for a text that is no JSON object.
pub(crate) fn parse(text: &str) -> Result<Attributes> {
    let parsed: Map<String, Json> = serde_json::from_str(text)
        .map_err(|error| misuse(format!("attributes are a JSON object: {error}")))?;
    attributes(parsed)
}

fn attributes(pairs: Map<String, Json>) -> Result<Attributes> {
    let pairs = pairs.into_iter().map(|(key, json)| Ok((key, value(json)?)));
    Ok(pairs.collect::<Result<Vec<_>>>()?.into_iter().collect())
}

fn value(json: Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Value::from(value),
            (None, Some(value)) => Value::from(value),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(items) => {
            Value::array(items.into_iter().map(value).collect::<Result<Vec<_>>>()?)
        }
        Json::Object(pairs) if pairs.keys().any(|key| key.starts_with('$')) => special(pairs)?,
        Json::Object(pairs) => Value::Map(attributes(pairs)?),
    })
}

/// The value of an object with a key that begins with `$`.
fn special(mut pairs: Map<String, Json>) -> Result<Value> {
    let unknown =
        || misuse("of the keys with $, only $bytes, $float and $tag with value are known");
    let (tag, inner) = (pairs.get("$tag").and_then(Json::as_u64), pairs.remove("value"));
    if let (Some(tag), Some(inner), 1) = (tag, inner, pairs.len()) {
        return Ok(Value::Tag(tag, Box::new(value(inner)?)));
    }
    let text = |key| pairs.get(key).and_then(Json::as_str).filter(|_| pairs.len() == 1);
    match (text("$bytes"), text("$float")) {
        (Some(digits), _) => STANDARD.decode(digits).map(Value::Bytes).map_err(|_| unknown()),
        (None, Some("nan")) => Ok(Value::Float(f64::NAN)),
        (None, Some("inf")) => Ok(Value::Float(f64::INFINITY)),
        (None, Some("-inf")) => Ok(Value::Float(f64::NEG_INFINITY)),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_as_it_is_written() {
        let text = r#"{"a":[1,-2,0.5,true,null,"x\u0000"],"b":{"$bytes":"AQI="},"c":{"$float":"nan"},"d":{"$tag":1,"value":{"e":{"$float":"-inf"}}}}"#;
        let written = text_of(&parse(text).unwrap());
        assert_eq!(written.to_str(), Ok(text));
    }

    #[test]
    fn other_json_is_refused() {
        for text in
            ["", "[]", "{\"a\":{\"$bytes\":\"?\"}}", "{\"a\":{\"$tag\":1}}", "{\"a\":{\"$\":1}}"]
        {
            assert_eq!(parse(text).unwrap_err().code(), zt::codes::MISUSE, "{text}");
        }
    }
}
