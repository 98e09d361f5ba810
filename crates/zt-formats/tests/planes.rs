//! `zt.planes/1`.

// Clippy takes only the tests themselves for tests.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use proptest::prelude::*;
use zt_formats::{
    Complex, Dense, Elements, Parts, PlaneCodec, Planes, Registry, ToObject, View, bf16, f16,
};
use zt_manifest::{Attributes, DType, Value};

const FORMAT: &str = "zt.planes/1";

/// Two elements of f32, with one attribute or component replaced.
fn example() -> Parts<'static> {
    let plane = |role: &'static str| (role.into(), Elements::from(vec![0u8, 1]));
    Parts {
        shape: Cow::Borrowed(&[2]),
        attributes: Cow::Owned([("dtype", Value::from("f32"))].into_iter().collect()),
        elements: ["plane0", "plane1", "plane2", "plane3"].map(plane).into(),
    }
}

fn with_attribute(name: &str, value: impl Into<Value>) -> Parts<'static> {
    let mut parts = example();
    parts.attributes.to_mut().insert(name, value);
    parts
}

fn with(role: &'static str, elements: impl Into<Elements<'static>>) -> Parts<'static> {
    let mut parts = example();
    parts.take_if_any(role);
    parts.elements.push((role.into(), elements.into()));
    parts
}

/// The code and the role of the error that metadata alone gives.
fn refusal(parts: Parts<'_>) -> (&'static str, Option<String>) {
    let error = Registry::builtin().check(FORMAT, &parts.signature()).unwrap_err();
    assert_eq!(Planes::from_parts(parts).unwrap_err(), error);
    (error.code(), error.role().map(str::to_owned))
}

fn on(code: &'static str, role: &str) -> (&'static str, Option<String>) {
    (code, Some(role.to_owned()))
}

