//! Objects: their fields, and the faults that are theirs alone.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use ciborium::{Value as Cbor, cbor};
use common::{component, fault, manifest, object, pairs, placement, validated, with, without};
use zt_manifest::{
    Attributes, ByteOrder, DType, Digest, Encoding, Index, Layout, Limits, Object, Warning,
};

fn valid(object: Cbor) -> (Object, Vec<Warning>) {
    validated(&manifest(object), Layout::V1_1).unwrap()
}

/// The object with `key` of its component set.
fn part(key: &str, value: impl Into<Cbor>) -> Cbor {
    object(with(component(), key, value))
}

fn data(code: &'static str, object: Cbor) -> String {
    let (found, role, message) = fault(object);
    assert_eq!((found, role.as_deref()), (code, Some("data")), "{message}");
    message
}

#[test]
fn reads_every_field() {
    let component = cbor!({
        "dtype" => "u8", "type" => "f8_e4m3fn", "offset" => 128, "length" => 11,
        "uncompressed_length" => 24, "encoding" => "zstd", "digest" => "crc32c:0x087C23AF",
        "x_note" => "kept",
    });
    let object = with(object(component.unwrap()), "attributes", cbor!({"k" => 1}).unwrap());
    let (object, warnings) = valid(with(object, "x_more", Cbor::Null));
    assert_eq!((&object.shape[..], &object.format[..]), (&[2, 3][..], "dense"));
    assert_eq!(object.attributes, Some(Attributes::from([("k", 1u64)])));
    assert_eq!(object.attributes(), &Attributes::from([("k", 1u64)]));
    assert_eq!(object.extra.len(), 1);
    let data = object.component("data").unwrap();
    assert_eq!(data.dtype, Some(DType::U8));
    assert_eq!(data.logical_type.as_deref(), Some("f8_e4m3fn"));
    assert_eq!(data.byte_order, ByteOrder::Little);
    assert_eq!((data.blob.span.offset(), data.blob.span.byte_len()), (128, 11));
    assert_eq!(data.blob.encoding, Encoding::Zstd);
    assert_eq!(data.blob.decoded_len, Some(24));
    assert_eq!(data.blob.digest, Some(Digest::Crc32c(0x087C_23AF)));
    assert_eq!(data.extra, Attributes::from([("x_note", "kept")]));
    assert_eq!((object.component("x"), warnings), (None, vec![]));
}

#[test]
fn optional_fields_may_be_null() {
    let mut component = component();
    for key in ["type", "uncompressed_length", "encoding", "digest"] {
        component = with(component, key, Cbor::Null);
    }
    let (with_nulls, _) = valid(with(object(component), "attributes", Cbor::Null));
    let (plain, _) = valid(object(common::component()));
    assert_eq!(with_nulls, plain);
    assert_eq!(plain.component("data").unwrap().blob.decoded_len, Some(24));
}

#[test]
fn a_missing_or_mistyped_field_is_named() {
    for key in ["shape", "format", "components"] {
        let (code, role, message) = fault(without(object(component()), key));
        assert_eq!((code, role), ("schema", None));
        assert_eq!(message, format!("`{key}` is missing"));
    }
    for key in ["dtype", "offset", "length"] {
        let message = data("schema", object(without(component(), key)));
        assert_eq!(message, format!("`{key}` is missing"));
    }
    for (key, wrong) in [
        ("shape", cbor!([1, -1]).unwrap()),
        ("shape", cbor!([1.0]).unwrap()),
        ("shape", Cbor::Null),
        ("format", Cbor::Null),
        ("attributes", cbor!([]).unwrap()),
        ("components", cbor!([]).unwrap()),
        ("components", Cbor::Map(vec![(Cbor::from(1), component())])),
    ] {
        assert_eq!(fault(with(object(component()), key, wrong)).0, "schema");
    }
    for wrong in [Cbor::Null, Cbor::from("w"), Cbor::Bool(false)] {
        assert_eq!(fault(wrong).0, "schema");
    }
    let bignum = Cbor::Tag(2, Box::new(Cbor::Bytes(vec![64])));
    for key in ["offset", "length", "uncompressed_length"] {
        let fields = [bignum.clone(), Cbor::Float(64.0), Cbor::from(-64), "64".into()];
        for wrong in fields {
            data("schema", part(key, wrong));
        }
    }
    for key in ["dtype", "type", "encoding", "digest"] {
        data("schema", part(key, Cbor::Bytes(b"f32".to_vec())));
    }
    for (key, value, message) in [
        ("offset", "64".into(), "`offset` is text, expected an unsigned integer"),
        // Null stands for no value only where there may be none.
        ("offset", Cbor::Null, "`offset` is null, expected an unsigned integer"),
        ("dtype", Cbor::Null, "`dtype` is null, expected text"),
    ] {
        assert_eq!(data("schema", part(key, value)), message);
    }
}

