//! Maps: order, equality and replacing.

use zt_manifest::{Attributes, Value};

#[test]
fn of_equal_keys_the_last_value_wins_at_the_first_place() {
    let map = Attributes::from([("b", 1u64), ("a", 2), ("b", 3), ("b", 4)]);
    let mut extended = Attributes::from([("b", 1u64), ("a", 2)]);
    extended.extend([("b", 3u64), ("b", 4)]);
    let pair = |key: &str, value: u64| (Value::from(key), Value::from(value));
    for map in [map, extended] {
        let pairs: Vec<_> = map.into_iter().collect();
        assert_eq!(pairs, [pair("b", 4), pair("a", 2)]);
    }
}

#[test]
fn maps_are_equal_in_any_order_of_their_pairs() {
    let map = Attributes::from([("a", 1u64), ("b", 2)]);
    assert_eq!(map, Attributes::from([("b", 2u64), ("a", 1)]));
    assert_ne!(map, Attributes::from([("b", 1u64), ("a", 2)]));
    assert_ne!(map, Attributes::from([("a", 1u64)]));
}

#[test]
fn maps_in_another_order_are_equal_where_their_bits_are() {
    let quiet = f64::NAN.to_bits();
    let odd = [
        Value::Float(f64::NAN),
        Value::Float(-f64::NAN),
        Value::Float(f64::from_bits(quiet | 1)),
        Value::Float(f64::from_bits(quiet | (1 << 29))),
        Value::Float(f64::from_bits((quiet | (1 << 42)) ^ (1 << 51))),
        Value::Float(0.0),
        Value::Float(-0.0),
        Value::Unsigned(0),
        Value::Negative(0),
        Value::Text("a".to_owned()),
        Value::Bytes(b"a".to_vec()),
        Value::Tag(1, Box::new(Value::Null)),
        Value::array(vec![Value::Null]),
        Value::Null,
        Value::Undefined,
        Value::Bool(false),
        // What no file holds: a false that is none, and a value that begins two bytes.
        Value::Simple(20),
        Value::Simple(24),
        Value::Simple(32),
    ];
    for a in &odd {
        for b in &odd {
            let of_a = Attributes::from([("k", a.clone()), ("l", Value::Null)]);
            let of_b = Attributes::from([("l", Value::Null), ("k", b.clone())]);
            assert_eq!(of_a == of_b, a == b, "{a:?} {b:?}");
            let keys: Attributes = [(a.clone(), 1u64), (b.clone(), 2)].into_iter().collect();
            assert_eq!(keys.len() == 1, a == b, "{a:?} {b:?}");
        }
    }
}

/// Both are deeper than what can be written.
#[test]
fn maps_of_any_depth_compare() {
    let nested = |bottom: u64, pairs: fn(Value) -> [(Value, Value); 2]| {
        (0..600).fold(Value::Unsigned(bottom), |value, _| Attributes::from(pairs(value)).into())
    };
    let first = |value| [("k".into(), value), ("l".into(), Value::Null)];
    let last = |value| [("l".into(), Value::Null), ("k".into(), value)];
    assert_eq!(nested(1, first), nested(1, last));
    assert_ne!(nested(1, first), nested(2, last));
}

/// Each map has two keys that are maps, which differ at their bottom alone: sorted anew wherever
/// they are compared, that was 2^64 comparisons.
#[test]
fn keys_that_are_maps_are_put_in_order_once() {
    fn pair(key: Value, other: Value, is_reversed: bool) -> Value {
        let mut pairs = [(key, Value::Null), (other, Value::Null)];
        if is_reversed {
            pairs.reverse();
        }
        Attributes::from(pairs).into()
    }
    let nested = |bottom: u64, is_reversed: bool| {
        let short =
            |depth| (0..depth).fold(Value::Null, |key, _| pair(key, Value::Undefined, is_reversed));
        (0..64).fold(Value::Unsigned(bottom), |key, _| pair(key, short(64), is_reversed))
    };
    assert_eq!(nested(1, false), nested(1, true));
    assert_ne!(nested(1, false), nested(2, true));
}

#[test]
fn removing_keeps_the_order_of_the_others() {
    let mut map = Attributes::from([("a", 1u64), ("b", 2), ("c", 3)]);
    assert_eq!(map.remove("b"), Some(Value::Unsigned(2)));
    assert_eq!(map.remove("b"), None);
    let keys: Vec<_> = map.iter().filter_map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "c"]);
    assert_eq!((map.len(), map.is_empty()), (2, false));
    assert!(Attributes::new().is_empty());
}
