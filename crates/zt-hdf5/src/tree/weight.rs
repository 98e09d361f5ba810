//! The approximate memory of attributes, to limit the copies that a file can cause.

use zt::{Attributes, Value};

pub(crate) fn of_all(attributes: &Attributes) -> u64 {
    attributes.iter().flat_map(|(key, value)| [of(key), of(value)]).sum()
}

pub(crate) fn of(value: &Value) -> u64 {
    let own = size_of::<Value>() as u64;
    let held = match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::Array(items) => items.items().map(|item| of(&item)).sum(),
        Value::Map(map) => of_all(map),
        Value::Tag(_, value) => of(value),
        _ => 0,
    };
    own.strict_add(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_its_own_bytes_and_its_contents() {
        let own = size_of::<Value>() as u64;
        let text = |len: usize| Value::Text("x".repeat(len));
        let named: Attributes = [("ab", text(3))].into_iter().collect();
        assert_eq!(of_all(&named), 2 * own + 5);
        for (value, values, held) in [
            (Value::Null, 1, 0),
            (text(5), 1, 5),
            (Value::Bytes(vec![0; 7]), 1, 7),
            (Value::array(vec![Value::Null, text(2)]), 3, 2),
            (Value::Map(named), 3, 5),
            (Value::Tag(1, Box::new(text(4))), 2, 4),
        ] {
            assert_eq!(of(&value), values * own + held, "{value:?}");
        }
    }
}
