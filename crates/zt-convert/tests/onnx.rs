//! ONNX models, written here field by field; those of its own library are in `conformance`.
#![cfg(feature = "onnx")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use zt::{ErrorKind, File, Limits, Memory, OpenOptions, Result, VerifyOptions};
use zt_convert::{ONNX, open, open_source};

/// Types of `TensorProto`.
const FLOAT: u64 = 1;
const UINT8: u64 = 2;
const INT64: u64 = 7;
const DOUBLE: u64 = 11;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

/// A field that is an integer.
fn int(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// A field that is bytes: a text, packed values, a message of such fields.
fn field(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [
        varint(number << 3 | 2),
        varint(content.len() as u64),
        content.to_vec(),
    ]
    .concat()
}

fn model(graph: &[Vec<u8>]) -> Vec<u8> {
    [int(1, 9), field(7, graph.concat()), field(8, int(2, 17))].concat()
}

fn tensor(name: &str, data_type: u64, shape: &[u64], values: &[Vec<u8>]) -> Vec<u8> {
    let shape: Vec<u8> = shape
        .iter()
        .flat_map(|dimension| int(1, *dimension))
        .collect();
    [shape, int(2, data_type), field(8, name), values.concat()].concat()
}

fn raw(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    field(9, bytes)
}

fn initializer(name: &str, values: &[f32]) -> Vec<u8> {
    field(
        5,
        tensor(name, FLOAT, &[values.len() as u64], &[raw(values)]),
    )
}

/// Where values lie, and that they do not lie in the model.
fn external(pairs: &[(&str, &str)]) -> Vec<u8> {
    let pair = |(key, value): &(&str, &str)| field(13, [field(1, key), field(2, value)].concat());
    let pairs: Vec<u8> = pairs.iter().flat_map(pair).collect();
    [pairs, int(14, 1)].concat()
}

fn beside(name: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    model(&[field(5, tensor(name, UINT8, &[4], &[external(pairs)]))])
}

fn opened(bytes: Vec<u8>) -> Result<File> {
    open_source(Memory::new(bytes), &OpenOptions::new())
}

/// A `NodeProto` with these attributes.
fn node(output: &str, name: &str, operator: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let names = [field(2, output), field(3, name), field(4, operator)].concat();
    let attributes: Vec<u8> = attributes.iter().flat_map(|it| field(5, it)).collect();
    [names, attributes].concat()
}

/// A node that gives one value.
fn constant(output: &str, name: &str) -> Vec<u8> {
    let value = field(5, tensor("", FLOAT, &[1], &[raw(&[2.0])]));
    node(
        output,
        name,
        "Constant",
        &[[field(1, "value"), value].concat()],
    )
}

/// Values and indices of a `SparseTensorProto`, in a shape.
fn sparse(values: &[u8], indices: &[u8], shape: &[u64]) -> Vec<u8> {
    let shape: Vec<u8> = shape.iter().flat_map(|it| int(3, *it)).collect();
    [field(1, values), field(2, indices), shape].concat()
}

fn indices(values: &[u64], shape: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    tensor("", INT64, shape, &[field(9, bytes)])
}

/// The names of all objects, sorted.
fn names(file: &File) -> Vec<&str> {
    let mut names: Vec<&str> = file.names().collect();
    names.sort_unstable();
    names
}

/// The code that a tensor is refused with, by an error that names it.
fn code(file: &File, name: &str) -> &'static str {
    let error = file.tensor(name).unwrap_err();
    assert_eq!(error.object(), Some(name));
    assert!(error.to_string().contains(name));
    error.code()
}

/// The code that verification finds.
fn found(file: &File) -> &'static str {
    let report = file.verify(&VerifyOptions::default()).unwrap();
    report.problems.first().unwrap().code()
}

