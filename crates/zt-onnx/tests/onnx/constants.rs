//! The value of a `Constant`: a tensor, or numbers in an attribute of their own type.

use super::draft::{
    FLOAT, code, constant, elements, field, found, int, left_out, model, names, node, opened,
    tensor,
};

/// The field `type` of `AttributeProto`.
const KIND: u64 = 20;

/// A field with four bytes.
fn float(number: u64, value: f32) -> Vec<u8> {
    let tag = u8::try_from(number << 3 | 5).unwrap();
    [&[tag][..], &value.to_le_bytes()].concat()
}

fn attribute(name: &str, values: &[Vec<u8>]) -> Vec<u8> {
    [field(1, name), values.concat()].concat()
}

/// A `Constant` with one attribute.
fn numbers(output: &str, name: &str, values: &[Vec<u8>]) -> Vec<u8> {
    field(1, node(output, "", "Constant", &[attribute(name, values)]))
}

fn packed(values: &[f32]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    field(7, bytes.collect::<Vec<u8>>())
}

#[test]
fn numbers_of_a_constant_are_tensors_by_its_output() {
    let minus_one = u64::MAX;
    let function = [
        field(1, "f"),
        field(7, node("c", "", "Constant", &[attribute("value_int", &[int(3, 4)])])),
    ];
    let graph = model(&[
        numbers("f", "value_float", &[float(2, 0.5), int(KIND, 1)]),
        numbers("i", "value_int", &[int(3, minus_one), int(KIND, 2)]),
        // One by one, packed, and both.
        numbers("fs", "value_floats", &[float(7, 1.0), float(7, 2.0)]),
        numbers("fp", "value_floats", &[packed(&[1.0, 2.0]), int(KIND, 6)]),
        numbers("fb", "value_floats", &[packed(&[1.0]), float(7, 2.0)]),
        numbers("is", "value_ints", &[int(8, 7), int(8, minus_one)]),
        numbers("ip", "value_ints", &[field(8, [7, 0xAC, 2, 9])]),
        numbers("ib", "value_ints", &[field(8, [7]), int(8, 300), int(KIND, 7)]),
        numbers("f0", "value_floats", &[int(KIND, 6)]),
        numbers("i0", "value_ints", &[field(8, [])]),
        // proto3 omits a zero; the last of two equal fields counts.
        numbers("z", "value_float", &[int(KIND, 1)]),
        numbers("zi", "value_int", &[]),
        numbers("last", "value_int", &[int(3, 1), int(3, 2)]),
        // 128 has two bytes.
        numbers("wide", "value_ints", &[field(8, [0x80, 1])]),
        // An empty reference is ignored.
        numbers("own", "value_ints", &[field(21, ""), int(8, 7)]),
        field(1, constant("t", "")),
    ]);
    let file = opened([graph, field(25, function.concat())].concat()).unwrap();
    let floats = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        let values = tensor.values::<f32>().unwrap().to_vec();
        (tensor.shape().to_vec(), values)
    };
    let integers = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        let values = tensor.values::<i64>().unwrap().to_vec();
        (tensor.shape().to_vec(), values)
    };
    assert_eq!(floats("f"), (vec![], vec![0.5]));
    assert_eq!(floats("z"), (vec![], vec![0.0]));
    assert_eq!(integers("i"), (vec![], vec![-1]));
    assert_eq!(integers("zi"), (vec![], vec![0]));
    assert_eq!(integers("last"), (vec![], vec![2]));
    assert_eq!(integers("f.c"), (vec![], vec![4]));
    assert_eq!(integers("wide"), (vec![1], vec![128]));
    assert_eq!(integers("own"), (vec![1], vec![7]));
    for name in ["fs", "fp", "fb"] {
        assert_eq!(floats(name), (vec![2], vec![1.0, 2.0]), "{name}");
    }
    assert_eq!(integers("is"), (vec![2], vec![7, -1]));
    assert_eq!(integers("ip"), (vec![3], vec![7, 300, 9]));
    assert_eq!(integers("ib"), (vec![2], vec![7, 300]));
    assert_eq!(floats("f0"), (vec![0], vec![]));
    assert_eq!(integers("i0"), (vec![0], vec![]));
    assert_eq!(floats("t").1, [2.0]);
    assert_eq!(file.len(), 17);
}

