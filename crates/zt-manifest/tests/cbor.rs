//! CBOR: what is read, what is refused and where, and what values are written as.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use zt_manifest::{
    Attributes, Error, Index, Layout, LimitExceeded, Limits, MAX_KEY_LEN, Misuse, Rule, Value,
};

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

/// A manifest up to a field of its root that the specification does not define.
const BEFORE: &[u8] = b"\xA3\x67version\x651.2.0\x67objects\xA0\x64more";

/// Reads `item` as that field, with at most eight levels.
fn parsed(item: &[u8]) -> Result<Value, Error> {
    let mut limits = Limits::default();
    limits.nesting = 9;
    let index = Index::parse([BEFORE, item].concat(), Layout::V1_1, &limits)?;
    Ok(index.extra()?.get("more").cloned().unwrap())
}

fn scan(item: &[u8]) -> Result<(), Error> {
    parsed(item).map(drop)
}

fn rule(bytes: &[u8]) -> (u64, Rule) {
    match scan(bytes) {
        Err(Error::Cbor { offset, rule }) => (offset - BEFORE.len() as u64, rule),
        other => panic!("{bytes:x?}: {other:?}"),
    }
}

#[test]
fn accepts_everything_that_is_well_formed() {
    for bytes in [
        &b"\x00"[..],
        b"\x1B\x00\x00\x00\x00\x00\x00\x00\x01",
        b"\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x5F\x41a\x40\xFF",
        b"\x7F\x61a\x60\xFF",
        b"\x9F\xFF",
        b"\xBF\xFF",
        b"\xBF\x61a\x01\x61b\x02\xFF",
        b"\xC2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\xF7",
        b"\xE0",
        b"\xF8\x20",
        b"\xF9\x7E\x00",
        b"\xA3\x01\x00\x61\x31\x00\x41\x31\x00",
        b"\xA2\xA1\x01\x02\x00\xA1\x01\x03\x00",
    ] {
        assert!(scan(bytes).is_ok(), "{bytes:x?}");
    }
}

#[test]
fn names_the_rule_and_the_offset() {
    assert_eq!(rule(b""), (0, Rule::Truncated));
    assert_eq!(rule(b"\x19\x01"), (2, Rule::Truncated));
    assert_eq!(rule(b"\x9F\x01"), (2, Rule::Truncated));
    assert_eq!(rule(b"\xC1"), (1, Rule::Truncated));
    assert_eq!(rule(b"\x1C"), (0, Rule::Reserved(28)));
    assert_eq!(rule(b"\x81\x1F"), (1, Rule::Reserved(31)));
    assert_eq!(rule(b"\xFF"), (0, Rule::Break));
    assert_eq!(rule(b"\xBF\x01\xFF"), (2, Rule::Break));
    assert_eq!(rule(b"\xA1\x01\xFF"), (2, Rule::Break));
    assert_eq!(rule(b"\xC1\xFF"), (1, Rule::Break));
    assert_eq!(rule(b"\x7F\x41a\xFF"), (1, Rule::Chunk));
    assert_eq!(rule(b"\x7F\x7F\xFF\xFF"), (1, Rule::Chunk));
    assert_eq!(rule(b"\x5F\x61a\xFF"), (1, Rule::Chunk));
    assert_eq!(rule(b"\x5F\x00\xFF"), (1, Rule::Chunk));
    assert_eq!(rule(b"\xF8\x14"), (0, Rule::Simple(20)));
    assert_eq!(rule(b"\x62a\xC3"), (2, Rule::Utf8));
    assert_eq!(rule(b"\x7F\x61\xC3\x61\xA9\xFF"), (2, Rule::Utf8));
    assert_eq!(rule(b"\x00\x00"), (1, Rule::Trailing { byte_len: 1 }));
}

