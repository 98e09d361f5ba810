//! Models that would cost more time or memory than their length allows.

use zt::{ErrorKind, Limits, Memory, OpenOptions};

use super::draft::{
    FLOAT, UINT8, elements, field, initializer, int, model, node, opened, opened_with, raw, tensor,
};

/// A limit that one tensor exceeds, or a duplicate key in it, is not a fault of another.
#[test]
fn a_limit_that_a_tensor_exceeds_is_its_own_fault() {
    let limited = |limits: Limits, parts: &[Vec<u8>]| {
        let weight = [initializer("w", &[1.0]), parts.concat()];
        let source = Memory::new(model(&weight));
        opened_with(source, OpenOptions::new().limits(limits))
    };
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limits
    };
    let pair = |key: &str, value: &str| field(16, [field(1, key), field(2, value)].concat());
    let long = "n".repeat(100);
    let x = |more: &[Vec<u8>]| field(5, tensor("x", FLOAT, &[1, 1], more));
    let scattered: Vec<Vec<u8>> = (0..4097).map(|_| field(4, [0; 4])).collect();
    for (limits, part) in [
        (with(|limits| limits.rank = 1), x(&[raw(&[1.0])])),
        (
            with(|limits| limits.attributes_len = 64),
            x(&[raw(&[1.0]), field(12, &long), pair("k", &long)]),
        ),
        (Limits::default(), x(&scattered)),
    ] {
        let file = limited(limits, &[part]).unwrap();
        let error = file.tensor("x").unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "header"));
        assert!(file.tensor("w").is_ok());
    }
    for (limits, part) in [
        (with(|limits| limits.name_len = 64), field(5, field(8, &long))),
        (with(|limits| limits.manifest_len = 64), pair("k", &long)),
        (with(|limits| limits.manifest_len = 64), field(10, &long)),
    ] {
        let error = limited(limits, &[part]).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "header"));
    }
    let twice = x(&[raw(&[1.0]), pair("unit", "m"), pair("unit", "s")]);
    let file = limited(Limits::default(), &[twice]).unwrap();
    let warnings = file.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        (warnings[0].code, warnings[0].object.as_deref()),
        ("attribute-conflict", Some("x"))
    );
    let attributes = file.tensor("x").unwrap().attributes().clone();
    assert_eq!(attributes.get("unit").unwrap().as_str(), Some("m"));
}

#[test]
fn limits_may_be_met() {
    let limited = |part: Vec<u8>, change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        opened_with(Memory::new(model(&[part])), OpenOptions::new().limits(limits))
    };
    let x = |more: Vec<u8>| field(5, tensor("x", FLOAT, &[1], &[raw(&[1.0]), more]));
    // With the bytes that a pair takes beside its strings: 64.
    let pair = |value: &str| x(field(16, [field(1, "k"), field(2, value)].concat()));
    let attributes = |value: &str| {
        let file = limited(pair(value), |limits| limits.attributes_len = 64).unwrap();
        file.tensor("x").map(drop).map_err(|error| error.kind())
    };
    assert_eq!(attributes(&"v".repeat(45)), Ok(()));
    assert_eq!(attributes(&"v".repeat(46)), Err(ErrorKind::Limit));
    let named = |len: usize| {
        let part = initializer(&"n".repeat(len), &[1.0]);
        limited(part, |limits| limits.name_len = 64)
    };
    assert_eq!(named(64).unwrap().len(), 1);
    assert_eq!(named(65).unwrap_err().kind(), ErrorKind::Limit);
    let list = [field(1, "value_ints"), int(8, 7)].concat();
    let list = field(1, node("x", "", "Constant", &[list]));
    let file = limited(list.clone(), |limits| limits.rank = 1).unwrap();
    assert_eq!(elements::<i64>(&file, "x"), [7]);
    let file = limited(list, |limits| limits.rank = 0).unwrap();
    assert_eq!(file.tensor("x").unwrap_err().kind(), ErrorKind::Limit);
    // A key of `external_data` above the limit is not read.
    let keyed = |len: usize| limited(x(field(13, field(1, vec![0xFF; len]))), |_| ());
    assert_eq!(keyed(4096).unwrap_err().code(), "header");
    assert_eq!(keyed(4097).unwrap().len(), 1);
}

