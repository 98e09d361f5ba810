//! What differs between two files.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::ops::ControlFlow;

use zt::diff::{Change, Diff, DiffOptions, Extreme, Side, Tolerance, ValueDiff, diff};
use zt::foreign::{FileBuilder, Kind};
use zt::formats::{Complex, F8E4M3Fn, bf16};
use zt::{
    Attributes, Blob, Component, Csr, DType, Dense, Elements, ErrorKind, File, HashOptions, Memory,
    NewObject, Object, OpenOptions, Planes, Span, ToObject, Value, WriteOptions,
};

fn file_with(options: WriteOptions, objects: &[(&str, NewObject<'_>)]) -> File {
    let mut bytes = Vec::new();
    let mut writer = options.to_writer(&mut bytes).unwrap();
    for (name, object) in objects {
        writer.add(name, object).unwrap();
    }
    writer.finish().unwrap();
    File::from_bytes(bytes).unwrap()
}

fn file(objects: &[(&str, NewObject<'_>)]) -> File {
    file_with(WriteOptions::new(), objects)
}

fn array<T: zt::Element>(values: &[T]) -> NewObject<'static> {
    let elements = Elements::from(values).into_owned().unwrap();
    of_elements(elements, values.len())
}

fn of_elements(elements: Elements<'static>, len: usize) -> NewObject<'static> {
    NewObject {
        shape: vec![len as u64].into(),
        format: "dense".into(),
        attributes: None,
        components: vec![("data".into(), elements)],
    }
}

fn codes(codes: &[u8], logical_type: &'static str) -> NewObject<'static> {
    let elements = Elements::new(DType::U8, codes).into_owned().unwrap();
    of_elements(elements.with_logical_type(logical_type), codes.len())
}

fn with(values: bool, tolerance: Option<(f64, f64)>) -> DiffOptions<'static> {
    let options = DiffOptions::new().values(values);
    match tolerance {
        Some((atol, rtol)) => options.tolerance(Tolerance { atol, rtol }),
        None => options,
    }
}

/// Of the objects `w`.
fn changes(a: NewObject<'_>, b: NewObject<'_>, options: &DiffOptions<'_>) -> Vec<Change> {
    let found = diff(&file(&[("w", a)]), &file(&[("w", b)]), options).unwrap();
    let changed = found.changed.into_iter().next();
    changed.map(|object| object.changes).unwrap_or_default()
}

#[track_caller]
fn values(changes: &[Change]) -> ValueDiff {
    let mut values = changes.iter().filter_map(|change| match change {
        Change::Values { diff, .. } => Some(diff.clone()),
        _ => None,
    });
    values.next().unwrap()
}

fn kinds(changes: &[Change]) -> Vec<&'static str> {
    let kind = |change: &Change| match change {
        Change::Shape { .. } => "shape",
        Change::Format { .. } => "format",
        Change::Attribute { .. } => "attribute",
        Change::Component { .. } => "component",
        Change::DType { .. } => "dtype",
        Change::LogicalType { .. } => "type",
        Change::Values { .. } => "values",
        Change::Unreadable { .. } => "unreadable",
        _ => "?",
    };
    changes.iter().map(kind).collect()
}

fn noted(mut object: NewObject<'static>, key: &str, value: impl Into<Value>) -> NewObject<'static> {
    let attributes = object.attributes.get_or_insert_default();
    attributes.insert(key, value);
    object
}

fn ramp(len: usize) -> Vec<f32> {
    (0..len).map(|at| (at as f32).sin()).collect()
}

fn csr(values: &[f32]) -> NewObject<'static> {
    let indices: Vec<u64> = (0..values.len() as u64).collect();
    let indptr = [0, values.len() as u64];
    let csr = Csr::new([1, 4], values, &indices[..], &indptr[..]).unwrap();
    let object = csr.to_object().unwrap();
    let owned = |(role, elements): (_, Elements<'_>)| (role, elements.into_owned().unwrap());
    NewObject {
        shape: object.shape.into_owned().into(),
        format: object.format,
        attributes: object.attributes,
        components: object.components.into_iter().map(owned).collect(),
    }
}

#[test]
fn bools_that_cannot_be_read_differ_from_themselves() {
    let flags = |bytes: &[u8]| {
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let owned: Vec<u8> = bytes.into();
        let id = builder.source(Memory::new(owned));
        let all = Span::new(0, bytes.len() as u64).unwrap();
        let data = Component::new(DType::Bool, Blob::raw(all));
        let object = Object::new(vec![bytes.len() as u64], "dense").with_component("data", data);
        builder.object("w", object, id);
        builder.build().unwrap()
    };
    let mut bytes = vec![1; 9_000_000];
    let mut options = DiffOptions::default();
    for is_sound in [true, false] {
        for (values, dense) in [(false, false), (true, false), (false, true)] {
            options = options.values(values).dense(dense);
            // In one piece, and in the second of two.
            for bytes in [&bytes[8_999_990..], &bytes] {
                let found = diff(&flags(bytes), &flags(bytes), &options).unwrap();
                assert_eq!(found.same == 1, is_sound, "{values} {dense}");
                let Some(object) = found.changed.first() else {
                    continue;
                };
                let [Change::Unreadable { side, error }] = &object.changes[..] else {
                    panic!("{object:?}");
                };
                assert_eq!((*side, error.code()), (Side::A, "bool-value"));
                let at = format!("element {} is 2", bytes.len() - 1);
                assert!(error.to_string().contains(&at), "{error}");
            }
        }
        bytes[8_999_999] = 2;
    }
}

#[test]
fn how_values_are_stored_makes_no_difference() {
    let long = ramp(3_000_000);
    let objects = [
        ("long", array(&long)),
        ("short", array(&[1u16, 2, 3])),
        ("sparse", csr(&[1.0, 2.0])),
        ("empty", array::<i8>(&[])),
    ];
    let plain = file(&objects);
    let mut turned = objects.clone();
    turned.reverse();
    let zstd = file_with(WriteOptions::new().zstd(1).digest(None), &turned);
    for options in [with(false, None), with(true, None), with(true, Some((0.0, 0.0)))] {
        let found = diff(&plain, &zstd, &options).unwrap();
        assert!(found.is_same(), "{found:?}");
        assert_eq!(found.same, 4);
    }
}

#[test]
fn objects_of_only_one_file_are_listed_in_their_order() {
    let one = || array(&[1u8]);
    let a = file(&[("z", one()), ("x", one()), ("a", one())]);
    let b = file(&[("x", one()), ("q", one()), ("b", one())]);
    let found = diff(&a, &b, &DiffOptions::default()).unwrap();
    assert_eq!(found.only_a, ["z", "a"]);
    assert_eq!(found.only_b, ["q", "b"]);
    assert_eq!((found.same, found.changed.len()), (1, 0));
    assert!(!found.is_same());
    let none = file(&[]);
    for (a, b, only) in [(&a, &none, [3, 0]), (&none, &a, [0, 3])] {
        let found = diff(a, b, &DiffOptions::default()).unwrap();
        assert_eq!([found.only_a.len(), found.only_b.len()], only);
        assert!(!found.is_same());
    }
    let (v, w) = (file(&[("v", one())]), file(&[("w", one())]));
    let mut options = DiffOptions::default();
    assert!(!diff(&v, &w, &options).unwrap().is_same());
    options = options.nameless(true);
    assert!(diff(&v, &w, &options).unwrap().is_same());
    assert!(!diff(&a, &b, &options).unwrap().is_same(), "which of them?");
}

/// An object of an unknown format.
fn unknown(components: &[(&'static str, Vec<u8>)]) -> NewObject<'static> {
    let components = components.iter().map(|(role, bytes)| {
        let elements = Elements::from(&bytes[..]).into_owned().unwrap();
        ((*role).into(), elements)
    });
    NewObject {
        shape: vec![2].into(),
        format: "example.parts/1".into(),
        attributes: None,
        components: components.collect(),
    }
}

#[test]
fn components_of_only_one_object_are_listed_with_its_side() {
    let a = unknown(&[("same", vec![1]), ("left", vec![2]), ("other", vec![3])]);
    let b = unknown(&[("right", vec![2]), ("other", vec![4]), ("same", vec![1])]);
    for options in [with(false, None), with(true, Some((9.0, 0.0)))] {
        let found = changes(a.clone(), b.clone(), &options);
        let told = found.iter().map(|change| match change {
            Change::Component { role, side } => (role.as_str(), Some(*side)),
            // What has no dense value has no numbers that could be near.
            Change::Values { role, diff } => {
                assert_eq!((diff.count, diff.different), (1, 1));
                (role.as_deref().unwrap(), None)
            }
            change => panic!("{change:?}"),
        });
        let expected = [("left", Some(Side::A)), ("other", None), ("right", Some(Side::B))];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn surplus_values_of_a_component_are_different() {
    // Also where one of them ends with the first of several pieces.
    for len in [1, (8 << 20) + 5] {
        let (short, long) = (vec![7; 3], vec![7; 3 + len]);
        let [short, long] = [short, long].map(|bytes| unknown(&[("data", bytes)]));
        for (a, b) in [(&short, &long), (&long, &short)] {
            let found = values(&changes(a.clone(), b.clone(), &with(false, None)));
            let len = len as u64;
            assert_eq!((found.count, found.different), (3 + len, len));
            assert_eq!(found.first, Some(3));
        }
    }
}

#[test]
fn every_part_of_the_metadata_counts() {
    let object = || array(&[1u32, 2]);
    let mut wide = object();
    wide.shape = vec![1, 2].into();
    let bytes = object().components.remove(0).1.bytes.to_vec();
    let floats = Elements::new(DType::F32, &bytes[..]).into_owned().unwrap();
    let cases = [
        (object(), wide, "shape"),
        (object(), noted(object(), "k", 1u64), "attribute"),
        (noted(object(), "k", 2u64), noted(object(), "k", 1u64), "attribute"),
        // The same bytes, which mean something else.
        (object(), of_elements(floats, 2), "dtype"),
        (array(&[1u8]), codes(&[1], "f8_e5m2"), "type"),
        (codes(&[1], "f8_e4m3fn"), codes(&[1], "f8_e5m2"), "type"),
    ];
    for (a, b, kind) in cases {
        for (a, b) in [(a.clone(), b.clone()), (b, a)] {
            let found = changes(a, b, &DiffOptions::default());
            assert_eq!(kinds(&found), [kind], "{found:?}");
        }
    }
    let found = changes(csr(&[1.0]), array(&[1.0f32, 0.0, 0.0, 0.0]), &with(false, None));
    assert_eq!(kinds(&found), ["shape", "format"]);
}

#[test]
fn attributes_of_files_count() {
    let note = |value: f64| {
        let mut bytes = Vec::new();
        let mut writer = zt::Writer::new(&mut bytes).unwrap();
        let mut attributes = Attributes::new();
        attributes.insert("same", f64::NAN);
        attributes.insert("note", value);
        writer.set_attributes(attributes).unwrap();
        writer.finish().unwrap();
        File::from_bytes(bytes).unwrap()
    };
    let options = DiffOptions::default();
    assert!(diff(&note(1.0), &note(1.0), &options).unwrap().is_same());
    let found = diff(&note(1.0), &note(2.0), &options).unwrap();
    assert!(!found.is_same());
    let [Change::Attribute { key, a, b }] = &found.attributes[..] else { panic!("{found:?}") };
    assert_eq!(key.as_str(), Some("note"));
    let expected = (Some(Value::Float(1.0)), Some(Value::Float(2.0)));
    assert_eq!((a.clone(), b.clone()), expected);
    let found = diff(&note(1.0), &file(&[]), &options).unwrap();
    assert_eq!(kinds(&found.attributes), ["attribute"; 2]);
}

#[test]
fn bits_decide_unless_there_is_a_tolerance() {
    let other_nan = f32::from_bits(f32::NAN.to_bits() | 1);
    let a = array(&[0.0f32, f32::NAN, 1.0, f32::INFINITY, 5.0]);
    let b = array(&[-0.0f32, other_nan, 1.0, f32::INFINITY, 5.0]);
    for measure in [false, true] {
        let found = values(&changes(a.clone(), b.clone(), &with(measure, None)));
        assert_eq!((found.count, found.different, found.first), (5, 2, Some(0)));
        assert_eq!((found.nan, found.max_abs.is_some()), (0, measure));
        assert_eq!(found.max_abs.map_or(0.0, |most| most.value), 0.0);
    }
    assert!(changes(a.clone(), b, &with(false, Some((0.0, 0.0)))).is_empty());
    let c = array(&[0.0f32, 2.0, 1.5, f32::INFINITY, f32::NAN]);
    let found = values(&changes(a, c, &with(false, Some((0.5, 0.0)))));
    assert_eq!((found.different, found.first, found.nan), (2, Some(1), 2));
    // Pairs of a NaN and a number do not count.
    assert_eq!(found.max_abs, Some(Extreme { value: 0.5, at: 2 }));
    assert_eq!(found.max_rel.unwrap().at, 2);
    assert_eq!(found.max_ulp, Some(Extreme { value: 1 << 22, at: 2 }));
}

#[test]
fn numbers_of_two_types_are_compared_exactly() {
    let measured = with(true, None);
    let numbers_differ = |a: NewObject<'_>, b: NewObject<'_>| {
        let found = changes(a, b, &measured);
        assert!(matches!(kinds(&found)[0], "dtype" | "type"), "{found:?}");
        let values = found.iter().filter(|it| matches!(it, Change::Values { .. }));
        values.count() > 0
    };
    let [even, odd] = [9_007_199_254_740_992i64, 9_007_199_254_740_993];
    assert!(!numbers_differ(array(&[even]), array(&[even as f64])));
    assert!(numbers_differ(array(&[odd]), array(&[even as f64])));
    assert!(!numbers_differ(array(&[u64::MAX >> 1]), array(&[i64::MAX])));
    assert!(numbers_differ(array(&[u64::MAX]), array(&[-1i64])));
    assert!(!numbers_differ(array(&[true, false]), array(&[1u8, 0])));
    let half = [bf16::from_f32(0.5), bf16::NAN];
    assert!(!numbers_differ(array(&half), array(&[0.5f32, f32::NAN])));
    assert!(!numbers_differ(codes(&[0x38], "f8_e4m3fn"), array(&[1.0f32])));
    // Whichever side the integers are on.
    assert!(!numbers_differ(array(&[even as f64]), array(&[even])));
    assert!(numbers_differ(array(&[even as f64]), array(&[odd])));
    let found = values(&changes(array(&[2.5f32]), array(&[2u8]), &measured));
    assert_eq!(found.max_abs, Some(Extreme { value: 0.5, at: 0 }));
    let complex = Elements::new(DType::F32, &[0, 0, 128, 63, 0, 0, 0, 0][..]);
    let complex = complex.with_logical_type("complex64").into_owned().unwrap();
    let complex = || of_elements(complex.clone(), 1);
    assert!(!numbers_differ(complex(), array(&[1i16])));
    let found = values(&changes(complex(), array(&[1.0 - 1e-3]), &measured));
    assert!((found.max_abs.unwrap().value - 1e-3).abs() < 1e-12);
    assert_eq!(found.max_ulp, None);
}

#[test]
fn complex_numbers_are_measured_in_the_plane() {
    let complex = |parts: &[f64]| {
        let elements = Elements::from(parts).into_owned().unwrap();
        of_elements(elements.with_logical_type("complex128"), parts.len() / 2)
    };
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
    let a = complex(&[3.0, 4.0, f64::NAN, 1.0, 0.0, f64::NAN, 1.0, 1.0]);
    let b = complex(&[0.0, 0.0, other_nan, 2.0, 1.0, 1.0, 1.0, 1.0]);
    let found = values(&changes(a.clone(), b.clone(), &with(true, None)));
    assert_eq!((found.count, found.different, found.nan), (4, 3, 1));
    assert_eq!(found.max_abs, Some(Extreme { value: 5.0, at: 0 }));
    let near = with(false, Some((5.0, 0.0)));
    let found = values(&changes(a, b, &near));
    // A number with a NaN in it is the same as any other such, and as no other.
    assert_eq!((found.different, found.first), (1, Some(2)));
}

#[test]
fn dense_values_of_two_types_are_the_same_where_the_numbers_are() {
    let mut options = with(false, None);
    options = options.dense(true);
    let found = changes(array(&[1.0f32, 2.0]), array(&[1.0f64, 2.0]), &options);
    assert_eq!(kinds(&found), ["dtype"]);
    let found = changes(array(&[1.0f32, 2.0]), array(&[1i16, 3]), &options);
    assert_eq!(kinds(&found), ["dtype", "values"]);
    let found = values(&found);
    assert_eq!((found.different, found.first), (1, Some(1)));
    assert_eq!(found.max_abs, None, "the options did not ask for it");
}

#[test]
fn steps_are_those_of_the_type() {
    let measured = with(true, None);
    let ulps = |a, b| values(&changes(a, b, &measured)).max_ulp.map(|most| most.value);
    assert_eq!(ulps(array(&[1.0f64]), array(&[1.0 + f64::EPSILON])), Some(1));
    let halves = |bits| array(&[bf16::from_bits(bits)]);
    assert_eq!(ulps(halves(0x8001), halves(0x0002)), Some(3));
    let byte = |bits| array(&[F8E4M3Fn::from_bits(bits)]);
    assert_eq!(ulps(byte(0x10), byte(0x15)), Some(5));
    assert_eq!(ulps(array(&[1i32]), array(&[2i32])), None);
}

#[test]
fn large_arrays_are_compared_to_their_end_on_any_number_of_threads() {
    let a = ramp(5_000_000);
    let mut b = a.clone();
    // In three pieces, at both ends of what a core takes.
    let places = [0, 65_535, 65_536, 2_097_151, 2_097_152, 4_999_999];
    for (step, at) in places.into_iter().enumerate() {
        b[at] += 1.0 + step as f32;
    }
    let (first, second) = ([("w", array(&a))], [("w", array(&b))]);
    let plain = file(&first);
    let zstd = file_with(WriteOptions::new().zstd(1), &second);
    let planes = file_with(WriteOptions::new().planes(), &second);
    for (other, threads) in [(&zstd, 1), (&zstd, 3), (&planes, 1), (&planes, 3)] {
        let mut options = with(true, None);
        options = options.threads(threads);
        let found = diff(&plain, other, &options).unwrap();
        let found = values(&found.changed[0].changes);
        assert_eq!((found.count, found.different), (5_000_000, 6));
        assert_eq!(found.first, Some(0));
        assert_eq!(found.max_abs.unwrap().at, 4_999_999);
    }
    let exact = diff(&plain, &zstd, &DiffOptions::default()).unwrap();
    let exact = values(&exact.changed[0].changes);
    assert_eq!((exact.different, exact.first), (6, Some(0)));

    // Equal pieces give no position.
    let mut last = a;
    last[4_999_999] += 1.0;
    let last = file(&[("w", array(&last))]);
    let found = diff(&plain, &last, &DiffOptions::default()).unwrap();
    let found = values(&found.changed[0].changes);
    assert_eq!((found.different, found.first), (1, Some(4_999_999)));
}

fn planes(values: &[f32]) -> NewObject<'static> {
    let dense = Dense::from_slice(&[values.len() as u64], values).unwrap();
    let planes = Planes::from_dense(&dense).unwrap();
    let object = planes.to_object().unwrap();
    let components = object.components.into_iter();
    let components = components.map(|(role, plane)| (role, plane.into_owned().unwrap()));
    NewObject {
        shape: vec![values.len() as u64].into(),
        components: components.collect(),
        ..object
    }
}

/// Small ones, and one in pieces.
#[test]
fn planes_are_compared_as_the_dense_object_that_they_stand_for() {
    let of = |weights: &[f32], options: WriteOptions| {
        file_with(options, &[("w", noted(array(weights), "k", 1u64))])
    };
    for (len, options) in [
        (5000, with(false, None)),
        (5000, with(true, None)),
        (5000, with(false, Some((0.1, 0.0)))),
        (5000, DiffOptions::new().dense(true)),
        (2_200_000, with(false, None)),
    ] {
        let mut weights = ramp(len);
        let dense = of(&weights, WriteOptions::new());
        let split = of(&weights, WriteOptions::new().planes());
        assert_eq!(split.tensor("w").unwrap().format(), "zt.planes/1");
        weights[len - 1] += 1.0;
        let other = of(&weights, WriteOptions::new().planes());
        for (a, b) in [(&dense, &split), (&split, &dense), (&split, &split)] {
            assert!(diff(a, b, &options).unwrap().is_same());
        }
        for a in [&dense, &split] {
            let found = diff(a, &other, &options).unwrap();
            let changes = &found.changed[0].changes;
            assert_eq!(kinds(changes), ["values"]);
            let (found, len) = (values(changes), len as u64);
            assert_eq!((found.different, found.first), (1, Some(len - 1)));
            assert_eq!(found.count, len);
        }
    }
}

#[test]
fn what_is_beside_the_planes_counts() {
    let plain = with(false, None);
    let values = [1.0f32, 2.0];
    let changed = |a, b| kinds(&changes(a, b, &plain));
    let (one, two) = (noted(planes(&values), "k", 1u64), array(&values));
    assert_eq!(changed(one, noted(two, "k", 2u64)), ["attribute"]);
    let doubles = array(&[1.0f64, 2.0]);
    assert_eq!(changed(doubles, planes(&values)), ["dtype"]);
    // A component that is no plane counts, and one with the role of the values leaves the planes
    // what they are.
    let more = |mut object: NewObject<'static>, role: &'static str, byte: u8| {
        object.components.push((role.into(), Elements::from(vec![byte])));
        object
    };
    let with_mask = || more(planes(&values), "mask", 1);
    assert!(changed(with_mask(), more(array(&values), "mask", 1)).is_empty());
    assert_eq!(changed(with_mask(), array(&values)), ["component"]);
    let other = more(array(&values), "mask", 2);
    assert_eq!(changed(with_mask(), other.clone()), ["values"]);
    assert_eq!(kinds(&changes(with_mask(), other, &with(true, None))), ["values"]);
    let taken = changed(more(planes(&values), "data", 1), array(&values));
    assert_eq!(taken[0], "format");
}

#[test]
fn dense_values_are_compared_where_that_is_asked_for() {
    let options = DiffOptions::new().dense(true);
    let [one, two] = [1u64, 2].map(|value| noted(array(&[1u8]), "k", value));
    assert_eq!(kinds(&changes(one, two, &options)), ["attribute"]);

    // A zero that one of them stores makes no difference to the values.
    let (a, b) = (csr(&[1.0, 0.0]), csr(&[1.0]));
    assert!(changes(a.clone(), b.clone(), &options).is_empty());
    assert_eq!(kinds(&changes(a.clone(), b, &with(false, None)))[0], "values");
    let mut filled = array(&[1.0f32, 0.0, 0.0, 0.0]);
    filled.shape = vec![1, 4].into();
    assert!(changes(a.clone(), filled.clone(), &options).is_empty());
    filled.components[0].1 = Elements::from(vec![1.0f32, 0.0, 0.0, 7.0]);
    let found = changes(a, filled, &options);
    assert_eq!(kinds(&found), ["values"]);
    assert_eq!(values(&found).first, Some(3));
}

#[test]
fn an_unreadable_object_is_a_difference_and_its_neighbours_are_compared() {
    let objects = [("bad", array(&ramp(5000))), ("good", array(&[1u8, 2]))];
    let mut bytes = Vec::new();
    let mut writer = zt::Writer::new(&mut bytes).unwrap();
    for (name, object) in &objects {
        writer.add(name, object).unwrap();
    }
    writer.finish().unwrap();
    let sound = File::from_bytes(bytes.clone()).unwrap();
    bytes[100] ^= 1;
    let damaged = || File::from_bytes(bytes.clone()).unwrap();
    for (a, b, side) in [(damaged(), sound.clone(), Side::A), (sound, damaged(), Side::B)] {
        let found: Diff = diff(&a, &b, &with(true, None)).unwrap();
        let [Change::Unreadable { side: found_side, error }] = &found.changed[0].changes[..] else {
            panic!("{found:?}")
        };
        assert_eq!((*found_side, error.code()), (side, "digest-mismatch"));
        assert_eq!(error.object(), Some("bad"));
        assert_eq!((found.same, found.changed.len()), (1, 1));
    }
    // Not even the same as itself.
    assert!(!diff(&damaged(), &damaged(), &with(false, None)).unwrap().is_same());
}

#[test]
fn faulty_objects_are_listed_for_each_faulty_side() {
    let open = |offset: u64| {
        let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
        let source = builder.source(Memory::new([1, 2, 3]));
        for (name, offset) in [("good", 0), ("bad", offset)] {
            let blob = Blob::raw(Span::new(offset, 2).unwrap());
            let data = Component::new(DType::U8, blob);
            let object = Object::new([2], "dense").with_component("data", data);
            builder.object(name, object, source);
        }
        builder.build().unwrap()
    };
    for (a, b, expected) in
        [(2, 0, &[Side::A][..]), (0, 2, &[Side::B]), (2, 3, &[Side::A, Side::B])]
    {
        let found = diff(&open(a), &open(b), &with(true, None)).unwrap();
        assert_eq!((found.same, found.changed.len()), (1, 1));
        let sides = found.changed[0].changes.iter().map(|change| match change {
            Change::Unreadable { side, error } => {
                assert_eq!((error.code(), error.object()), ("bounds", Some("bad")));
                *side
            }
            change => panic!("{change:?}"),
        });
        assert_eq!(sides.collect::<Vec<_>>(), expected);
    }
}

/// Where nothing is asked for, it is the content hash that decides.
#[test]
fn the_same_without_options_is_the_same_content() {
    let objects = [
        array(&[1u8, 2]),
        array(&[1u8, 3]),
        array(&[1u16, 2]),
        codes(&[1, 2], "f8_e5m2"),
        codes(&[1, 2], "u8"),
        noted(array(&[1u8, 2]), "k", 1u64),
        array(&[0.0f32]),
        array(&[-0.0f32]),
        csr(&[1.0]),
        csr(&[1.0, 0.0]),
        planes(&[0.0]),
        noted(planes(&[0.0]), "k", 1u64),
    ];
    let files = objects.map(|object| file(&[("w", object)]));
    let content = |file: &File| file.hash(&HashOptions::default()).unwrap().content;
    let mut same = 0;
    for a in &files {
        for b in &files {
            let is_same = diff(a, b, &DiffOptions::default()).unwrap().is_same();
            assert_eq!(is_same, content(a) == content(b));
            same += u32::from(is_same);
        }
    }
    // Each with itself; and a logical type that repeats the dtype, and planes, both ways.
    assert_eq!(same, 16);
}

#[test]
fn stops_on_request() {
    for len in [100, 4_000_000] {
        let one = file(&[("w", array(&ramp(len)))]);
        // At once, and when the first bytes have been compared.
        for least in [0, 1] {
            let stop = |bytes: u64| match bytes >= least {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let options = DiffOptions::new().progress(zt::Progress::new(&stop));
            let error = diff(&one, &one, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{len} {least}");
        }
    }
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn complex(parts: (f64, f64)) -> NewObject<'static> {
    array(&[Complex::new(parts.0, parts.1)])
}

#[test]
fn integers_and_floats_are_as_far_apart_as_their_numbers() {
    let even = 9_007_199_254_740_992f64; // 2^53
    let measured = with(true, None);
    let gap = |a: NewObject<'_>, b: NewObject<'_>| values(&changes(a, b, &measured));
    let odd = gap(array(&[9_007_199_254_740_993i64]), array(&[even]));
    assert_eq!((odd.different, odd.max_abs.unwrap().value), (1, 1.0));
    assert_eq!(gap(array(&[u64::MAX]), array(&[18_446_744_073_709_551_616.0])).different, 1);
    assert_eq!(gap(array(&[1i64]), array(&[NAN])).nan, 1);
    let most = gap(array(&[i64::MIN]), array(&[u64::MAX])).max_abs.unwrap().value;
    assert_eq!(most, i64::MIN.unsigned_abs() as f64 + u64::MAX as f64);
}

#[test]
fn the_tolerance_is_numpys() {
    let is_within = |a: f64, b: f64, atol: f64, rtol: f64| {
        changes(array(&[a]), array(&[b]), &with(false, Some((atol, rtol)))).is_empty()
    };
    assert!(is_within(1.0, 1.5, 0.5, 0.0) && !is_within(1.0, 1.5, 0.49, 0.0));
    // Relative to the second value.
    assert!(is_within(1.0, 2.0, 0.0, 0.5) && !is_within(2.0, 1.0, 0.0, 0.5));
    assert!(is_within(0.0, -0.0, 0.0, 0.0) && is_within(NAN, NAN, 0.0, 0.0));
    assert!(is_within(INF, INF, 0.0, 0.0));
    for (a, b) in [(INF, 1.0), (1.0, INF), (INF, -INF), (NAN, 1.0), (1.0, NAN)] {
        assert!(!is_within(a, b, INF, INF), "{a} {b}");
    }
    // In the plane, a number with one infinite part is near no other.
    let all = with(false, Some((INF, INF)));
    for infinite in [(INF, 1.0), (1.0, INF)] {
        for (a, b) in [(infinite, (1.0, 1.0)), ((1.0, 1.0), infinite)] {
            assert!(!changes(complex(a), complex(b), &all).is_empty(), "{a:?} {b:?}");
        }
    }
}

#[test]
fn gaps_to_infinities_are_infinite() {
    let measured = with(true, None);
    let gap = |a: NewObject<'_>, b: NewObject<'_>| {
        let found = values(&changes(a, b, &measured));
        (found.max_abs.unwrap().value, found.max_rel.unwrap().value)
    };
    for (a, b) in [(INF, 1.0), (1.0, INF), (INF, -INF), (1.0, 0.0)] {
        assert_eq!(gap(array(&[a]), array(&[b])).1, INF, "{a} {b}");
    }
    // An infinity is no distance from itself.
    assert_eq!(gap(array(&[INF, 1.0]), array(&[INF, 2.0])), (1.0, 0.5));
    assert_eq!(gap(complex((INF, 1.0)), complex((INF, 4.0))).0, 3.0);
    assert_eq!(gap(complex((3.0, 4.0)), complex((0.0, 0.0))).0, 5.0);
}

#[test]
fn steps_go_through_zero() {
    let measured = with(true, None);
    let steps = |a, b| values(&changes(a, b, &measured)).max_ulp.unwrap().value;
    let single = |a: f32, b: f32| steps(array(&[a]), array(&[b]));
    assert_eq!(single(1.0, 1.0 + f32::EPSILON), 1);
    assert_eq!(single(-0.0, 0.0), 0);
    assert_eq!(single(-f32::from_bits(1), f32::from_bits(1)), 2);
    assert_eq!(single(f32::MAX, f32::INFINITY), 1);
    assert_eq!(steps(array(&[f64::MAX]), array(&[f64::MIN])), 2 * f64::MAX.to_bits());
    // FP8, and the larger step of two parts.
    let byte = |code| codes(&[code], "f8_e4m3fn");
    assert_eq!(steps(byte(0x01), byte(0x82)), 3);
    let parts = |re, im| complex((f64::from_bits(re), f64::from_bits(im)));
    assert_eq!(steps(parts(1, 5), parts(3, 4)), 2);
}
