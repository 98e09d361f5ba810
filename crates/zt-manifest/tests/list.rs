//! Lists that are kept as they are encoded.
#![allow(clippy::unwrap_used, reason = "tests")]

use zt_manifest::{Attributes, List, ListBuilder, Value};

fn built(values: &[Value]) -> List {
    let mut builder = ListBuilder::default();
    for value in values {
        builder.push(value.clone()).unwrap();
    }
    builder.finish()
}

/// Values without parts, one of each sort.
fn plain() -> Vec<Value> {
    vec![
        Value::Unsigned(u64::MAX),
        Value::Negative(u64::MAX),
        Value::Bytes(vec![1, 0xFF]),
        Value::from("text"),
        Value::Bool(true),
        Value::Null,
        Value::Undefined,
        Value::Simple(255),
        Value::Float(f64::from_bits(0x7FF8_0000_0000_0001)),
        Value::Float(-0.0),
    ]
}

fn many(times: usize) -> Vec<Value> {
    std::iter::repeat_with(plain).take(times).flatten().collect()
}

#[test]
fn a_long_list_has_the_values_that_were_added() {
    let with = |last: Value| [many(9), vec![last]].concat();
    let map = Value::Map(Attributes::from_iter([("key", 1u64)]));
    for values in [
        Vec::new(),
        plain(),
        many(9),
        with(map),
        with(Value::array(vec![Value::Null])),
        with(Value::Tag(2, Box::new(Value::Bytes(vec![1])))),
        // No simple value, which has no encoding.
        with(Value::Simple(24)),
    ] {
        let list = built(&values);
        assert_eq!((list.len(), list.is_empty()), (values.len(), values.is_empty()));
        assert!(list.items().eq(values.iter().map(std::borrow::Cow::Borrowed)));
        assert_eq!(format!("{list:?}"), format!("{values:?}"));
        let clone = list.clone();
        assert_eq!(*list, values);
        // Also once the slice was used.
        assert!(list.items().eq(values.iter().map(std::borrow::Cow::Borrowed)));
        let value = Value::from(list);
        assert_eq!(value, Value::array(values.clone()));
        assert_eq!(Value::array(values.clone()), value);
        assert_eq!(value, Value::from(clone.clone()));
        assert_eq!(Vec::from(clone), values);
        let Value::Array(list) = value else { return };
        assert_eq!(Vec::from(list), values);
    }
}

#[test]
fn long_lists_are_equal_where_their_values_are() {
    let (list, values) = (Value::from(built(&many(9))), many(9));
    let mut other = values.clone();
    other.rotate_left(1);
    for other in [other.clone(), many(8), [values, plain()].concat()] {
        assert_ne!(list, Value::from(built(&other)));
        assert_ne!(list, Value::array(other));
    }
}

#[test]
fn a_long_list_is_encoded_as_its_values_are() {
    let values = many(9);
    let expected = Value::array(values.clone()).to_cbor().unwrap();
    assert_eq!(Value::from(built(&values)).to_cbor().unwrap(), expected);
}
