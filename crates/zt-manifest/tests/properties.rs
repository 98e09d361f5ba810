//! What holds for every manifest, and for bytes that are none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

use proptest::collection::vec;
use proptest::prelude::*;
use zt_manifest::{
    Attributes, Blob, Component, DType, Digest, Encoding, Index, Layout, Limits, Manifest,
    ManifestEncoder, Object, Placement, Span, Value,
};

const LAYOUTS: [Layout; 3] = [Layout::V0_1, Layout::V1_0, Layout::V1_1];

fn placement(layout: Layout) -> Placement {
    Placement::new(layout, Span::new(8, 1 << 40).unwrap(), Limits::default())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::Unsigned),
        (0..300u64).prop_map(Value::Unsigned),
        any::<u64>().prop_map(Value::Negative),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,30}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        Just(Value::Undefined),
        (0..20u8).prop_map(Value::Simple),
        (32..=255u8).prop_map(Value::Simple),
        any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
        any::<f32>().prop_map(|value| Value::Float(value.into())),
        (-2000..2000i16).prop_map(|value| Value::Float(f64::from(value) / 8.0)),
    ];
    leaf.prop_recursive(4, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::array),
            (any::<u64>(), inner.clone()).prop_map(|(tag, value)| Value::Tag(tag, value.into())),
            vec((inner.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().collect::<Attributes>().into()),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let key = prop_oneof!["[a-z]{0,8}".prop_map(Value::from), value()];
    vec((key, value()), 0..5).prop_map(|pairs| pairs.into_iter().collect())
}

