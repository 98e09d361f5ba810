//! Writing manifests.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

use zt_manifest::{
    Attributes, Blob, ByteOrder, Component, DType, Digest, EncodedObject, Encoding, Manifest,
    ManifestDigest, ManifestEncoder, Misuse, Object, Span, Value,
};
use zt_manifest::{Error, Fault, Index, Layout, Limits, Warning};

fn blob() -> Blob {
    Blob::raw(Span::new(64, 24).unwrap())
}

fn object() -> Object {
    Object::new([2, 3], "dense").with_component("data", Component::new(DType::F32, blob()))
}

fn manifest(objects: Vec<(&str, Object)>) -> Manifest {
    let objects = objects.into_iter().map(|(name, object)| (name.to_owned(), object));
    Manifest { objects: objects.collect(), ..Manifest::default() }
}

fn misuse(manifest: &Manifest) -> Misuse {
    match manifest.to_cbor() {
        Err(Error::Misuse(misuse)) => misuse,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_these_bytes_for_ever() {
    let mut zstd = Component::new(
        DType::U8,
        Blob {
            encoding: Encoding::Zstd,
            decoded_len: Some(1000),
            digest: Some(Digest::Crc32c(0xAB1F)),
            ..blob()
        },
    );
    zstd.logical_type = Some("f8_e5m2".into());
    zstd.extra.insert("x", 1.5);
    let mut first = Object::new([1000], "dense").with_component("data", zstd);
    first.attributes = Some(Attributes::from([("b", 1u64), ("aa", 2), ("a", 3)]));
    let mut manifest = manifest(vec![("long", object()), ("w", first)]);
    manifest.attributes = Some(Attributes::new());
    let expected = [
        &b"\xA4\x67objects\xA2"[..],
        b"\x61w\xA4\x65shape\x81\x19\x03\xE8\x66format\x65dense",
        b"\x6Aattributes\xA3\x61a\x03\x61b\x01\x62aa\x02",
        b"\x6Acomponents\xA1\x64data\xA8\x61x\xF9\x3E\x00\x64type\x67f8_e5m2\x65dtype\x62u8",
        b"\x66digest\x71crc32c:0x0000AB1F\x66length\x18\x18\x66offset\x18\x40",
        b"\x68encoding\x64zstd\x73uncompressed_length\x19\x03\xE8",
        b"\x64long\xA3\x65shape\x82\x02\x03\x66format\x65dense\x6Acomponents\xA1\x64data",
        b"\xA3\x65dtype\x63f32\x66length\x18\x18\x66offset\x18\x40",
        b"\x67version\x651.2.0\x6Aattributes\xA0",
        b"\x72zt.manifest_digest\x71crc32c:0x9C1A9F0C",
    ]
    .concat();
    let bytes = manifest.to_cbor().unwrap();
    assert_eq!(bytes.escape_ascii().to_string(), expected.escape_ascii().to_string());
    // Neither the order of objects nor the order of keys is written.
    manifest.objects.reverse();
    let attributes = Attributes::from([("aa", 2u64), ("a", 3), ("b", 1)]);
    manifest.objects[0].1.attributes = Some(attributes);
    assert_eq!(manifest.to_cbor().unwrap(), expected);
}

#[test]
fn an_empty_manifest_is_the_one_that_1_2_writers_write_but_for_the_order_and_the_digest() {
    let bytes = Manifest::default().to_cbor().unwrap();
    let expected = [
        &b"\xA3\x67objects\xA0\x67version\x651.2.0"[..],
        b"\x72zt.manifest_digest\x71crc32c:0x143CAC55",
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_logical_type_that_repeats_the_dtype_is_left_out() {
    let mut same = object();
    same.components[0].1.logical_type = Some("f32".into());
    let bytes = manifest(vec![("w", same)]).to_cbor().unwrap();
    assert_eq!(bytes, manifest(vec![("w", object())]).to_cbor().unwrap());
}

/// `object()` with its component changed.
fn changed(change: fn(&mut Component)) -> Object {
    let mut object = object();
    change(&mut object.components[0].1);
    object
}

#[test]
fn refuses_what_a_reader_would_refuse() {
    let with = |object: Object, role: &'static str| {
        object.with_component(role, Component::new(DType::F32, blob()))
    };
    let twice = with(object(), "data");
    let among_others = with(with(object(), "scales"), "data");
    let attribute = |value: Value| {
        let attributes = Some(Attributes::from([("k", value)]));
        Object { attributes, ..object() }
    };
    let legacy =
        "\"data\" of \"w\" is not little-endian or has no dtype, which 1.2 cannot represent";
    for (objects, code, words) in [
        (
            vec![("a", object()), ("b", object()), ("a", object())],
            "duplicate-name",
            "two objects are named \"a\"",
        ),
        (vec![("w", twice)], "duplicate-name", "two components of \"w\" have the role \"data\""),
        (
            vec![("w", among_others)],
            "duplicate-name",
            "two components of \"w\" have the role \"data\"",
        ),
        (vec![("w", changed(|data| data.byte_order = ByteOrder::Big))], "misuse", legacy),
        (vec![("w", changed(|data| data.dtype = None))], "misuse", legacy),
        (
            vec![(
                "w",
                changed(|data| {
                    data.blob.encoding = Encoding::Zstd;
                    data.blob.decoded_len = None;
                }),
            )],
            "misuse",
            "\"data\" of \"w\" is zstd without a decoded length, which 1.2 demands",
        ),
        (vec![("w", attribute(Value::Simple(24)))], "misuse", "24 is not a simple value"),
        (
            vec![(
                "w",
                changed(|data| {
                    data.extra.insert("digest", "x");
                }),
            )],
            "misuse",
            "the extra key \"digest\" is reserved by the format",
        ),
    ] {
        let error = manifest(objects).to_cbor().unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error:?}");
        assert_eq!((error.code(), &error.to_string()[..]), (code, words));
    }
}

#[test]
fn the_system_is_the_source_of_what_it_failed_at_and_of_nothing_else() {
    let system: zt_container::Error = std::io::Error::other("unplugged").into();
    let file = Misuse::Simple(24);
    for (error, source) in [(Error::from(system), Some("unplugged")), (Error::from(file), None)] {
        let text = |error: &dyn std::error::Error| error.source().map(ToString::to_string);
        assert_eq!(text(&error).as_deref(), source);
        let fault = Fault { role: None, error };
        assert_eq!(text(&fault).as_deref(), source);
    }
}

#[test]
fn extra_keys_must_not_pass_for_known_ones() {
    let mut root = manifest(vec![]);
    root.extra.insert("objects", 1u64);
    assert_eq!(misuse(&root), Misuse::ReservedKey("objects".to_owned()));
    let mut extra = object();
    extra.extra.insert("shape", 1u64);
    assert_eq!(misuse(&manifest(vec![("w", extra)])), Misuse::ReservedKey("shape".to_owned()));
}

#[test]
fn what_is_written_meets_the_readers_default_limits() {
    let nested = |levels: usize| {
        let mut value = Value::Null;
        for _ in 0..levels {
            value = vec![value].into();
        }
        let mut manifest = manifest(vec![("w", object())]);
        manifest.objects[0].1.attributes = Some(Attributes::from([("k", value)]));
        manifest
    };
    // Root, objects, object and attributes are four of the 64.
    let bytes = nested(60).to_cbor().unwrap();
    assert!(Index::parse(bytes, Layout::V1_1, &Limits::default()).is_ok());
    assert_eq!(misuse(&nested(61)).to_string(), "values are nested deeper than 64");
}

#[test]
fn no_more_attributes_are_written_than_readers_decode() {
    // A key that is no text counts, one that is does not.
    let limit = Limits::default().attributes_len;
    let bytes = |byte_len: usize| Value::from(vec![7u8; byte_len - 5]);
    let with = |byte_len: usize| {
        let mut object = object();
        // A map of one pair, a key of one letter, a number below 24.
        object.attributes = Some(Attributes::from([("k", 1u64)]));
        object.extra.insert("x-unknown", bytes(1000));
        object.extra.insert(7u64, bytes(1000));
        let component = &mut object.components[0].1;
        component.extra.insert("x-more", bytes(byte_len - 2001));
        object
    };
    for (byte_len, is_taken) in [(limit, true), (limit + 1, false)] {
        let object = with(byte_len);
        assert_eq!(object.attributes_len(), byte_len);
        let made = manifest(vec![("w", object)]).to_cbor();
        assert_eq!(made.as_ref().err().map(Error::code), (!is_taken).then_some("schema"));
        let Ok(made) = made else { continue };
        for (attributes_len, is_sound) in [(limit, true), (limit - 1, false)] {
            let limits = Limits::default().with_attributes_len(attributes_len);
            let index = Index::parse(&made[..], Layout::V1_1, &limits).unwrap();
            assert_eq!(index.object(0).fault().is_none(), is_sound, "{attributes_len}");
        }
    }
}

/// A hundred thousand objects in the order of the file are not a hundred thousand writes.
#[test]
fn objects_that_follow_each_other_are_one_piece() {
    let mut encoder = ManifestEncoder::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| encoder.add(name, &object()).unwrap());
    let d = encoder.rename(b, "d");
    for (objects, pieces) in [
        (&[a, b, c, d][..], 1),
        (&[d, c, b, a], 1),
        (&[a, c, d], 2),
        (&[a, c], 2),
        (&[b], 1),
        (&[], 0),
    ] {
        let objects = objects.iter().copied();
        let manifest = encoder.finish(objects, None, &Attributes::new()).unwrap();
        // What is before the objects and what is behind them are pieces, too.
        assert_eq!(manifest.pieces().count(), pieces + 2);
    }
}

#[test]
fn an_encoded_object_is_as_long_as_what_it_adds_without_its_name() {
    let mut encoder = ManifestEncoder::default();
    let [first, named] = ["a", "a name"].map(|name| encoder.add(name, &object()).unwrap());
    let renamed = encoder.rename(first, "another name");
    let byte_len = |objects: &[EncodedObject]| -> usize {
        let objects = objects.iter().copied();
        let manifest = encoder.finish(objects, None, &Attributes::new()).unwrap();
        manifest.pieces().map(<[u8]>::len).sum()
    };
    for (object, name) in [(first, "a"), (named, "a name"), (renamed, "another name")] {
        let added = byte_len(&[object]) - byte_len(&[]);
        assert_eq!(object.byte_len(), added - 1 - name.len());
    }
}

#[test]
fn an_object_that_is_refused_leaves_nothing_behind() {
    let mut encoder = ManifestEncoder::default();
    let first = encoder.add("a", &object()).unwrap();
    let mut refused = object();
    refused.extra.insert("shape", 1u64);
    assert!(encoder.add("b", &refused).is_err());
    let second = encoder.add("c", &object()).unwrap();
    let written = encoder.finish([first, second], None, &Attributes::new()).unwrap();
    let pieces: Vec<&[u8]> = written.pieces().collect();
    assert_eq!(pieces.len(), 3, "the objects follow each other");
    let expected = manifest(vec![("a", object()), ("c", object())]);
    assert_eq!(pieces.concat(), expected.to_cbor().unwrap());
}

#[test]
fn a_warning_says_what_it_is_about() {
    let (version, role) = (|| "1.9.0+x".to_owned(), || "data".to_owned());
    let (algorithm, reason) = ("xxh64".to_owned(), "it is not a map");
    let newer = Warning::NewerMinor { version: version() };
    let suffix = Warning::VersionSuffix { version: version() };
    let (offset, of_data) = (72, Some("data"));
    let misaligned = Warning::Misaligned { role: role(), offset };
    let unknown = Warning::UnknownDigest { role: role(), algorithm };
    let chunks = Warning::Chunks { role: role(), reason };
    for (warning, code, role, words) in [
        (newer, "newer-minor", None, "\"1.9.0+x\" is newer than 1.2"),
        (suffix, "version-suffix", None, "\"1.9.0+x\" has a suffix"),
        (misaligned, "alignment", of_data, "72 is not a multiple of 64"),
        (unknown, "unknown-digest", of_data, "xxh64"),
        (chunks, "chunk-digests", of_data, "not verified: it is not a map"),
    ] {
        assert_eq!((warning.code(), warning.role()), (code, role));
        assert!(warning.to_string().contains(words), "{warning}");
    }
}

/// §3.6: the last pair of the root, in a file of another program's unknown fields too.
#[test]
fn a_manifest_carries_its_digest_and_every_flip_is_seen() {
    let extra = Attributes::from([("a key that is sorted behind the digest", 7u64)]);
    let objects = vec![("layer.weight".to_owned(), Object::new([2, 3], "dense"))];
    let manifest = Manifest { objects, extra, ..Manifest::default() };
    let cbor = manifest.to_cbor().unwrap();
    let (covered, digits) = cbor.split_at(cbor.len() - 8);
    assert!(covered.ends_with(b"\x72zt.manifest_digest\x71crc32c:0x"));
    let sum = zt_container::DigestAlgorithm::Crc32c.digest(covered).unwrap().to_string();
    assert!(sum.as_bytes().ends_with(digits));
    let index = |cbor: Vec<u8>| Index::parse(cbor, Layout::V1_1, &Limits::default());
    let sound = index(cbor.clone()).unwrap();
    assert_eq!(*sound.digest(), ManifestDigest::Right);
    assert_eq!(sound.extra().unwrap(), manifest.extra);
    let mut decoded = 0;
    for bit in 0..cbor.len() * 8 {
        let mut flipped = cbor.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(index) = index(flipped) {
            assert!(matches!(index.digest(), ManifestDigest::Wrong { .. }), "bit {bit}");
            assert_eq!(index.check_digest().unwrap_err().code(), "digest-mismatch");
            decoded += 1;
        }
    }
    assert!(decoded > 100, "{decoded}");
}

#[test]
fn a_manifest_of_others_has_no_digest() {
    let cbor = b"\xa2\x67objects\xa0\x67version\x651.2.0";
    let index = Index::parse(&cbor[..], Layout::V1_1, &Limits::default()).unwrap();
    assert_eq!(*index.digest(), ManifestDigest::Absent);
    index.check_digest().unwrap();
}