/// The array split, written as an object, read again and merged.
fn through(dense: &Dense<'_>) -> Dense<'static> {
    let planes = Planes::from_dense(dense).unwrap();
    assert_eq!(planes.shape(), dense.shape());
    let parts = planes.to_object().unwrap().into_parts();
    let dense_type = {
        let registry = Registry::builtin();
        let format = registry.format(FORMAT).unwrap();
        format.check(&parts.signature(), &registry).unwrap();
        format.dense_type(&parts.signature(), &registry)
    };
    let merged = Planes::from_parts(parts).unwrap().to_dense().unwrap();
    let elements = merged.elements();
    assert_eq!(dense_type, Some((elements.dtype, elements.logical_type.clone())));
    merged
}

#[test]
fn every_bit_is_where_the_specification_puts_it() {
    let values = [bf16::from_bits(0x3f9d), bf16::from_bits(0xc001)];
    let dense = Dense::from_slice(&[2], &values).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    assert_eq!(planes.plane(0), Some(&[0x7f, 0x80][..]), "exponents");
    assert_eq!(planes.plane(1), Some(&[0x3a, 0x03][..]), "rests and signs");
    assert_eq!(planes.plane(2), None);

    let values = [f32::from_bits(0xc048_f5c3)];
    let dense = Dense::from_slice(&[1], &values).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    let bytes: Vec<_> = (0..4).map(|at| planes.plane(at).unwrap()[0]).collect();
    assert_eq!(bytes, [0x80, 0x91, 0xeb, 0x87]);

    let values = [f64::from_bits(0x8123_4567_89ab_cdef)];
    let dense = Dense::from_slice(&[1], &values).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    let bytes: Vec<_> = (0..8).map(|at| planes.plane(at).unwrap()[0]).collect();
    assert_eq!(bytes, [0x02, 0x46, 0x8a, 0xcf, 0x13, 0x57, 0x9b, 0xdf]);
}

#[test]
fn every_value_of_16_bits_comes_back() {
    let bits: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for dtype in [DType::F16, DType::BF16] {
        let dense = Dense::from_elements([1 << 16], Elements::new(dtype, &bits[..])).unwrap();
        assert_eq!(through(&dense), dense);
    }
}

#[test]
fn the_last_elements_of_any_length_come_back() {
    for count in (0..9).chain(120..140).chain([1000]) {
        let bits = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes: Vec<u8> = (0..count).flat_map(|at| bits(at).to_le_bytes()).collect();
        for dtype in [DType::F64, DType::F32, DType::F16] {
            let shape = [bytes.len() as u64 / dtype.byte_len() as u64];
            let dense = Dense::from_elements(shape, Elements::new(dtype, &bytes[..])).unwrap();
            assert_eq!(through(&dense), dense, "{dtype} {count}");
        }
    }
}

#[test]
fn scalars_empty_arrays_and_pairs_come_back() {
    let zero = [f16::from_f32(-0.0)];
    let scalar = Dense::from_slice(&[], &zero).unwrap();
    assert_eq!(through(&scalar), scalar);
    let empty = Dense::from_slice(&[3, 0], &[0f64; 0]).unwrap();
    assert_eq!(through(&empty), empty);
    let pairs = [Complex::new(1f32, f32::NAN), Complex::new(-0.0, 1e-45)];
    let pairs = Dense::from_slice(&[2], &pairs).unwrap();
    let planes = Planes::from_dense(&pairs).unwrap();
    assert_eq!(planes.plane(0).unwrap().len(), 4);
    assert_eq!(planes.codec().logical_type(), Some("complex64"));
    // A NaN does not equal itself, but its bytes do.
    assert_eq!(through(&pairs).elements().bytes, pairs.elements().bytes.clone());
}

/// Values of an unknown type are split like all others, if the planes have the same length.
#[test]
fn an_unknown_logical_type_is_kept() {
    let elements = Elements::from(vec![1f32, 2.0, 3.0]).with_logical_type("acme.triple");
    let dense = Dense::from_elements([1], elements).unwrap();
    assert_eq!(through(&dense), dense);
    let mut parts = with_attribute("type", "acme.triple");
    parts.shape = Cow::Borrowed(&[1]);
    Planes::from_parts(parts.clone()).unwrap();
    parts.take("plane2").unwrap();
    parts.elements.push(("plane2".into(), Elements::from(vec![0u8; 3])));
    assert_eq!(refusal(parts), on("shape-size-mismatch", "plane2"));
}

#[test]
fn only_floating_point_elements_are_split() {
    for dtype in [DType::I64, DType::U16, DType::U8, DType::Bool] {
        let bytes = vec![0; dtype.byte_len()];
        let dense = Dense::from_elements([1], Elements::new(dtype, &bytes[..])).unwrap();
        let error = Planes::from_dense(&dense).unwrap_err();
        assert_eq!(error.code(), "dtype");
    }
    let codes = Elements::from(vec![0u8]).with_logical_type("f8_e4m3fn");
    let fp8 = Dense::from_elements([1], codes).unwrap();
    assert_eq!(Planes::from_dense(&fp8).unwrap_err().code(), "dtype");
}

#[test]
fn attributes_hold_a_floating_type() {
    let attribute = ("attribute", None);
    for value in ["", "F32", "f8_e4m3fn", "i32", "u8", "float32", "complex64"] {
        assert_eq!(refusal(with_attribute("dtype", value)), attribute);
    }
    for value in [Value::from(4u64), Value::Null, Value::Bytes(vec![b'f'])] {
        assert_eq!(refusal(with_attribute("dtype", value)), attribute);
    }
    assert_eq!(refusal(with_attribute("type", 1u64)), attribute);
    let mut parts = example();
    parts.attributes = Cow::Owned(Attributes::new());
    assert_eq!(refusal(parts), attribute);

    Planes::from_parts(with_attribute("type", "f32")).unwrap();
    let planes = Planes::from_parts(with_attribute("note", 1u64)).unwrap();
    let object = planes.to_object().unwrap();
    assert_eq!(object.attributes, Some([("dtype", "f32")].into()), "no more");
}

#[test]
fn a_known_logical_type_has_its_own_dtype() {
    for name in ["complex128", "f8_e5m2"] {
        let (code, _) = refusal(with_attribute("type", name));
        assert_eq!(code, "logical-type");
    }
}

#[test]
fn there_is_a_plane_of_bytes_for_each_byte_of_an_element() {
    for role in ["plane0", "plane1", "plane2", "plane3"] {
        let mut parts = example();
        parts.take(role).unwrap();
        assert_eq!(refusal(parts), on("missing-component", role));
        let parts = with(role, vec![0i8, 1]);
        assert_eq!(refusal(parts), on("dtype", role));
        let parts = with(role, vec![0u16]);
        assert_eq!(refusal(parts), on("dtype", role));
        let codes = Elements::from(vec![0u8, 1]);
        let parts = with(role, codes.clone().with_logical_type("f8_e5m2"));
        assert_eq!(refusal(parts), on("logical-type", role));
        Planes::from_parts(with(role, codes.with_logical_type("u8"))).unwrap();
        for len in [0, 1, 3] {
            let parts = with(role, vec![0u8; len]);
            assert_eq!(refusal(parts), on("shape-size-mismatch", role));
        }
    }
    // Other roles are permitted.
    Planes::from_parts(with("plane4", vec![0u8; 7])).unwrap();
}

#[test]
fn complex_values_have_two_elements_each() {
    let mut parts = with_attribute("type", "complex64");
    assert_eq!(refusal(parts.clone()), on("shape-size-mismatch", "plane0"));
    parts.shape = Cow::Borrowed(&[1]);
    let dense = Planes::from_parts(parts).unwrap().to_dense().unwrap();
    assert_eq!(dense.as_slice::<Complex<f32>>().unwrap().len(), 1);
}

#[test]
fn a_shape_that_is_too_large_is_refused() {
    let mut parts = example();
    parts.shape = Cow::Borrowed(&[1 << 32, 1 << 32]);
    assert_eq!(refusal(parts), on("shape-size-mismatch", "plane0"));
}

#[test]
fn the_length_of_old_blobs_follows_from_the_shape() {
    let registry = Registry::builtin();
    let format = registry.format(FORMAT).unwrap();
    let parts = example();
    let expected = |role| format.expected_len(role, &parts.signature(), &registry);
    assert_eq!(expected("plane3"), Some(2));
    assert_eq!(expected("plane4"), None);
    assert_eq!(expected("data"), None);
}

proptest! {
    /// Splitting parts one by one gives the same planes as splitting the whole.
    #[test]
    fn planes_are_split_and_merged_in_stretches(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        dtype in prop::sample::select(vec![DType::F64, DType::F32, DType::F16, DType::BF16]),
        stretch in 1usize..500,
    ) {
        let codec = PlaneCodec::new(dtype, None).unwrap();
        let width = codec.plane_count();
        let bytes = &bytes[..bytes.len() / width * width];
        let count = bytes.len() / width;
        let mut merged = vec![0; bytes.len()];
        let mut planes = vec![vec![0; count]; width];
        for (at, plane) in planes.iter_mut().enumerate() {
            for (part, out) in bytes.chunks(stretch * width).zip(plane.chunks_mut(stretch)) {
                codec.split(at, part, out);
            }
        }
        for (at, out) in merged.chunks_mut(stretch * width).enumerate() {
            let first = at * stretch;
            let parts: Vec<&[u8]> = planes
                .iter()
                .map(|plane| &plane[first..count.min(first + stretch)])
                .collect();
            codec.merge(&parts, out);
        }
        prop_assert_eq!(&merged[..], bytes);
    }

    /// Planes of different lengths give the elements that all have, without a panic.
    #[test]
    fn planes_of_any_length_cause_no_panic(lens in prop::collection::vec(0usize..300, 8), out in 0usize..600) {
        let planes: Vec<Vec<u8>> = lens.iter().map(|len| vec![0xa5; *len]).collect();
        for dtype in [DType::F64, DType::F32, DType::BF16] {
            let codec = PlaneCodec::new(dtype, None).unwrap();
            for count in 0..planes.len() {
                let planes: Vec<&[u8]> = planes.iter().take(count).map(Vec::as_slice).collect();
                let mut out = vec![0; out];
                codec.merge(&planes, &mut out);
                codec.split(count, &out, &mut [0; 50]);
            }
        }
    }
}