#[test]
fn a_component_of_any_role_says_its_dtype() {
    let components = cbor!({"x" => without(component(), "dtype")}).unwrap();
    let (code, role, message) = fault(with(object(component()), "components", components));
    assert_eq!((code, role.as_deref()), ("schema", Some("x")));
    assert_eq!(message, "`dtype` is missing");
}

#[test]
fn a_missing_field_is_placed_at_the_map_that_lacks_it() {
    let of_object = without(object(component()), "shape");
    let of_component = without(component(), "offset");
    for (object, map) in
        [(of_object.clone(), of_object), (object(of_component.clone()), of_component)]
    {
        let bytes = manifest(object);
        let fault = validated(&bytes, Layout::V1_1).unwrap_err();
        let at = fault.error.offset().unwrap() as usize;
        assert!(bytes[at..].starts_with(&common::encode(&map)), "{fault}");
    }
}

/// It was the dtype of the elements in 1.0.
#[test]
fn the_dtype_of_an_object_means_nothing_and_is_kept() {
    let (object, _) = valid(with(object(component()), "dtype", "f64"));
    assert_eq!(object.component("data").unwrap().dtype, Some(DType::F32));
    assert_eq!(object.extra, Attributes::from([("dtype", "f64")]));
}

#[test]
fn a_faulty_object_still_lists_and_its_neighbours_read() {
    let objects = cbor!({"bad" => part("offset", -1), "w" => object(component())}).unwrap();
    let root = cbor!({"version" => "1.2.0", "objects" => objects}).unwrap();
    let index = common::parse(common::encode(&root), Layout::V1_1).unwrap();
    let raw = index.object(0);
    assert_eq!(raw.shape, Some(vec![2, 3]));
    assert_eq!(raw.components[0].1.length, Some(24));
    assert_eq!(raw.components[0].1.offset, None);
    let fault = raw.fault().unwrap();
    assert_eq!(fault.role.as_deref(), Some("data"));
    // The offset of the value -1.
    assert_eq!(index.cbor()[fault.error.offset().unwrap() as usize], 0x20);
    let placement = placement(Layout::V1_1);
    assert!(index.object(1).validate(&placement, &mut vec![]).is_ok());
}

#[test]
fn unknown_words_have_codes_of_their_own() {
    for name in ["float32", "i128", "F32", "f32 ", ""] {
        data("dtype", part("dtype", name));
    }
    for name in ["ZSTD", "gzip", ""] {
        data("encoding", part("encoding", name));
    }
    for text in ["crc32c=00", "sha256:8f4a", "crc32c:-1"] {
        data("digest-format", part("digest", text));
    }
    let (_, warnings) = valid(part("digest", "xxh64:00"));
    let (role, algorithm) = ("data".to_owned(), "xxh64".to_owned());
    assert_eq!(warnings, [Warning::UnknownDigest { role, algorithm }]);
}

#[test]
fn blobs_lie_within_the_data_region_and_on_the_grid() {
    let at = |offset: u64, length: u64| {
        let component = with(with(component(), "offset", offset), "length", length);
        object(component)
    };
    // The region is 8..1008.
    for (offset, length) in [(64, 944), (960, 48), (0, 0), (64, 0), (960, 0)] {
        valid(at(offset, length));
    }
    for (offset, length) in [
        (0, 1),
        (7, 1),
        (1, 0),
        (7, 0),
        (64, 945),
        (1024, 0),
        (1024, 1),
        (64, u64::MAX),
        (u64::MAX - 63, 64),
        (1 << 63, 1 << 63),
        // Beyond and off the grid: bounds come first.
        (1009, 1),
    ] {
        data("bounds", at(offset, length));
    }
    for (offset, length) in [(8, 1), (65, 1), (96, 24), (1008, 0), (32, 0)] {
        data("alignment", at(offset, length));
    }
}

#[test]
fn declared_lengths_are_held_against_stored_ones() {
    let zstd =
        |decoded: u64| with(with(component(), "encoding", "zstd"), "uncompressed_length", decoded);
    valid(object(zstd(24 * 32_768)));
    data("decompression-limit", object(zstd(24 * 32_768 + 1000)));
    data("decompression-limit", object(zstd(u64::MAX)));
    valid(part("uncompressed_length", 24));
    data("schema", part("uncompressed_length", 25));
    let message = data("schema", part("encoding", "zstd"));
    assert_eq!(message, "`uncompressed_length` is missing");
}

#[test]
fn version_1_1_has_zstd_without_a_decoded_length() {
    let objects = cbor!({"w" => part("encoding", "zstd")}).unwrap();
    let root = cbor!({"version" => "1.1.0", "objects" => objects}).unwrap();
    let (object, _) = validated(&common::encode(&root), Layout::V1_1).unwrap();
    assert_eq!(object.component("data").unwrap().blob.decoded_len, None);
}

