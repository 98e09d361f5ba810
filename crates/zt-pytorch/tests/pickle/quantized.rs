//! Quantized tensors.

use crate::draft::{Py, call, code, list, rebuilt, storage, strided, vector, with};
use crate::tensors::FLOAT;

/// Quantized values of `q`, a scheme and its parameters.
fn quantized(class: &'static str, sizes: &[i64], strides: &[i64], scheme: Vec<Py>) -> Py {
    let key = if class == FLOAT { "f" } else { "q" };
    let mut arguments = strided(storage(class, key, 4), 0, sizes, strides);
    arguments.insert(4, Py::Tuple(scheme));
    rebuilt("_rebuild_qtensor", arguments)
}

fn scheme(name: &'static str, parameters: Vec<Py>) -> Vec<Py> {
    [vec![Py::Global("torch", name)], parameters].concat()
}

#[test]
fn python_attributes_do_not_change_the_quantization() {
    let given = |x: Py, name: &str, value: Py| {
        let Py::Call(function, arguments) = x else { unreachable!() };
        let class = Py::Global("torch", "Tensor");
        let state = Py::Dict(vec![(name.into(), value)]);
        let arguments = vec![*function, class, Py::Tuple(arguments), state];
        with(call("torch._tensor", "_rebuild_from_type_v2", arguments))
    };
    let quantized = || {
        let scheme = scheme("per_tensor_affine", vec![0.5.into(), 1.into()]);
        quantized("QInt8Storage", &[4], &[1], scheme)
    };
    let values = |file: &zt::File| file.tensor("x").unwrap().to_dense().unwrap().into_owned();
    let expected = values(&with(quantized()));
    for (name, value) in [
        ("bits", Py::from(4)),
        ("group_size", 2.into()),
        ("packing", 2.into()),
        ("signed", Py::Bool(false)),
        ("zero_kind", "additive".into()),
    ] {
        let file = given(quantized(), name, value);
        assert_eq!(values(&file), expected, "{name}");
        let tensor = file.tensor("x").unwrap();
        assert!(tensor.attributes().get(&format!("torch.{name}")).is_some());
    }
    let dense = given(vector(FLOAT, "f", 4), "bits", 4.into());
    let attributes = dense.tensor("x").unwrap().attributes();
    assert_eq!(attributes.get("bits"), Some(&zt::Value::Unsigned(4)));
}

#[test]
fn scales_of_channels_are_a_list_or_a_tensor() {
    let per_channel = |scales: Py, zeros: Py, axis: i64| {
        scheme("per_channel_affine", vec![scales, zeros, axis.into()])
    };
    // Lists of torch before version 1.4.
    let lists = |axis| per_channel(list([0.5, 2.0]), list([1, 0]), axis);
    let none = per_channel(list::<f64>([]), list::<i64>([]), 0);
    // Zero-points that are floats.
    let real = [list([0.5, 2.0]), list([0.5, 1.5]), 0.into()];
    let real = scheme("per_channel_affine_float_qparams", real.to_vec());
    let per_tensor = || scheme("per_tensor_affine", vec![0.5.into(), 1.into()]);
    for (x, values) in [
        (quantized("QInt8Storage", &[2, 2], &[2, 1], lists(0)), &[0.0, 0.5, 6.0, 8.0][..]),
        (quantized("QInt8Storage", &[2, 2], &[2, 1], lists(1)), &[0.0, 4.0, 1.0, 8.0]),
        (quantized("QUInt8Storage", &[2, 2], &[1, 2], lists(0)), &[0.0, 1.0, 4.0, 8.0]),
        (quantized("QInt8Storage", &[2, 2], &[2, 1], real), &[0.25, 0.75, 3.0, 5.0]),
        (quantized("QInt8Storage", &[0, 2], &[2, 1], none), &[]),
        // Two values in a byte, the first in its lower half.
        (quantized("QUInt4x2Storage", &[4], &[1], per_tensor()), &[0.0, -0.5, 0.5, -0.5]),
        // The whole storage.
        (
            quantized("QUInt4x2Storage", &[8], &[1], per_tensor()),
            &[0.0, -0.5, 0.5, -0.5, 1.0, -0.5, 1.5, -0.5],
        ),
    ] {
        let file = with(x);
        let tensor = file.tensor("x").unwrap();
        assert_eq!(tensor.format(), "quantized_group");
        let dense = tensor.to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), *values);
    }
    // Empty channels have no scales.
    let file = with(quantized("QInt8Storage", &[2, 0], &[1, 1], lists(0)));
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.bytes("scales").unwrap().is_empty());
    let dense = tensor.to_dense().unwrap();
    assert!(dense.as_slice::<f32>().unwrap().is_empty());
}

#[test]
fn refuses_invalid_quantized_tensors() {
    let int8 = |scheme| quantized("QInt8Storage", &[2, 2], &[2, 1], scheme);
    let channel = |scales: Py, zeros: Py, axis: i64| {
        int8(scheme("per_channel_affine", vec![scales, zeros, axis.into()]))
    };
    let zeros = || list([0, 0]);
    let per_tensor = || scheme("per_tensor_affine", vec![0.5.into(), 1.into()]);
    for (x, expected) in [
        (quantized(FLOAT, &[1], &[1], per_tensor()), "schema"),
        (int8(vec![1.into()]), "schema"),
        (int8(scheme("per_tensor_symmetric", Vec::new())), "unsupported"),
        (int8(scheme("per_tensor_affine", vec![1.into(), 1.into()])), "schema"),
        (channel(list([0.5, 2.0]), zeros(), 2), "shape-size-mismatch"),
        (channel(list([0.5]), zeros(), 0), "shape-size-mismatch"),
        (channel(list(["0.5", "2.0"]), zeros(), 0), "schema"),
        (channel(list([Py::from(0.5), Py::None]), zeros(), 0), "schema"),
        (channel(Py::None, zeros(), 0), "schema"),
        (channel(vector(FLOAT, "f", 4), zeros(), 0), "shape-size-mismatch"),
        // Packed integers must begin at the first byte, be contiguous and fit in the storage.
        (quantized("QUInt4x2Storage", &[2, 2], &[1, 2], per_tensor()), "unsupported"),
        (quantized("QUInt4x2Storage", &[9], &[1], per_tensor()), "bounds"),
        // Quantized integers without a scale.
        (vector("QInt8Storage", "q", 4), "dtype"),
    ] {
        assert_eq!(code(x), expected);
    }
}