#[test]
fn a_model_is_recognised_whatever_its_first_field_is() {
    let graph = field(7, initializer("w", &[1.0]));
    for bytes in [
        model(&[initializer("w", &[1.0])]),
        [graph.clone(), int(1, 9)].concat(),
        [
            field(14, [field(1, "k"), field(2, "v")].concat()),
            graph.clone(),
        ]
        .concat(),
        graph.clone(),
    ] {
        let file = opened(bytes).unwrap();
        assert_eq!(file.kind(), ONNX);
        assert_eq!(*file.tensor("w").unwrap().as_slice::<f32>().unwrap(), [1.0]);
    }
    // A SavedModel of TensorFlow begins alike, and a graph alone does not end with the file.
    let others = [
        [int(1, 1), field(2, "meta")].concat(),
        [graph.clone(), vec![0xFF]].concat(),
        [graph, int(9, 1)].concat(),
        vec![8],
    ];
    for bytes in others {
        assert_eq!(opened(bytes).unwrap_err().code(), "unknown-kind");
    }
}

#[test]
fn a_model_that_is_cut_anywhere_is_refused() {
    let whole = model(&[initializer("w", &[1.0, 2.0])]);
    let graph_ends = whole.len() - field(8, int(2, 17)).len();
    for len in 0..whole.len() {
        let Err(error) = opened(whole[..len].to_vec()) else {
            // What is left out says nothing of tensors.
            assert_eq!(len, graph_ends);
            continue;
        };
        let code = if (3..graph_ends).contains(&len) {
            "header"
        } else {
            error.code()
        };
        assert_eq!(error.code(), code, "{len}: {error}");
    }
}

#[test]
fn tensors_outside_the_main_graph_are_named_by_where_they_are() {
    let branch = |key: &str| {
        let graph = [
            // What the graph says of itself is not said of the model.
            field(2, "a branch"),
            field(1, constant("c", "")),
            initializer("w", &[3.0]),
            initializer("", &[4.0]),
        ];
        [field(1, key), field(6, graph.concat())].concat()
    };
    let condition = |name: &str| {
        let branches = [branch("then_branch"), branch("else_branch")];
        field(1, node("y", name, "If", &branches))
    };
    let bytes = model(&[
        field(1, constant("k", "ignored")),
        // The name that the next would have is an initializer's, and so is the first that is made.
        field(1, constant("w", "")),
        condition("if"),
        condition(""),
        initializer("w", &[1.0]),
        initializer("w.2", &[5.0]),
    ]);
    let file = opened(bytes).unwrap();
    let mut expected = vec!["k", "w", "w.2", "w.3"];
    for node in ["if", "y"] {
        for key in ["then_branch", "else_branch"] {
            for name in ["c", "w", "initializer.0"] {
                expected.push(format!("{node}.{key}.{name}").leak());
            }
        }
    }
    expected.sort_unstable();
    assert_eq!(names(&file), expected);
    let value = |name: &str| file.tensor(name).unwrap().as_slice::<f32>().unwrap()[0];
    assert_eq!(
        (value("w"), value("w.3"), value("if.else_branch.w")),
        (1.0, 2.0, 3.0)
    );
    let attributes = file.attributes().unwrap().unwrap();
    assert!(attributes.get("onnx.graph").is_none());
}