/// Unknown fields, whose names the format does not define.
fn extra() -> impl Strategy<Value = Attributes> {
    // Before and behind the format's own in the order of their encoding.
    let field = ("x_[a-z]{0,12}", value());
    vec(field, 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn component() -> impl Strategy<Value = Component> {
    let digest = prop_oneof![
        Just(None),
        any::<u32>().prop_map(|sum| Some(Digest::Crc32c(sum))),
        any::<[u8; 32]>().prop_map(|sum| Some(Digest::Sha256(sum))),
    ];
    let dtype = proptest::sample::select(DType::ALL.to_vec());
    let logical_type = proptest::option::of("t_[a-z0-9]{1,8}");
    let place = (1..1000u64, 0..10_000u64, proptest::option::of(0..1000u64));
    let parts = (dtype, logical_type, place, digest, extra());
    parts.prop_map(|(dtype, logical_type, (grid, byte_len, decoded), digest, extra)| {
        let mut blob = Blob::raw(Span::new(grid * 64, byte_len).unwrap());
        if let Some(factor) = decoded {
            blob.encoding = Encoding::Zstd;
            blob.decoded_len = Some(factor * byte_len);
        }
        blob.digest = digest;
        Component {
            logical_type: logical_type.map(Into::into),
            extra,
            ..Component::new(dtype, blob)
        }
    })
}

fn object() -> impl Strategy<Value = Object> {
    let role = prop_oneof![Just("data".to_owned()), "[a-z_]{0,6}"];
    let components = proptest::collection::btree_map(role, component(), 0..4);
    let attributes = proptest::option::of(attributes());
    let shape = vec(any::<u64>(), 0..5);
    let parts = (shape, "[a-z_]{0,12}", attributes, components, extra());
    parts.prop_map(|(shape, format, attributes, components, extra)| {
        let mut components: Vec<_> = components.into_iter().collect();
        // Roles come back in the order in which they are encoded.
        components.sort_by_key(|(role, _)| role.len());
        let components = components.into_iter().map(|(role, component)| (role.into(), component));
        Object { attributes, components: components.collect(), extra, ..Object::new(shape, format) }
    })
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let objects = proptest::collection::hash_map(".{0,12}", object(), 0..6);
    let parts = (proptest::option::of(attributes()), objects, extra());
    parts.prop_map(|(attributes, objects, extra)| Manifest {
        attributes,
        objects: objects.into_iter().collect(),
        extra,
    })
}

/// Everything there is to call on bytes; none of it may panic.
fn exercise(bytes: &[u8]) {
    for layout in LAYOUTS {
        let Ok(index) = Index::parse(bytes, layout, &Limits::default()) else {
            continue;
        };
        let _ = (index.attributes(), index.extra());
        for position in 0..index.len() {
            assert_eq!(index.find(index.name(position)), Some(position));
            let mut warnings = Vec::new();
            let placement = placement(layout);
            let object = index.object(position).validate(&placement, &mut warnings);
            let mut again = Vec::new();
            let at_once = index.validated(position, &placement, &mut again);
            assert_eq!(format!("{at_once:?}"), format!("{object:?}"));
            assert_eq!(again, warnings);
            if let Err(fault) = object {
                assert!(!fault.to_string().is_empty());
            }
        }
    }
}

/// Whether every map of texts has its keys in the order of RFC 8949 §4.2.1.
fn is_in_order(value: &ciborium::Value) -> bool {
    let key = |key: &ciborium::Value| key.as_text().map(|key| (key.len(), key.to_owned()));
    match value {
        ciborium::Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().filter_map(|(name, _)| key(name)).collect();
            keys.is_sorted() && pairs.iter().all(|(_, value)| is_in_order(value))
        }
        ciborium::Value::Array(items) => items.iter().all(is_in_order),
        _ => true,
    }
}

proptest! {
    #[test]
    fn keys_are_in_order(extra in vec(("x_[a-z]{0,12}", any::<u64>()), 0..6), named: bool) {
        let manifest = Manifest {
            attributes: named.then(Attributes::new),
            objects: vec![("a".to_owned(), Object::new([2], "dense"))],
            extra: extra.into_iter().collect(),
        };
        let bytes = manifest.to_cbor().unwrap();
        let value: ciborium::Value = ciborium::from_reader(&bytes[..]).unwrap();
        prop_assert!(is_in_order(&value), "{value:?}");
    }

    #[test]
    fn an_encoder_gives_back_what_it_was_given(objects in vec(object(), 1..6), name in ".{0,12}") {
        let mut encoder = ManifestEncoder::default();
        let encoded: Vec<_> = objects.iter().map(|it| encoder.add("a", it).unwrap()).collect();
        for (object, encoded) in objects.iter().zip(encoded) {
            let renamed = encoder.rename(encoded, &name);
            prop_assert_eq!(encoder.name(encoded), b"a");
            prop_assert_eq!(encoder.name(renamed), name.as_bytes());
            for encoded in [encoded, renamed] {
                match encoder.object(encoded) {
                    Ok(found) => prop_assert_eq!(&found, object),
                    // What a reader would refuse, such as zstd that cannot be so long.
                    Err(error) => prop_assert!(!error.code().is_empty()),
                }
            }
            let alone = Manifest {
                objects: vec![(name.clone(), object.clone())],
                ..Manifest::default()
            };
            let manifest = encoder.finish([renamed], None, &Attributes::new()).unwrap();
            let pieces: Vec<u8> = manifest.pieces().flatten().copied().collect();
            prop_assert_eq!(pieces, alone.to_cbor().unwrap());
        }
    }

    #[test]
    fn what_is_written_is_what_is_read(manifest in manifest()) {
        let bytes = manifest.to_cbor().unwrap();
        let index = Index::parse(&bytes, Layout::V1_1, &Limits::default()).unwrap();
        prop_assert_eq!(index.attributes().unwrap(), manifest.attributes.clone());
        prop_assert_eq!(index.extra().unwrap(), manifest.extra.clone());
        prop_assert_eq!(index.len(), manifest.objects.len());
        let mut objects = Vec::new();
        for (name, object) in &manifest.objects {
            let position = index.find(name).unwrap();
            prop_assert_eq!(index.name(position), name);
            let mut warnings = Vec::new();
            let read = index.object(position).validate(&placement(Layout::V1_1), &mut warnings);
            let read = read.unwrap();
            prop_assert_eq!(&read, object);
            let at_once = index.validated(position, &placement(Layout::V1_1), &mut warnings);
            prop_assert_eq!(&at_once.unwrap(), object);
            objects.push((name.clone(), read));
        }
        let again = Manifest { objects, ..manifest };
        prop_assert_eq!(again.to_cbor().unwrap(), bytes);
    }

    #[test]
    fn every_cut_of_a_manifest_is_refused(manifest in manifest(), place in any::<prop::sample::Index>()) {
        let bytes = manifest.to_cbor().unwrap();
        let cut = place.index(bytes.len());
        prop_assert!(Index::parse(&bytes[..cut], Layout::V1_1, &Limits::default()).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        exercise(&bytes);
    }

    #[test]
    fn no_change_of_a_manifest_makes_it_panic(
        manifest in manifest(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = manifest.to_cbor().unwrap();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        exercise(&bytes);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn every_value_survives_serde(value in attributes()) {
        let map: std::collections::BTreeMap<String, u64> = value
            .iter()
            .filter_map(|(key, value)| Some((key.as_str()?.to_owned(), value.as_u64()?)))
            .collect();
        let value = Value::serialized(&map).unwrap();
        prop_assert_eq!(value.deserialized::<std::collections::BTreeMap<String, u64>>().unwrap(), map);
    }
}