#[test]
fn rank_and_name_have_limits() {
    let limits = Limits::default().with_rank(2).with_name_len(0);
    let bytes = manifest(object(component()));
    let index = Index::parse(&bytes, Layout::V1_1, &limits).unwrap();
    let object = index.object(0);
    let named = &object.fault().unwrap().error;
    assert_eq!(named.code(), "schema");
    assert_eq!(named.to_string(), "a name of 1 bytes, above the limit of 0");
    let enough = limits.with_name_len(1);
    let flat = enough.with_rank(1);
    let index = Index::parse(&bytes, Layout::V1_1, &flat).unwrap();
    let object = index.object(0);
    let fault = object.fault().unwrap().error.to_string();
    assert_eq!(fault, "2 dimensions, above the limit of 1");
    assert_eq!(object.shape, None);
    let index = Index::parse(&bytes, Layout::V1_1, &enough).unwrap();
    let object = index.object(0);
    let placement = placement(Layout::V1_1);
    assert!(object.validate(&placement, &mut vec![]).is_ok());
}

#[test]
fn components_beyond_the_limit_are_counted_and_none_of_them_kept() {
    for (roles, most, expected) in [
        (&["a", "b", "c"][..], 3, None),
        (&["a", "b", "c"], 2, Some("3 components, above the limit of 2")),
        (&["a"], 0, Some("1 components, above the limit of 0")),
        (&[], 0, None),
    ] {
        let components = roles.iter().map(|role| (Cbor::from(*role), component()));
        let components = Cbor::Map(components.collect());
        let bytes = manifest(with(object(component()), "components", components));
        let limits = Limits::default().with_components(most);
        let index = Index::parse(&bytes, Layout::V1_1, &limits).unwrap();
        let raw = index.object(0);
        let kept = if expected.is_some() { 0 } else { roles.len() };
        assert_eq!(raw.components.len(), kept);
        let validated = index.validated(0, &placement(Layout::V1_1), &mut vec![]);
        let found = validated.err().map(|fault| fault.error.to_string());
        assert_eq!(found.as_deref(), expected);
    }
}

#[test]
fn a_shape_beyond_the_limit_is_counted_and_none_of_it_kept() {
    for shape in
        [[&b"\x9F"[..], &[0; 1000], b"\xFF"].concat(), [&b"\x99\x03\xE8"[..], &[0; 1000]].concat()]
    {
        let bytes = [
            &b"\xA2\x67objects\xA1\x61w\xA3\x65shape"[..],
            &shape,
            b"\x66format\x61f\x6Acomponents\xA0\x67version\x651.2.0",
        ]
        .concat();
        let index = common::parse(&bytes, Layout::V1_1).unwrap();
        let object = index.object(0);
        assert_eq!(object.shape, None);
        assert_eq!(object.format.as_deref(), Some("f"));
        let fault = object.fault().unwrap().to_string();
        assert_eq!(fault, "1000 dimensions, above the limit of 64");
    }
}

#[test]
fn attributes_may_be_as_long_as_the_limit() {
    // Four bytes: a map of one pair, a key of one letter, a number below 24.
    let bytes = manifest(with(object(component()), "attributes", cbor!({"k" => 1}).unwrap()));
    for (attributes_len, sound) in [(4, true), (3, false)] {
        let limits = Limits::default().with_attributes_len(attributes_len);
        let index = Index::parse(&bytes, Layout::V1_1, &limits).unwrap();
        assert_eq!(index.object(0).fault().is_none(), sound, "{attributes_len}");
    }
}

#[test]
fn attributes_above_the_limit_are_a_fault_of_their_object_and_cost_nothing() {
    let nulls = |count| Cbor::Array(vec![Cbor::Null; count]);
    for (field, count, sound) in [
        ("attributes", 1 << 20, false),
        ("x-unknown", 1 << 20, false),
        ("no text", 1 << 20, false),
        ("attributes", 1000, true),
        ("x-unknown", 1000, true),
        ("no text", 1000, true),
    ] {
        let value = match field {
            "attributes" => Cbor::Map(vec![("k".into(), nulls(count))]),
            _ => nulls(count),
        };
        let mut large = with(object(component()), field, value);
        if let (Some((key, _)), "no text") = (pairs(&mut large).last_mut(), field) {
            *key = Cbor::from(7);
        }
        let bytes = manifest(large.clone());
        let index = common::parse(&bytes, Layout::V1_1).unwrap();
        let raw = index.object(0);
        assert_eq!(raw.fault().is_none(), sound, "{field}, {count}");
        assert!(sound || raw.attributes.is_none() && raw.extra.is_empty());
        assert!(sound || fault(large).0 == "schema");
    }
}
