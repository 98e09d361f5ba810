//! A JSON argument as the value of an attribute: the inverse of [`crate::output::value`].

use std::path::Path;
use std::{fmt, fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use zt::{Attributes, Error, Value};

use crate::failure::Failure;

/// The value of a JSON text; `None` if the text is not JSON. Bytes, tags, NaN and infinities are
/// spelled as `--json` prints them.
///
/// A number without a point or an exponent is an integer, except `-0`.
///
/// # Errors
///
/// Code `misuse` for an integer out of range (the range of CBOR; from -2^63 inside other JSON), for
/// an unknown key that begins with `$`, and for JSON that no value can hold: a number beyond f64,
/// half a surrogate, too deep nesting, a duplicate key.
pub(crate) fn parse(text: &str) -> Option<Result<Value, Failure>> {
    match serde_json::from_str(text) {
        Ok(FromJson(value)) => Some(match (large_integer(text), text.trim().parse::<i128>()) {
            (None, _) => Ok(value),
            (Some(_), Ok(integer)) if integer < 0 && u64::try_from(!integer).is_ok() => {
                Ok(Value::Negative(u64::try_from(!integer).unwrap_or(u64::MAX)))
            }
            (Some(integer), _) => Err(Failure::misuse(format!(
                "{integer} is out of range for integers: write {integer}.0 for a float, or use --text"
            ))),
        }),
        // JSON by its grammar, but not a value that we can store.
        Err(error) => serde_json::from_str::<IgnoredAny>(text).is_ok().then(|| {
            let message = format!("{text} is JSON that cannot be stored: {error}");
            Err(Failure::misuse(message))
        }),
    }
}

/// The first integer in a JSON text that `serde_json` would round.
fn large_integer(text: &str) -> Option<&str> {
    // Digits between quotes are not an integer. Only a quoted text has escapes.
    let (mut is_text, mut is_escaped) = (false, false);
    let is_outside = |character: char| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_text = !is_text,
            _ => return is_text || !matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'),
        }
        true
    };
    let mut numbers = text.split(is_outside).filter(|part| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbers.find(|part| part.parse::<i64>().is_err() && part.parse::<u64>().is_err())
}

/// The readings of VALUE of the command line: JSON if it parses as JSON, and the text. `@FILE` stands for the
/// text of a file, `@@` for a text that begins with `@`. The first reading counts where any value is allowed.
pub(crate) fn readings(value: &str, is_text: bool) -> Result<Vec<Value>, Failure> {
    let text = match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => rest.to_owned(),
        Some(path) => {
            let of_path = |error: io::Error| Error::from(error).with_path(Path::new(path));
            fs::read_to_string(path).map_err(of_path)?
        }
        None => value.to_owned(),
    };
    let parsed = parse(&text).filter(|_| !is_text).transpose()?;
    Ok(parsed.into_iter().chain([Value::from(text)]).collect())
}

/// A value, from JSON.
struct FromJson(Value);

impl<'de> Deserialize<'de> for FromJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson).map(FromJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    /// `serde_json` gives negative numbers alone. CBOR stores them as -1 - n.
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Negative(!value.cast_unsigned()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(FromJson(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Attributes::new();
        while let Some((key, FromJson(value))) = pairs.next_entry::<String, _>()? {
            if map.insert(key.as_str(), value).is_some() {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
        }
        let spelling = |(key, _): (&Value, _)| key.as_str().is_some_and(|key| key.starts_with('$'));
        if !map.iter().any(spelling) {
            return Ok(Value::Map(map));
        }
        special(&map).ok_or_else(|| {
            A::Error::custom(
                "of the keys with $, only $bytes, $float and $tag with value are known",
            )
        })
    }
}

/// The value of an object with a key that begins with `$`; `None` for an unknown spelling.
fn special(map: &Attributes) -> Option<Value> {
    let text = |key| map.get(key).and_then(Value::as_str);
    match (map.len(), map.get("$tag"), map.get("value")) {
        (2, Some(Value::Unsigned(tag)), Some(value)) => {
            Some(Value::Tag(*tag, Box::new(value.clone())))
        }
        (1, ..) => match (text("$bytes"), text("$float")) {
            (Some(digits), _) => STANDARD.decode(digits).ok().map(Value::Bytes),
            (None, Some("nan")) => Some(Value::Float(f64::NAN)),
            (None, Some("inf")) => Some(Value::Float(f64::INFINITY)),
            (None, Some("-inf")) => Some(Value::Float(f64::NEG_INFINITY)),
            _ => None,
        },
        _ => None,
    }
}