#[test]
fn tensors_of_training_functions_and_every_kind_of_attribute_are_listed() {
    let step = |values: f32| initializer("w", &[values]);
    let training = |field_number: u64, value: f32| {
        // The third has bindings, and no graph.
        field(
            20,
            [field(field_number, step(value)), field(3, "")].concat(),
        )
    };
    let one = tensor("", FLOAT, &[1], &[raw(&[4.0])]);
    let coo = sparse(&one, &indices(&[1], &[1]), &[2]);
    let kinds = [
        [field(1, "alpha"), int(3, 1)].concat(),
        [field(1, "lists"), field(10, &one), field(10, &one)].concat(),
        [field(1, "coo"), field(22, &coo)].concat(),
        [field(1, "coos"), field(23, &coo)].concat(),
        [field(1, "graphs"), field(11, step(5.0))].concat(),
    ];
    let function = [
        field(1, "f"),
        field(7, constant("c", "")),
        field(4, "input"),
    ];
    let bytes = [
        model(&[field(1, node("", "", "Op", &kinds))]),
        training(1, 6.0),
        training(2, 7.0),
        field(25, function.concat()),
    ];
    let file = opened(bytes.concat()).unwrap();
    let expected = [
        "Op.coo",
        "Op.coos.0",
        "Op.graphs.0.w",
        "Op.lists.0",
        "Op.lists.1",
        "f.c",
        "training_info.0.initialization.w",
        "training_info.1.algorithm.w",
    ];
    assert_eq!(names(&file), expected);
    let dense = |name: &str| file.tensor(name).unwrap().to_dense().unwrap();
    let values = expected.map(|name| *dense(name).as_slice::<f32>().unwrap().last().unwrap());
    assert_eq!(values, [4.0, 4.0, 5.0, 4.0, 4.0, 2.0, 6.0, 7.0]);
}

#[test]
fn two_initializers_of_one_name_are_refused() {
    let bytes = model(&[initializer("w", &[1.0]), initializer("w", &[2.0])]);
    assert_eq!(opened(bytes).unwrap_err().code(), "header");
}

#[test]
fn what_a_model_says_of_itself_becomes_attributes() {
    let pair = |key: &str, value: &str| [field(1, key), field(2, value)].concat();
    let documented = [
        tensor("w", FLOAT, &[1], &[raw(&[1.0])]),
        field(12, "weights"),
        field(16, pair("unit", "m")),
    ];
    let bytes = [
        model(&[field(2, "main"), field(5, documented.concat())]),
        field(2, "pytorch"),
        int(5, 3),
        field(14, pair("author", "me")),
        field(14, pair("author", "you")),
    ];
    let file = opened(bytes.concat()).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    let text = |key: &str| attributes.get(key).unwrap().as_str().unwrap();
    assert_eq!(
        (text("onnx.graph"), text("onnx.producer_name")),
        ("main", "pytorch")
    );
    assert_eq!(text("author"), "me");
    let number = |key: &str| attributes.get(key).unwrap().as_i64();
    assert_eq!(
        (number("onnx.ir_version"), number("onnx.model_version")),
        (Some(9), Some(3))
    );
    let imports = attributes
        .get("onnx.opset_import")
        .unwrap()
        .as_map()
        .unwrap();
    assert_eq!(imports.get("").unwrap().as_i64(), Some(17));
    assert!(
        file.warnings()
            .iter()
            .any(|warning| warning.code == "attribute-conflict")
    );
    let tensor = file.tensor("w").unwrap();
    let text = |key: &str| tensor.attributes().get(key).unwrap().as_str();
    assert_eq!(
        (text("onnx.doc_string"), text("unit")),
        (Some("weights"), Some("m"))
    );
}

/// Packed in two pieces, then one by one: legal, and as no writer has it.
#[test]
fn values_are_read_however_they_are_packed() {
    let packed = |values: &[u64]| {
        let values: Vec<u8> = values.iter().flat_map(|value| varint(*value)).collect();
        field(7, values)
    };
    let long: Vec<u64> = (0..200_000u64).map(|i| u64::MAX / (i + 1)).collect();
    let (first, rest) = long.split_at(70_000);
    let (second, third) = rest.split_at(70_000);
    let single: Vec<u8> = third.iter().flat_map(|value| int(7, *value)).collect();
    let values = [packed(first), packed(&[]), packed(second), single];
    let bytes = model(&[field(5, tensor("x", INT64, &[200_000], &values))]);
    let file = opened(bytes).unwrap();
    let tensor = file.tensor("x").unwrap();
    // Backwards and off the elements' borders first, so that every place is looked for anew.
    for (start, end) in [
        (199_999, 200_000),
        (131_071, 131_075),
        (65_530, 65_540),
        (0, 3),
    ] {
        let slice = tensor
            .slice(&[format!("{start}:{end}").parse().unwrap()])
            .unwrap();
        let expected: Vec<u64> = long[start..end].to_vec();
        let found: Vec<u64> = slice
            .as_slice::<i64>()
            .unwrap()
            .iter()
            .map(|v| v.cast_unsigned())
            .collect();
        assert_eq!(found, expected);
    }
    let all: Vec<u64> = tensor
        .as_slice::<i64>()
        .unwrap()
        .iter()
        .map(|v| v.cast_unsigned())
        .collect();
    assert_eq!(all, long);
}

