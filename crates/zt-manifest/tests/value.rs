//! Values and the types of `serde`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zt_manifest::{Map, Value};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Recipe {
    bits: u8,
    scale: f32,
    names: Vec<String>,
    nested: BTreeMap<String, Option<i64>>,
}

#[test]
fn a_struct_survives_as_an_attribute() {
    let recipe = Recipe {
        bits: 4,
        scale: 0.1,
        names: vec!["a".to_owned(), "ü".to_owned()],
        nested: BTreeMap::from([("x".to_owned(), Some(-7)), ("y".to_owned(), None)]),
    };
    let value = Value::serialized(&recipe).unwrap();
    let map = value.as_map().unwrap();
    assert_eq!(map.get("bits"), Some(&Value::Unsigned(4)));
    assert_eq!(
        map.get("scale").and_then(Value::as_f64),
        Some(0.1f32.into())
    );
    let nested = Map::from([("x", Value::Negative(6)), ("y", Value::Null)]);
    assert_eq!(map.get("nested"), Some(&nested.into()));
    assert_eq!(value.deserialized::<Recipe>().unwrap(), recipe);
}

#[test]
fn a_value_of_another_type_is_an_error_of_the_attribute() {
    let error = Value::from("text").deserialized::<u64>().unwrap_err();
    assert_eq!(error.code(), "attribute");
    assert!(Value::from(300u64).deserialized::<u8>().is_err());
}

#[test]
fn bignums_deserialize_where_they_fit() {
    let bignum = Value::Tag(2, Box::new(vec![1u8, 0, 0, 0, 0, 0, 0, 0, 0].into()));
    assert_eq!(bignum.deserialized::<u128>().unwrap(), 1 << 64);
    assert!(bignum.deserialized::<u64>().is_err());
    assert_eq!(Value::serialized(&(1u128 << 64)).unwrap(), bignum);
}
