//! How models are recognised, and where their tensors are.

use zt_onnx::ONNX;

use super::draft::{
    FLOAT, constant, elements, field, indices, initializer, int, is_recognised, model, names, node,
    opened, raw, sparse, tensor,
};

#[test]
fn a_model_is_recognised_whatever_its_first_field_is() {
    let graph = field(7, initializer("w", &[1.0]));
    for bytes in [
        model(&[initializer("w", &[1.0])]),
        [graph.clone(), int(1, 9)].concat(),
        [field(14, [field(1, "k"), field(2, "v")].concat()), graph.clone()].concat(),
        graph.clone(),
    ] {
        assert!(is_recognised(&bytes));
        let file = opened(bytes).unwrap();
        assert_eq!(file.kind(), ONNX);
        assert_eq!(elements::<f32>(&file, "w"), [1.0]);
    }
    // A SavedModel of TensorFlow, which begins alike, and graphs that other bytes follow.
    let others = [
        [int(1, 1), field(2, "meta")].concat(),
        [graph.clone(), vec![0xFF]].concat(),
        [graph, int(9, 1)].concat(),
        vec![8],
    ];
    for bytes in others {
        assert!(!is_recognised(&bytes));
    }
}

#[test]
fn a_model_that_is_cut_anywhere_is_refused() {
    let whole = model(&[initializer("w", &[1.0, 2.0])]);
    let graph_ends = whole.len() - field(8, int(2, 17)).len();
    for len in 0..whole.len() {
        let Err(error) = opened(whole[..len].to_vec()) else {
            // The fields after the graph have no tensors.
            assert_eq!(len, graph_ends);
            continue;
        };
        let code = if (3..graph_ends).contains(&len) { "header" } else { error.code() };
        assert_eq!(error.code(), code, "{len}: {error}");
    }
}

#[test]
fn no_field_has_the_number_zero() {
    let graph = [initializer("w", &[1.0]), int(0, 0)];
    assert_eq!(opened(model(&graph)).unwrap_err().code(), "header");
}

#[test]
fn tensors_outside_the_main_graph_are_named_by_their_place() {
    let branch = |key: &str| {
        let graph = [
            // Only the main graph has attributes of the model.
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
        // An initializer has this name, and another has the first numbered one.
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
    let value = |name: &str| file.tensor(name).unwrap().values::<f32>().unwrap()[0];
    assert_eq!((value("w"), value("w.3"), value("if.else_branch.w")), (1.0, 2.0, 3.0));
    let attributes = file.attributes().unwrap().unwrap();
    assert!(attributes.get("onnx.graph").is_none());
}

#[test]
fn tensors_of_training_functions_and_every_kind_of_attribute_are_listed() {
    let step = |values: f32| initializer("w", &[values]);
    let training = |field_number: u64, value: f32| {
        // The third has bindings, and no graph.
        field(20, [field(field_number, step(value)), field(3, "")].concat())
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
    // Attributes of a function: a name, defaults, and one that has no tensors.
    let function = [
        field(1, "f"),
        field(6, "needed"),
        field(7, constant("c", "")),
        field(4, "input"),
        field(11, [field(1, "bias"), field(5, &one)].concat()),
        field(11, [field(1, "body"), field(6, step(8.0))].concat()),
        field(11, [field(1, "axis"), int(3, 1)].concat()),
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
        "f.bias",
        "f.body.w",
        "f.c",
        "training_info.0.initialization.w",
        "training_info.1.algorithm.w",
    ];
    assert_eq!(names(&file), expected);
    let dense = |name: &str| file.tensor(name).unwrap().to_dense().unwrap();
    let values = expected.map(|name| *dense(name).as_slice::<f32>().unwrap().last().unwrap());
    assert_eq!(values, [4.0, 4.0, 5.0, 4.0, 4.0, 4.0, 8.0, 2.0, 6.0, 7.0]);
}

#[test]
fn two_initializers_of_one_name_are_refused() {
    let bytes = model(&[initializer("w", &[1.0]), initializer("w", &[2.0])]);
    assert_eq!(opened(bytes).unwrap_err().code(), "header");
}

#[test]
fn the_metadata_of_a_model_become_attributes() {
    let pair = |key: &str, value: &str| [field(1, key), field(2, value)].concat();
    let documented = [
        tensor("w", FLOAT, &[1], &[raw(&[1.0])]),
        field(12, "weights"),
        field(16, pair("unit", "m")),
    ];
    let bytes = [
        model(&[field(2, "main"), field(5, documented.concat())]),
        field(2, "pytorch"),
        field(3, "2.5"),
        field(4, "com.example"),
        int(5, 3),
        field(6, "a model"),
        field(14, pair("author", "me")),
        field(14, pair("author", "you")),
    ];
    let file = opened(bytes.concat()).unwrap();
    let attributes = file.attributes().unwrap().unwrap();
    let text = |key: &str| attributes.get(key).unwrap().as_str().unwrap();
    assert_eq!((text("onnx.graph"), text("onnx.producer_name")), ("main", "pytorch"));
    assert_eq!(text("onnx.producer_version"), "2.5");
    assert_eq!(text("onnx.domain"), "com.example");
    assert_eq!(text("onnx.doc_string"), "a model");
    assert_eq!(text("author"), "me");
    let number = |key: &str| attributes.get(key).unwrap().as_i64();
    assert_eq!((number("onnx.ir_version"), number("onnx.model_version")), (Some(9), Some(3)));
    let imports = attributes.get("onnx.opset_import").unwrap().as_map().unwrap();
    assert_eq!(imports.get("").unwrap().as_i64(), Some(17));
    assert!(file.warnings().iter().any(|warning| warning.code == "attribute-conflict"));
    let tensor = file.tensor("w").unwrap();
    let text = |key: &str| tensor.attributes().get(key).unwrap().as_str();
    assert_eq!((text("onnx.doc_string"), text("unit")), (Some("weights"), Some("m")));
}