#[test]
fn numbers_of_eight_bytes_may_each_be_a_field() {
    let single: Vec<u8> = [1.5f64, -2.0]
        .iter()
        .flat_map(|value| [varint(10 << 3 | 1), value.to_le_bytes().to_vec()].concat())
        .collect();
    let doubles = |count: u64| {
        let values = std::slice::from_ref(&single);
        opened(model(&[field(5, tensor("x", DOUBLE, &[count], values))])).unwrap()
    };
    assert_eq!(
        *doubles(2).tensor("x").unwrap().as_slice::<f64>().unwrap(),
        [1.5, -2.0]
    );
    assert_eq!(code(&doubles(3), "x"), "shape-size-mismatch");
}

#[test]
fn other_values_than_the_shape_demands_are_found() {
    let counted = |count: u64, values: &[u8]| {
        let values = field(5, values);
        opened(model(&[field(5, tensor("x", UINT8, &[count], &[values]))])).unwrap()
    };
    assert!(counted(3, &[1, 2, 3]).tensor("x").is_ok());
    // More than there are bytes, and fewer than bytes of ten.
    assert_eq!(code(&counted(4, &[1, 2, 3]), "x"), "shape-size-mismatch");
    assert_eq!(code(&counted(0, &[1, 2, 3]), "x"), "shape-size-mismatch");
    // What could be shows when it is read.
    assert_eq!(found(&counted(2, &[1, 2, 3])), "shape-size-mismatch");
    // The third varint goes on, and its end is not there.
    assert_eq!(found(&counted(3, &[1, 2, 0x83])), "header");
    // 300 is no UINT8.
    assert_eq!(found(&counted(2, &[0xAC, 2, 1])), "header");

    let raw = opened(model(&[field(
        5,
        tensor("x", UINT8, &[4], &[field(9, [1, 2, 3])]),
    )]))
    .unwrap();
    assert_eq!(code(&raw, "x"), "shape-size-mismatch");
    let none = opened(model(&[field(5, tensor("x", UINT8, &[4], &[]))])).unwrap();
    assert_eq!(code(&none, "x"), "shape-size-mismatch");
    let twice = [field(5, [1]), field(9, [1])];
    let twice = opened(model(&[field(5, tensor("x", UINT8, &[1], &twice))])).unwrap();
    assert_eq!(code(&twice, "x"), "header");
    let others = opened(model(&[field(
        5,
        tensor("x", FLOAT, &[1], &[field(5, [1])]),
    )]))
    .unwrap();
    assert_eq!(code(&others, "x"), "header");
    let overflow = tensor("x", UINT8, &[1 << 62, 1 << 62], &[]);
    assert_eq!(
        code(&opened(model(&[field(5, overflow)])).unwrap(), "x"),
        "shape-size-mismatch"
    );
}