/// An empty import has two bytes, and once took 90 bytes of memory.
#[test]
fn operator_sets_are_metadata() {
    let imports = |count: usize, manifest_len: u64| {
        let limits = Limits::default().with_manifest_len(manifest_len);
        let bytes = [model(&[initializer("w", &[1.0])]), field(8, []).repeat(count)].concat();
        opened_with(Memory::new(bytes), OpenOptions::new().limits(limits))
    };
    let error = imports(1000, 4096).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "header"));
    let file = imports(100, 4096).unwrap();
    // ONNX's own operator set has no name, and is version 17 in the first import.
    let attributes = file.attributes().unwrap().unwrap();
    let versions = attributes.get("onnx.opset_import").unwrap();
    let versions = versions.as_map().unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!(versions.get("").unwrap().as_u64(), Some(17));
    let warnings = file.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].code, &warnings[0].object), ("attribute-conflict", &None));
    let key = "\"onnx.opset_import.\"";
    assert!(warnings[0].message.contains(key), "{:?}", warnings[0]);
}

/// Each scalar has 21 bytes with its name, and a node that uses it.
#[test]
fn ten_thousand_small_initializers_are_read() {
    let scalar = |number: u32| {
        let name = format!("bias.{number:04}");
        let texts = [
            field(1, format!("x{number:04}")),
            field(1, &name),
            field(2, format!("y{number:04}")),
            field(3, format!("/encoder/blocks/add/Add_{number:04}")),
            field(4, "Add"),
        ];
        let node = field(1, texts.concat());
        let scalar = field(5, tensor(&name, UINT8, &[], &[field(9, [1])]));
        [scalar, node].concat()
    };
    let graph: Vec<Vec<u8>> = (0..10_000).map(scalar).collect();
    assert!(graph.concat().len() <= 84 * 10_000);
    assert_eq!(opened(model(&graph)).unwrap().len(), 10_000);
}

/// An empty initializer has two bytes, and takes some 3 KiB in a listing.
#[test]
fn the_number_of_tensors_is_limited_by_the_length_of_the_file() {
    let empty = |count: usize| opened(model(&[field(5, []).repeat(count)]));
    assert_eq!(empty(16_384).unwrap().len(), 16_384);
    let error = empty(16_385).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "header"));
    // A longer file may have more.
    let more = [field(5, []).repeat(16_385), field(10, "d".repeat(2_100_000))];
    assert_eq!(opened(model(&more)).unwrap().len(), 16_385);
}

#[test]
fn graphs_within_graphs_have_a_limit() {
    let nested = |levels: usize| {
        let mut graph = initializer("w", &[1.0]);
        for _ in 1..levels {
            let attribute = field(5, [field(1, "b"), field(6, graph)].concat());
            graph = field(1, [field(3, "n"), attribute].concat());
        }
        opened(model(&[graph]))
    };
    assert_eq!(nested(32).unwrap().len(), 1);
    assert_eq!(nested(33).unwrap_err().code(), "header");
    assert_eq!(nested(1000).unwrap_err().code(), "header");
}

/// The names of a node's tensors begin with the node's name. With a long name, tensors of a few bytes
/// would fill memory.
#[test]
fn derived_names_are_limited_by_the_length_of_the_file() {
    const TENSORS: u64 = 10;
    const GRAPHS: u64 = 11;
    for number in [TENSORS, GRAPHS] {
        let parts: Vec<u8> = (0..5000).flat_map(|_| field(number, [])).collect();
        let attribute = field(5, [field(1, "a"), parts].concat());
        let node = field(1, [field(3, "n".repeat(30_000)), attribute].concat());
        assert_eq!(opened(model(&[node])).unwrap_err().code(), "header");
    }
}
