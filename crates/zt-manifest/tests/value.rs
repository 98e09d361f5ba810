//! Values and the types of `serde`.
#![cfg(feature = "serde")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use zt_manifest::{Attributes, MAX_NESTING, Value};

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
    assert_eq!(map.get("scale").and_then(Value::as_f64), Some(0.1f32.into()));
    let nested = Attributes::from([("x", Value::Negative(6)), ("y", Value::Null)]);
    assert_eq!(map.get("nested"), Some(&nested.into()));
    assert_eq!(value.deserialized::<Recipe>().unwrap(), recipe);
}

/// Refuses to be serialized.
struct Unwilling;

impl Serialize for Unwilling {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("nothing that can be said"))
    }
}

/// A map with this key, and with this key.
struct Twice<K>(K);

impl<K: Serialize> Serialize for Twice<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(&self.0, 1), (&self.0, 2)])
    }
}

#[test]
fn a_value_of_another_type_is_an_error_of_the_attribute() {
    let deep = (0..MAX_NESTING + 1).fold(Value::Null, |value, _| vec![value].into());
    for (error, code, words) in [
        (
            Value::from("text").deserialized::<u64>().unwrap_err(),
            "attribute",
            "invalid type: string, expected integer",
        ),
        (
            Value::from(300u64).deserialized::<u8>().unwrap_err(),
            "attribute",
            "invalid value: integer `300`, expected u8",
        ),
        (
            Value::from(Attributes::new()).deserialized::<Recipe>().unwrap_err(),
            "attribute",
            "missing field `bits`",
        ),
        (
            deep.deserialized::<Vec<u8>>().unwrap_err(),
            "attribute",
            "values are nested deeper than 64",
        ),
        (Value::serialized(&Unwilling).unwrap_err(), "misuse", "nothing that can be said"),
        (
            Value::serialized(&Twice("k")).unwrap_err(),
            "misuse",
            "the key \"k\" occurs twice in one map",
        ),
        (Value::serialized(&Twice(7)).unwrap_err(), "misuse", "a key occurs twice in one map"),
    ] {
        assert_eq!((error.code(), &error.to_string()[..]), (code, words));
        assert_eq!(error.offset(), None, "{words}");
    }
}

/// What an accessor gives, as a debug text.
type Accessor = fn(&Value) -> Option<String>;

#[test]
fn each_accessor_takes_values_of_its_own_type_only() {
    fn said(value: Option<impl std::fmt::Debug>) -> Option<String> {
        value.map(|value| format!("{value:?}"))
    }
    let accessors: [(&str, Accessor); 9] = [
        ("str", |value| said(value.as_str())),
        ("u64", |value| said(value.as_u64())),
        ("i64", |value| said(value.as_i64())),
        ("i128", |value| said(value.as_i128())),
        ("bool", |value| said(value.as_bool())),
        ("f64", |value| said(value.as_f64())),
        ("map", |value| said(value.as_map().map(Attributes::len))),
        ("array", |value| said(value.as_array())),
        ("bytes", |value| said(value.as_bytes())),
    ];
    for (value, expected) in [
        (Value::from("text"), &[("str", "\"text\"")][..]),
        (Value::Unsigned(7), &[("u64", "7"), ("i64", "7"), ("i128", "7")]),
        (
            Value::Unsigned(u64::MAX),
            &[("u64", "18446744073709551615"), ("i128", "18446744073709551615")],
        ),
        (Value::Negative(6), &[("i64", "-7"), ("i128", "-7")]),
        (Value::Negative(u64::MAX), &[("i128", "-18446744073709551616")]),
        (Value::Bool(true), &[("bool", "true")]),
        (Value::Float(2.0), &[("f64", "2.0")]),
        (Value::from(Attributes::from([("k", 1u64)])), &[("map", "1")]),
        (Value::array(vec![]), &[("array", "[]")]),
        (Value::Null, &[]),
        (Value::Simple(99), &[]),
        (Value::Bytes(vec![7, 8]), &[("bytes", "[7, 8]")]),
        (Value::Tag(2, Box::new(Value::Bytes(vec![1]))), &[]),
    ] {
        let found: Vec<(&str, String)> = accessors
            .iter()
            .filter_map(|(name, accessor)| Some((*name, accessor(&value)?)))
            .collect();
        let expected: Vec<(&str, String)> =
            expected.iter().map(|(name, said)| (*name, (*said).to_owned())).collect();
        assert_eq!(found, expected, "{value:?}");
        assert_eq!(value.is_null(), value == Value::Null, "{value:?}");
    }
}

/// `levels` lists, each in the next.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Unsigned(7), |value, _| vec![value].into())
}

/// In a thread with the stack of the main thread on Windows.
fn with_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(test).unwrap().join().unwrap();
}

#[test]
fn lists_as_deep_as_in_any_file_deserialize_and_deeper_ones_do_not() {
    with_a_small_stack(|| {
        let nesting = zt_manifest::Limits::default().nesting;
        let mut decoded: ciborium::Value = nested(nesting).deserialized().unwrap();
        for _ in 0..nesting {
            decoded = decoded.into_array().unwrap().pop().unwrap();
        }
        assert_eq!(decoded, ciborium::Value::from(7));
        for levels in [nesting + 1, MAX_NESTING] {
            let error = nested(levels).deserialized::<ciborium::Value>().unwrap_err();
            assert_eq!(error.code(), "attribute");
            assert!(error.to_string().contains("nested deeper than 64"), "{error}");
        }
    });
}

/// What may have a tag takes two steps of `ciborium` for each list, with a tag or without.
#[test]
fn lists_as_deep_as_in_any_file_deserialize_with_their_tags() {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Captured(ciborium::tag::Captured<Vec<Captured>>);

    with_a_small_stack(|| {
        let nesting = zt_manifest::Limits::default().nesting;
        let value = (1..nesting).fold(Value::array(vec![]), |value, _| vec![value].into());
        let mut lists = vec![value.deserialized::<Captured>().unwrap()];
        let mut depth = 0;
        while let Some(Captured(list)) = lists.pop() {
            lists = list.1;
            depth += 1;
        }
        assert_eq!(depth, nesting);
    });
}

#[test]
fn bignums_deserialize_where_they_fit() {
    let bignum = Value::Tag(2, Box::new(vec![1u8, 0, 0, 0, 0, 0, 0, 0, 0].into()));
    assert_eq!(bignum.deserialized::<u128>().unwrap(), 1 << 64);
    assert!(bignum.deserialized::<u64>().is_err());
    assert_eq!(Value::serialized(&(1u128 << 64)).unwrap(), bignum);
}

#[test]
fn a_map_has_the_bytes_of_the_value_that_it_makes() {
    let map = Attributes::from([("b", 1u64), ("a", 2)]);
    let expected = b"\xA2\x61a\x02\x61b\x01";
    assert_eq!(map.to_cbor().unwrap(), expected);
    assert_eq!(Value::from(map).to_cbor().unwrap(), expected);
}