#[test]
fn a_tensor_that_cannot_be_read_does_not_hide_its_neighbours() {
    let strange = |data_type: u64| tensor("strange", data_type, &[2], &[field(9, [1, 2])]);
    let negative = tensor("strange", UINT8, &[u64::MAX], &[]);
    let segment = tensor(
        "strange",
        UINT8,
        &[1],
        &[field(3, int(1, 0)), field(9, [1])],
    );
    for (bad, expected) in [
        (strange(8), "dtype"),
        (strange(22), "dtype"),
        (strange(0), "dtype"),
        (strange(99), "dtype"),
        (negative, "header"),
        (segment, "unsupported"),
        (
            tensor("strange", UINT8, &[1; 65], &[field(9, [1])]),
            "header",
        ),
    ] {
        let file = opened(model(&[field(5, bad), initializer("w", &[1.0])])).unwrap();
        assert_eq!(code(&file, "strange"), expected);
        assert_eq!(*file.tensor("w").unwrap().as_slice::<f32>().unwrap(), [1.0]);
    }
}

#[test]
fn sparse_tensors_have_the_coordinates_of_either_kind_of_indices() {
    let values = tensor("s", FLOAT, &[2], &[raw(&[1.0, 2.0])]);
    let model = |values: &[u8], indices: &[u8], shape: &[u64]| {
        opened(model(&[field(15, sparse(values, indices, shape))])).unwrap()
    };
    let found_at = |found: &[u64], shape: &[u64]| model(&values, &indices(found, shape), &[2, 3]);
    for file in [found_at(&[1, 5], &[2]), found_at(&[0, 1, 1, 2], &[2, 2])] {
        let dense = file.tensor("s").unwrap().to_dense().unwrap();
        assert_eq!(
            *dense.as_slice::<f32>().unwrap(),
            [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]
        );
    }
    for file in [
        found_at(&[1, 6], &[2]),
        found_at(&[1, u64::MAX], &[2]),
        found_at(&[0, 3, 1, 2], &[2, 2]),
    ] {
        assert_eq!(found(&file), "index-value");
    }
    let two = indices(&[1, 5], &[2]);
    let matrix = tensor("s", FLOAT, &[2, 1], &[raw(&[1.0, 2.0])]);
    let floats = tensor("", FLOAT, &[2], &[raw(&[1.0, 5.0])]);
    for (file, expected) in [
        (found_at(&[1, 5, 5], &[3]), "header"),
        // One coordinate of two dimensions.
        (found_at(&[1, 5], &[2, 1]), "header"),
        (found_at(&[1, 5], &[1, 2]), "header"),
        (found_at(&[1, 5], &[2, 1, 1]), "header"),
        (model(&matrix, &two, &[2, 3]), "header"),
        (model(&values, &floats, &[2, 3]), "header"),
        (model(&values, &two, &[2, u64::MAX]), "header"),
        (model(&values, &two, &[]), "shape-size-mismatch"),
    ] {
        assert_eq!(code(&file, "s"), expected);
    }
}