#[test]
fn numbers_of_other_nodes_are_no_tensors() {
    let ints = attribute("value_ints", &[int(8, 7)]);
    let in_domain = |domain: &str| {
        let node = node(domain, "", "Constant", std::slice::from_ref(&ints));
        field(1, [node, field(7, domain)].concat())
    };
    let given = [field(21, "alpha"), int(KIND, 7)];
    let file = opened(model(&[
        in_domain("ai.onnx"),
        in_domain("com.example"),
        field(1, node("op", "", "Op", std::slice::from_ref(&ints))),
        // As long as the expected names.
        in_domain("com.any"),
        field(1, node("var", "", "Variable", std::slice::from_ref(&ints))),
        field(1, node("other", "", "Constant", &[attribute("axes", &[int(8, 7)])])),
        // A call of the function gives this value.
        numbers("given", "value_ints", &given),
    ]));
    assert_eq!(names(&file.unwrap()), ["ai.onnx"]);
}

#[test]
fn texts_of_constants_are_left_out() {
    for text in [
        numbers("text", "value_string", &[field(4, "a")]),
        numbers("text", "value_strings", &[field(9, "a"), field(9, "b")]),
    ] {
        let file = opened(model(&[text, field(1, constant("t", ""))])).unwrap();
        assert_eq!(names(&file), ["t"]);
        assert_eq!(left_out(&file), ["text"]);
    }
    // An attribute of another type.
    let bad = numbers("bad", "value_string", &[field(4, "a"), int(KIND, 6)]);
    assert_eq!(found(&opened(model(&[bad])).unwrap()), "header");
}

#[test]
fn an_invalid_value_of_a_constant_is_listed_with_its_fault() {
    let strange = "value_ints";
    let scattered: Vec<u8> = (0..4097).flat_map(|_| field(8, [1])).collect();
    for (bad, expected) in [
        // Values in the field of another attribute, or an attribute of another type.
        (numbers("bad", strange, &[packed(&[1.0])]), "header"),
        (numbers("bad", strange, &[int(8, 1), int(3, 1)]), "header"),
        (numbers("bad", strange, &[int(8, 1), int(KIND, 6)]), "header"),
        (numbers("bad", strange, &[scattered]), "header"),
        (numbers("bad", "value_floats", &[field(7, [0, 0, 128, 63, 1])]), "shape-size-mismatch"),
    ] {
        let file = opened(model(&[bad, field(1, constant("t", ""))])).unwrap();
        assert_eq!(names(&file), ["bad", "t"]);
        assert_eq!(code(&file, "bad"), expected);
        assert!(file.tensor("t").is_ok());
    }
    // A truncated varint is found when the values are read.
    let endless = numbers("x", strange, &[field(8, [7, 0x83])]);
    assert_eq!(found(&opened(model(&[endless])).unwrap()), "shape-size-mismatch");
    // A single number with another wire type is refused.
    for values in [packed(&[1.0]), int(2, 1), field(2, [0; 4])] {
        let bytes = model(&[numbers("x", "value_float", std::slice::from_ref(&values))]);
        let is_refused = opened(bytes).map_or(true, |file| file.tensor("x").is_err());
        assert!(is_refused, "{values:?}");
    }
    // A tensor may have such a name.
    let value = field(5, tensor("", FLOAT, &[1], &[super::draft::raw(&[2.0])]));
    let file = opened(model(&[numbers("x", strange, &[value])])).unwrap();
    assert_eq!(elements::<f32>(&file, "x"), [2.0]);
}