#[test]
fn finds_equal_keys_however_they_are_spelled() {
    for bytes in [
        &b"\xA2\x61a\x00\x61a\x00"[..],
        b"\xA2\x61a\x00\x7F\x61a\xFF\x00",
        b"\xA2\x62ab\x00\x7F\x61a\x60\x61b\xFF\x00",
        b"\xA2\x01\x00\x18\x01\x00",
        b"\xA2\x20\x00\x38\x00\x00",
        b"\xA2\x41a\x00\x5F\x41a\xFF\x00",
        b"\xA2\xF9\x3C\x00\x00\xFB\x3F\xF0\x00\x00\x00\x00\x00\x00\x00",
        b"\xA2\x80\x00\x9F\xFF\x00",
        b"\xA2\xA2\x01\x00\x02\x00\x00\xBF\x02\x00\x01\x00\xFF\x00",
        b"\xA2\xC1\x01\x00\xC1\x18\x01\x00",
        b"\xA2\xF6\x00\xF6\x00",
        b"\x81\xA1\x00\xA2\x61a\x00\x61a\x00",
        // Within a key, at any depth of it.
        b"\xA1\xA2\x61a\x00\x61a\x00\x00",
        b"\xA1\x81\xC1\xA1\xA2\x01\x00\x01\x00\x00\x00",
        b"\xA1\xA1\x00\xA2\x61a\x00\x7F\x61a\xFF\x00\x00",
    ] {
        let error = scan(bytes).unwrap_err();
        let is_duplicate = matches!(error, Error::DuplicateKey { .. });
        assert!(is_duplicate, "{bytes:x?}: {error}");
    }
}

#[test]
fn a_key_with_parts_has_a_limit() {
    let string = |byte_len: usize| {
        let head = u16::try_from(byte_len - 3).unwrap().to_be_bytes();
        [&b"\x59"[..], &head, &vec![7; byte_len - 3]].concat()
    };
    let keyed = |key: &[u8]| [b"\xA1", key, b"\x00"].concat();
    for opening in [&b"\x81"[..], b"\xC2", b"\xA1\x01"] {
        let of = |byte_len: usize| [opening, &string(byte_len - opening.len())].concat();
        assert!(scan(&keyed(&of(MAX_KEY_LEN))).is_ok());
        let bytes = keyed(&of(MAX_KEY_LEN + 1));
        let error = scan(&bytes).unwrap_err();
        let limit = LimitExceeded::Key { offset: BEFORE.len() as u64 + 1, limit: MAX_KEY_LEN };
        assert!(matches!(error, Error::Limit(it) if it == limit), "{error}");
        assert_eq!((error.code(), error.offset()), ("cbor", Some(BEFORE.len() as u64 + 1)));
        // As a value it may be of any length.
        assert!(scan(&[&b"\xA1\x00"[..], &of(MAX_KEY_LEN + 1)].concat()).is_ok());
    }
    assert!(scan(&keyed(&string(MAX_KEY_LEN + 1))).is_ok());
}

#[test]
fn stops_at_the_limit_however_deep_the_input() {
    for opening in [&b"\x81"[..], b"\x9F", b"\xA1\x00", b"\xC1", b"\xA1"] {
        let deep = opening.repeat(100_000);
        let error = scan(&deep).unwrap_err();
        assert_eq!(error.code(), "cbor");
    }
    assert!(scan(b"\x81\x81\x81\x81\x81\x81\x81\x80").is_ok());
    assert!(scan(b"\x81\x81\x81\x81\x81\x81\x81\x81\x80").is_err());
}

#[test]
fn widens_floats_without_losing_a_bit() {
    for (bytes, expected) in [
        (&[0xF9, 0x00, 0x01][..], 2f64.powi(-24)),
        (&[0xF9, 0x80, 0x00], -0.0),
        (&[0xF9, 0x7B, 0xFF], 65504.0),
        (&[0xF9, 0xFC, 0x00], f64::NEG_INFINITY),
        (&[0xF9, 0x7E, 0x00], f64::NAN),
        (&[0xFA, 0x00, 0x00, 0x00, 0x01], 2f64.powi(-149)),
        (&[0xFA, 0xFF, 0x80, 0x00, 0x01], f64::from_bits(0xFFF0_0000_2000_0000)),
    ] {
        let found = parsed(bytes).unwrap().as_f64().unwrap();
        assert_eq!(found.to_bits(), expected.to_bits(), "{bytes:x?}");
    }
}

#[test]
fn every_half_is_written_as_itself_but_signalling_ones() {
    for half in 0..=u16::MAX {
        let [high, low] = half.to_be_bytes();
        let value = parsed(&[0xF9, high, low]).unwrap().as_f64().unwrap();
        let is_signalling = value.is_nan() && half >> 9 & 1 == 0;
        let bytes = encoded(&Value::Float(value));
        assert_eq!(bytes.len(), if is_signalling { 9 } else { 3 });
        assert!(is_signalling || bytes == [0xF9, high, low], "{half:04x}");
    }
}