/// Neither what a tensor has too much of nor what it says twice is told of another.
#[test]
fn limits_are_those_of_what_exceeds_them() {
    let limited = |limits: Limits, parts: &[Vec<u8>]| {
        let weight = [initializer("w", &[1.0]), parts.concat()];
        let source = Memory::new(model(&weight));
        open_source(source, &OpenOptions::new().limits(limits))
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
        (
            with(|limits| limits.name_len = 64),
            field(5, field(8, &long)),
        ),
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
fn external_data_is_read_from_below_the_folder_of_the_model() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    write("data/w.bin", &[0, 1, 2, 3, 4, 5]);
    let read = |pairs: &[(&str, &str)]| {
        write("m.onnx", &beside("w", pairs));
        open(folder.path().join("m.onnx"), &OpenOptions::new()).unwrap()
    };
    let at = ("location", "./data/w.bin");
    for (pairs, values) in [
        (&[at, ("offset", "2"), ("length", "4")][..], [2, 3, 4, 5]),
        (&[("length", "4"), at], [0, 1, 2, 3]),
        (&[at, ("offset", "1"), ("unknown", "key")], [1, 2, 3, 4]),
        (
            &[at, (&"k".repeat(5000), "no key is so long")],
            [0, 1, 2, 3],
        ),
    ] {
        assert_eq!(
            *read(pairs).tensor("w").unwrap().as_slice::<u8>().unwrap(),
            values
        );
    }
    let checked = read(&[at, ("checksum", "da39a3ee")]);
    assert_eq!(checked.warnings()[0].code, "unknown-digest");
    for (pairs, expected) in [
        (&[at, ("offset", "3")][..], "bounds"),
        (&[at, ("offset", "18446744073709551615")], "bounds"),
        (&[at, ("offset", "-1")], "header"),
        (&[at, ("offset", "0x1")], "header"),
        (&[at, ("length", "5")], "shape-size-mismatch"),
        (&[], "path"),
        (&[("location", "")], "path"),
        (&[("location", "data")], "path"),
        (&[("location", "none.bin")], "path"),
        (&[("location", "data/../data/w.bin")], "path"),
        (&[("location", "/etc/hostname")], "path"),
    ] {
        assert_eq!(code(&read(pairs), "w"), expected, "{pairs:?}");
    }
    let from_memory = opened(beside("w", &[at])).unwrap();
    assert_eq!(code(&from_memory, "w"), "unsupported");
}

/// Some exporters write a file for every tensor.
#[test]
fn hundreds_of_external_files_are_read() {
    let folder = TempDir::new().unwrap();
    let mut tensors = Vec::new();
    for at in 0..200u8 {
        let name = format!("w{at}");
        fs::write(folder.path().join(&name), [at; 4]).unwrap();
        let values = external(&[("location", &name)]);
        tensors.push(field(5, tensor(&name, UINT8, &[4], &[values])));
    }
    fs::write(folder.path().join("m.onnx"), model(&tensors)).unwrap();
    let file = open(folder.path().join("m.onnx"), &OpenOptions::new()).unwrap();
    for at in 0..200u8 {
        let tensor = file.tensor(&format!("w{at}")).unwrap();
        assert_eq!(*tensor.as_slice::<u8>().unwrap(), [at; 4]);
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_within_the_folder_and_to_where_the_model_itself_lies() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    for below in ["blobs", "snapshot", "elsewhere"] {
        fs::create_dir(path(below)).unwrap();
    }
    let link = |to: &str, from: &Path| std::os::unix::fs::symlink(to, from).unwrap();
    let model = beside("w", &[("location", "w.bin")]);
    fs::write(path("blobs/1f"), &model).unwrap();
    fs::write(path("blobs/2e"), [1, 2, 3, 4]).unwrap();
    // As the cache of the Hugging Face Hub has it.
    link("../blobs/1f", &path("snapshot/m.onnx"));
    link("../blobs/2e", &path("snapshot/w.bin"));
    let file = open(path("snapshot/m.onnx"), &OpenOptions::new()).unwrap();
    assert_eq!(
        *file.tensor("w").unwrap().as_slice::<u8>().unwrap(),
        [1, 2, 3, 4]
    );

    // A model that is no link, with data that is: who unpacked an archive did not ask for that.
    fs::write(path("elsewhere/m.onnx"), &model).unwrap();
    link("../blobs/2e", &path("elsewhere/w.bin"));
    let file = open(path("elsewhere/m.onnx"), &OpenOptions::new()).unwrap();
    assert_eq!(code(&file, "w"), "path");
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

/// A long name of a node is the beginning of the names of everything in it: of a few bytes each,
/// they would fill memory.
#[test]
fn names_made_of_others_do_not_outgrow_the_file() {
    const TENSORS: u64 = 10;
    const GRAPHS: u64 = 11;
    for number in [TENSORS, GRAPHS] {
        let parts: Vec<u8> = (0..5000).flat_map(|_| field(number, [])).collect();
        let attribute = field(5, [field(1, "a"), parts].concat());
        let node = field(1, [field(3, "n".repeat(30_000)), attribute].concat());
        assert_eq!(opened(model(&[node])).unwrap_err().code(), "header");
    }
}
