//! The root of a manifest, and the index of its objects.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use ciborium::{Value as Cbor, cbor};
use common::{component, encode, manifest, object, parse, refused, with, without};
use zt_manifest::{Attributes, Error, Index, Layout, Limits, Rule, Value, Warning};

fn root() -> Cbor {
    cbor!({"version" => "1.2.0", "objects" => {}}).unwrap()
}

fn code(root: Cbor) -> &'static str {
    refused(&encode(&root), Layout::V1_1)
}

#[test]
fn finds_objects_in_any_order_of_their_names() {
    for names in [
        &["a", "aa", "b", ""][..],
        &["", "a", "aa", "b"],
        &["", "a", "b", "aa"],
        &["b", "a", "ab", "aaa", "", "ü", "z"],
        &["only"],
        &[],
    ] {
        let objects = names.iter().map(|name| (Cbor::from(*name), object(component())));
        let root = with(root(), "objects", Cbor::Map(objects.collect()));
        let index = parse(encode(&root), Layout::V1_1).unwrap();
        assert_eq!(index.names().collect::<Vec<_>>(), names);
        for (position, name) in names.iter().enumerate() {
            assert_eq!(index.find(name), Some(position), "{name:?} of {names:?}");
        }
        for name in ["c", "aab", "\u{10FFFF}", "onl", "only "] {
            assert_eq!(index.find(name), None, "{name:?} of {names:?}");
        }
    }
}

#[test]
fn finds_names_that_are_spelled_in_chunks() {
    let mut bytes = b"\xBF\x7F\x64vers\x63ion\xFF\x651.2.0\x67objects\xBF".to_vec();
    bytes.extend(b"\x7F\x61l\x60\x61b\xFF\xF6\x62la\xF6\x7F\xFF\xF6\xFF\xFF");
    let index = parse(bytes, Layout::V1_1).unwrap();
    assert_eq!(index.names().collect::<Vec<_>>(), ["lb", "la", ""]);
    assert_eq!(
        ["lb", "la", "", "l"].map(|name| index.find(name)),
        [Some(0), Some(1), Some(2), None]
    );
    assert!(index.object(0).fault().is_some());
}

#[test]
fn finds_names_that_are_all_spelled_in_chunks() {
    let mut bytes = b"\xA2\x67version\x651.2.0\x67objects\xA2".to_vec();
    bytes.extend(b"\x7F\x61b\xFF\xF6\x7F\x61a\x61a\xFF\xF6");
    let index = parse(bytes, Layout::V1_1).unwrap();
    assert_eq!(index.names().collect::<Vec<_>>(), ["b", "aa"]);
    assert_eq!(["b", "aa"].map(|name| index.find(name)), [Some(0), Some(1)]);
}

#[test]
fn refuses_two_objects_of_one_name_in_any_order_and_spelling() {
    for names in [
        &b"\xA2\x61a\xF6\x61a\xF6"[..],
        b"\xA3\x61a\xF6\x61b\xF6\x61a\xF6",
        b"\xA2\x61a\xF6\x7F\x61a\xFF\xF6",
        b"\xA3\x62aa\xF6\x61b\xF6\x78\x01b\xF6",
    ] {
        let bytes = [&b"\xA2\x67version\x631.2\x67objects"[..], names].concat();
        let error = parse(&bytes, Layout::V1_1).unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    }
}

#[test]
fn refuses_a_root_that_is_not_what_the_specification_says() {
    assert_eq!(code(without(root(), "objects")), "schema");
    assert_eq!(code(without(root(), "version")), "schema");
    assert_eq!(code(Cbor::Array(vec![root()])), "schema");
    assert_eq!(code(Cbor::Null), "schema");
    for wrong in [Cbor::Null, Cbor::Array(vec![]), Cbor::from("x")] {
        assert_eq!(code(with(root(), "objects", wrong)), "schema");
    }
    for wrong in [Cbor::Null, Cbor::from(1), Cbor::Bytes(b"1.2.0".to_vec())] {
        assert_eq!(code(with(root(), "version", wrong)), "schema");
    }
    for wrong in [Cbor::from("x"), Cbor::Array(vec![])] {
        assert_eq!(code(with(root(), "attributes", wrong)), "schema");
    }
    for key in [Cbor::from(1), Cbor::Bytes(b"w".to_vec()), Cbor::Bool(true)] {
        let objects = Cbor::Map(vec![(key, object(component()))]);
        assert_eq!(code(with(root(), "objects", objects)), "schema");
    }
}

