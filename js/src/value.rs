//! Values of files as values of JavaScript.

use js_sys::{Array, BigInt, Object, Uint8Array};
use wasm_bindgen::JsValue;
use zt::{Attributes, Value};

/// A plain object. A key such as `__proto__` is a property like any other.
pub(crate) fn object<K: Into<JsValue>>(fields: impl IntoIterator<Item = (K, JsValue)>) -> JsValue {
    let entry = |(key, value): (K, JsValue)| Array::of2(&key.into(), &value);
    let entries: Array = fields.into_iter().map(entry).collect();
    // The entries are pairs, so this never fails.
    Object::from_entries(&entries).map_or(JsValue::UNDEFINED, JsValue::from)
}

/// An array of these values.
pub(crate) fn array(values: impl IntoIterator<Item = JsValue>) -> JsValue {
    values.into_iter().collect::<Array>().into()
}

/// A length, an offset or a dimension. Above 2^53 it is rounded, as `JSON.parse` does.
pub(crate) fn number(number: u64) -> JsValue {
    JsValue::from_f64(number as f64)
}

/// Attributes as an object. Keys that are not text become text.
pub(crate) fn attributes(map: &Attributes) -> JsValue {
    let key = |key: &Value| match key {
        Value::Text(text) => JsValue::from_str(text),
        other => JsValue::from_str(&format!("{other:?}")),
    };
    object(map.iter().map(|(name, value)| (key(name), of(value))))
}

fn of(value: &Value) -> JsValue {
    match value {
        Value::Unsigned(value) => integer(i128::from(*value)),
        Value::Negative(value) => integer(-1 - i128::from(*value)),
        Value::Bytes(bytes) => Uint8Array::from(&**bytes).into(),
        Value::Text(text) => JsValue::from_str(text),
        Value::Array(items) => array(items.items().map(|item| of(&item))),
        Value::Map(map) => attributes(map),
        Value::Tag(_, inner) => of(inner),
        Value::Bool(value) => JsValue::from_bool(*value),
        Value::Null | Value::Undefined => JsValue::NULL,
        Value::Simple(value) => JsValue::from_f64(f64::from(*value)),
        Value::Float(value) => JsValue::from_f64(*value),
    }
}

/// A number if it is exact, else a `bigint`.
fn integer(value: i128) -> JsValue {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() <= EXACT {
        return JsValue::from_f64(value as f64);
    }
    BigInt::from(value).into()
}
