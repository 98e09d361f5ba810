//! Values: what they are equal to, and the CBOR that they are written as.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use zt_manifest::{Attributes, Error, MAX_KEY_LEN, Misuse, Value};

#[test]
fn integers_keep_their_value_at_every_border() {
    for value in [0, 1, -1, i64::MAX, i64::MIN, i64::MIN + 1] {
        assert_eq!(Value::from(value).as_i64(), Some(value));
    }
    assert_eq!(Value::from(-1i64), Value::Negative(0));
    assert_eq!(Value::from(i8::MIN), Value::from(-128i16));
    assert_eq!(Value::from(usize::MAX), Value::from(usize::MAX as u64));
    assert_eq!(Value::Negative(u64::MAX).as_i128(), Some(-(1 << 64)));
    assert_eq!(Value::Negative(1 << 63).as_i64(), None);
    assert_eq!(Value::Unsigned(1 << 63).as_i64(), None);
}

#[test]
fn floats_are_equal_where_their_bits_are() {
    assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
    assert_ne!(Value::Float(-0.0), Value::Float(0.0));
    assert_ne!(Value::Float(1.0), Value::Unsigned(1));
}

#[test]
fn tags_are_equal_where_number_and_content_are() {
    let tag = |number, content: u64| Value::Tag(number, Box::new(content.into()));
    assert_eq!(tag(1, 7), tag(1, 7));
    assert_ne!(tag(1, 7), tag(2, 7));
    assert_ne!(tag(1, 7), tag(1, 8));
}

fn encoded(value: &Value) -> Vec<u8> {
    value.to_cbor().unwrap()
}

#[test]
fn writes_the_shortest_form_of_every_value() {
    // RFC 8949 appendix A, and the borders between widths.
    for (value, expected) in [
        (Value::Unsigned(23), &b"\x17"[..]),
        (Value::Unsigned(24), b"\x18\x18"),
        (Value::Unsigned(65536), b"\x1A\x00\x01\x00\x00"),
        (Value::Negative(u64::MAX), b"\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
        (Value::Float(1.5), b"\xF9\x3E\x00"),
        (Value::Simple(19), b"\xF3"),
        (Value::Simple(255), b"\xF8\xFF"),
        (Value::Tag(2, Box::new(vec![1u8].into())), b"\xC2\x41\x01"),
    ] {
        assert_eq!(encoded(&value), expected, "{value:?}");
    }
}

#[test]
fn a_key_that_readers_refuse_is_not_written() {
    let keyed = |key: Value| Value::Map(Attributes::from_iter([(key, Value::Null)]));
    let of = |byte_len: usize| Value::array(vec![vec![7u8; byte_len].into()]);
    // With a head of one byte and one of three.
    assert!(keyed(of(MAX_KEY_LEN - 4)).to_cbor().is_ok());
    let long = keyed(of(MAX_KEY_LEN - 3));
    let refused = Misuse::Key { limit: MAX_KEY_LEN };
    assert!(matches!(long.to_cbor(), Err(Error::Misuse(it)) if it == refused));
    assert!(Value::array(vec![of(MAX_KEY_LEN)]).to_cbor().is_ok());
    // It can still be compared.
    assert_eq!(long, long.clone());
    assert_ne!(long, keyed(of(MAX_KEY_LEN)));
}

#[test]
fn sorts_maps_by_their_encoded_keys() {
    // The order of RFC 8949 §4.2.1, its own example.
    let keys = [
        Value::Bool(false),
        Value::array(vec![Value::Unsigned(100)]),
        Value::from("aa"),
        Value::from(-1i64),
        Value::from("z"),
        Value::Unsigned(100),
        Value::Unsigned(10),
    ];
    let map: Attributes = keys.into_iter().map(|key| (key, Value::Null)).collect();
    let bytes = encoded(&map.into());
    let expected = b"\xA7\x0A\xF6\x18\x64\xF6\x20\xF6\x61z\xF6\x62aa\xF6\x81\x18\x64\xF6\xF4\xF6";
    assert_eq!(bytes, expected);
}

#[test]
fn writes_the_bytes_of_rfc_8949() {
    // Appendix A.
    for (value, expected) in [
        (0.0, &b"\xF9\x00\x00"[..]),
        (-0.0, b"\xF9\x80\x00"),
        (1.0, b"\xF9\x3C\x00"),
        (1.1, b"\xFB\x3F\xF1\x99\x99\x99\x99\x99\x9A"),
        (65504.0, b"\xF9\x7B\xFF"),
        (100_000.0, b"\xFA\x47\xC3\x50\x00"),
        (3.402_823_466_385_288_6e38, b"\xFA\x7F\x7F\xFF\xFF"),
        (1.0e300, b"\xFB\x7E\x37\xE4\x3C\x88\x00\x75\x9C"),
        (5.960_464_477_539_063e-8, b"\xF9\x00\x01"),
        (0.000_061_035_156_25, b"\xF9\x04\x00"),
        (-4.1, b"\xFB\xC0\x10\x66\x66\x66\x66\x66\x66"),
        (f64::INFINITY, b"\xF9\x7C\x00"),
        (f64::NEG_INFINITY, b"\xF9\xFC\x00"),
        (f64::NAN, b"\xF9\x7E\x00"),
    ] {
        assert_eq!(encoded(&Value::Float(value)), expected, "{value}");
    }
}

#[test]
fn agrees_with_ciborium_on_every_exponent() {
    let ends = [0, 1, u64::MAX, 3 << 50, 0x5555_5555_5555];
    let fractions = ends.into_iter().chain((0..52).map(|bit| 1 << bit));
    for fraction in fractions {
        for high in 0..=0xFFFu64 {
            let value = f64::from_bits(high << 52 | fraction & ((1 << 52) - 1));
            let mut theirs = Vec::new();
            let header = ciborium_ll::Header::Float(value);
            ciborium_ll::Encoder::from(&mut theirs).push(header).unwrap();
            assert_eq!(encoded(&Value::Float(value)), theirs, "{:016x}", value.to_bits());
        }
    }
}