#[test]
fn judges_the_version_before_the_rest_of_the_root() {
    for text in ["2.0.0", "0.9.0", "10.2.0", "", "one", "v1.2.0"] {
        assert_eq!(code(with(root(), "version", text)), "version", "{text}");
        let other = with(without(root(), "objects"), "version", text);
        assert_eq!(code(other), "version", "{text}");
    }
    for (text, words) in [
        ("one", "\"one\" is not a version such as 1.2.0"),
        ("2.0.0", "version \"2.0.0\": this reader knows major version 1"),
    ] {
        let error = parse(encode(&with(root(), "version", text)), Layout::V1_1).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn warns_of_newer_minor_versions_and_of_suffixes() {
    let warnings = |text: &str| {
        let index = parse(encode(&with(root(), "version", text)), Layout::V1_1).unwrap();
        assert_eq!(index.version().unwrap().text, text);
        index.warnings().to_vec()
    };
    assert_eq!(warnings("1"), []);
    assert_eq!(warnings("1.2.99"), []);
    let version = "1.3.0".to_owned();
    assert_eq!(warnings("1.3.0"), [Warning::NewerMinor { version }]);
    let version = "1.2.0+build.5".to_owned();
    assert_eq!(warnings("1.2.0+build.5"), [Warning::VersionSuffix { version }]);
}

#[test]
fn keeps_what_it_does_not_know() {
    let mut strange = with(root(), "tensors", cbor!({"a" => [1, null]}).unwrap());
    strange = with(strange, "generator", "test");
    strange = with(strange, "attributes", cbor!({"k" => 1.5}).unwrap());
    if let Cbor::Map(pairs) = &mut strange {
        pairs.push((Cbor::from(7), Cbor::Tag(1, Box::new(Cbor::from(0)))));
        pairs.push((cbor!({"map" => "as key"}).unwrap(), Cbor::Bytes(vec![1])));
    }
    let index = parse(encode(&strange), Layout::V1_1).unwrap();
    assert_eq!(index.attributes().unwrap(), Some(Attributes::from([("k", 1.5)])));
    let extra = index.extra().unwrap();
    let keys: Vec<_> = extra.iter().map(|(key, _)| key.clone()).collect();
    let key = Value::from(Attributes::from([("map", "as key")]));
    let expected = ["tensors".into(), "generator".into(), Value::Unsigned(7), key];
    assert_eq!(keys, expected);
    assert_eq!(extra.get("generator"), Some(&"test".into()));
}

#[test]
fn null_attributes_are_none_and_empty_ones_are_empty() {
    let attributes = |value: Cbor| {
        let index = parse(encode(&with(root(), "attributes", value)), Layout::V1_1).unwrap();
        index.attributes().unwrap()
    };
    assert_eq!(attributes(Cbor::Null), None);
    assert_eq!(attributes(Cbor::Map(vec![])), Some(Attributes::new()));
}

#[test]
fn refuses_a_manifest_that_is_cut_or_continued_anywhere() {
    let bytes = manifest(object(component()));
    for cut in 0..bytes.len() {
        assert_eq!(refused(&bytes[..cut], Layout::V1_1), "cbor", "at {cut}");
    }
    for more in [&b"\0"[..], b"\xFF", b"\xF6", &bytes] {
        let longer = [&bytes, more].concat();
        let error = parse(&longer, Layout::V1_1).unwrap_err();
        let rule = Rule::Trailing { byte_len: more.len() as u64 };
        assert!(matches!(error, Error::Cbor { rule: found, .. } if found == rule));
        assert_eq!(error.offset(), Some(bytes.len() as u64));
    }
}

#[test]
fn finds_flaws_in_parts_that_no_caller_asks_for() {
    for (flaw, words) in [
        (&b"\x62\xC3\x28"[..], "a text is not UTF-8"),
        (b"\xA2\x01\x00\x01\x00", "twice"),
        (b"\xF8\x18", "simple value 24 is spelled in two bytes"),
        (b"\x7F\x41a\xFF", "a chunk of a string has another type"),
        (b"\x9B\x00\x00\x00\x00\xFF\xFF\xFF\xFF\x00", "a length of 4294967295"),
        (b"\x1D", "additional information 29 is reserved"),
        (b"\xFF", "a break code where nothing can end"),
        (b"\x18", "it ends within an item"),
        (b"\x00\x00", "1 bytes follow the item"),
    ] {
        let mut bytes = b"\xA3\x67version\x651.2.0\x67objects\xA0\x61x\x81".to_vec();
        bytes.extend(flaw);
        let error = parse(&bytes, Layout::V1_1).unwrap_err();
        assert_eq!(error.code(), "cbor", "{flaw:x?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_deep_manifest_meets_the_limit_and_not_the_end_of_the_stack() {
    for opening in [&b"\x81"[..], b"\x9F", b"\xA1\x61x", b"\xBF\x61x", b"\xD8\x20"] {
        let mut bytes = b"\xA3\x67version\x651.2.0\x67objects\xA0\x61x".to_vec();
        bytes.extend(opening.repeat(100_000));
        bytes.push(0);
        let error = parse(&bytes, Layout::V1_1).unwrap_err();
        assert_eq!(error.code(), "cbor");
        assert!(error.to_string().contains("limit of 64"), "{error}");
    }
}

#[test]
fn objects_of_the_usual_form_are_checked_as_others_are() {
    let sound = manifest(object(component()));
    let nested =
        |levels| Index::parse(&sound, Layout::V1_1, &Limits::default().with_nesting(levels));
    assert!(nested(5).is_ok());
    assert!(nested(4).unwrap_err().to_string().contains("limit of 4"));
    let duplicate = (&b"offset"[..], &b"length"[..]);
    for (word, other) in [duplicate, (b"dense", b"\xFFense"), (b"\x63f32", b"\x7Ff32")] {
        let at = sound.windows(word.len()).position(|found| found == word).unwrap();
        let damaged = [&sound[..at], other, &sound[at + word.len()..]].concat();
        assert_eq!(refused(&damaged, Layout::V1_1), "cbor");
    }
}

#[test]
fn a_limit_on_nesting_cannot_be_lifted_beyond_what_the_stack_holds() {
    let limits = Limits::default().with_nesting(usize::MAX);
    let nested = |levels: usize| {
        let mut bytes = b"\xA3\x67version\x651.2.0\x67objects\xA0\x61x".to_vec();
        bytes.extend(b"\x81".repeat(levels));
        bytes.push(0);
        bytes
    };
    let index = Index::parse(nested(zt_manifest::MAX_NESTING - 1), Layout::V1_1, &limits).unwrap();
    let extra = index.extra().unwrap();
    assert_eq!(extra.clone(), extra);
    assert!(Index::parse(nested(zt_manifest::MAX_NESTING), Layout::V1_1, &limits).is_err());
}

#[test]
fn a_manifest_longer_than_the_limit_is_refused_unread() {
    let limits = Limits::default().with_manifest_len(10);
    let error = Index::parse([0xFF; 11], Layout::V1_1, &limits).unwrap_err();
    assert_eq!(error.code(), "manifest-size");
    let bytes = encode(&root());
    let limits = limits.with_manifest_len(bytes.len() as u64);
    assert!(Index::parse(&bytes, Layout::V1_1, &limits).is_ok());
}

#[test]
fn many_keys_out_of_order_do_not_take_quadratic_time() {
    // A hundred thousand keys: pairwise comparison would take minutes.
    let mut bytes = b"\xA3\x67version\x651.2.0\x67objects\xA0\x61x\xBA\x00\x01\x86\xA0".to_vec();
    for i in 0..100_000u32 {
        bytes.push(0x1A);
        bytes.extend(i.wrapping_mul(0x9E37_79B1).to_be_bytes());
        bytes.push(0);
    }
    parse(&bytes, Layout::V1_1).unwrap();
    // The last key once more.
    let last = bytes.len() - 12..bytes.len() - 6;
    let end = bytes.len() - 6;
    bytes.copy_within(last, end);
    assert_eq!(refused(&bytes, Layout::V1_1), "cbor");
}

#[test]
fn what_is_not_there_is_empty() {
    let index = parse(encode(&root()), Layout::V1_1).unwrap();
    assert!(index.is_empty());
    assert_eq!((index.len(), index.name(0), index.find("")), (0, "", None));
    assert!(index.object(0).shape.is_none());
}
