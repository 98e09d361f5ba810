//! Sparse tensors.

use crate::draft::{Py, call, code, f32s, file, opened, rebuilt, storage, strided, tuple, with};
use crate::tensors::FLOAT;

/// `_rebuild_sparse_tensor` of a layout and its parts.
fn sparse(layout: Py, parts: Vec<Py>) -> Py {
    rebuilt("_rebuild_sparse_tensor", vec![layout, Py::Tuple(parts)])
}

fn layout(name: &str) -> Py {
    call("torch.serialization", "_get_layout", vec![name.into()])
}

/// Numbers of one byte in the storage `q`.
fn bytes(offset: i64, sizes: &[i64], strides: &[i64]) -> Py {
    let storage = storage("ByteStorage", "q", 4);
    rebuilt("_rebuild_tensor_v2", strided(storage, offset, sizes, strides))
}

#[test]
fn refuses_invalid_sparse_tensors() {
    let coo = || layout("torch.sparse_coo");
    let csr = || layout("torch.sparse_csr");
    let (one, two) = (bytes(0, &[1], &[1]), bytes(0, &[2], &[1]));
    let matrix = bytes(0, &[1, 1], &[1, 1]);
    let sizes = |sizes: &[i64]| tuple(sizes.iter().copied());
    let vector_of = |sizes: Py| vec![matrix.clone(), one.clone(), sizes];
    for (x, expected) in [
        (sparse("torch.sparse_coo".into(), vector_of(sizes(&[4]))), "schema"),
        (
            sparse(call("torch", "Size", vec!["torch.sparse_coo".into()]), vector_of(sizes(&[4]))),
            "schema",
        ),
        (sparse(layout("torch.sparse_bsr"), vector_of(sizes(&[4]))), "schema"),
        (sparse(coo(), vec![matrix.clone(), matrix.clone(), sizes(&[4])]), "shape-size-mismatch"),
        (sparse(coo(), vec![one.clone(), one.clone(), sizes(&[4])]), "shape-size-mismatch"),
        (sparse(coo(), vector_of(sizes(&[4, 4]))), "shape-size-mismatch"),
        // A part that is not a strided tensor.
        (sparse(coo(), vec![Py::None, one.clone(), sizes(&[4])]), "schema"),
        (sparse(coo(), vec![call("torch", "Size", vec![]), one.clone(), sizes(&[4])]), "schema"),
        (
            sparse(csr(), vec![two.clone(), one.clone(), matrix.clone(), sizes(&[1, 4])]),
            "unsupported",
        ),
        (sparse(csr(), vec![two, one.clone(), one.clone(), sizes(&[4])]), "unsupported"),
    ] {
        assert_eq!(code(x), expected);
    }
    // `is_coalesced` is missing before version 2.1.
    let of_class = call("torch.sparse", "ByteTensor", vector_of(sizes(&[4])));
    let ordered = [vector_of(sizes(&[4])), vec![Py::Bool(true)]].concat();
    for (x, is_coalesced) in [
        (sparse(coo(), vector_of(sizes(&[4]))), None),
        (of_class, None),
        (sparse(coo(), ordered), Some(&zt::Value::Bool(true))),
    ] {
        let file = with(x);
        let tensor = file.tensor("x").unwrap();
        let dense = tensor.to_dense().unwrap();
        assert_eq!(*dense.as_slice::<u8>().unwrap(), [0, 1, 0, 0]);
        assert_eq!(tensor.attributes().get("is_coalesced"), is_coalesced);
    }
}

#[test]
fn indices_of_sparse_tensors_are_u64() {
    let storages = |numbers: &[i64]| {
        let numbers: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        [("f", 4, f32s(&[1.0, 2.0, 3.0, 4.0])), ("i", 5, numbers)]
    };
    let part = |class, key, count, offset, sizes: &[i64], strides: &[i64]| {
        let storage = storage(class, key, count);
        rebuilt("_rebuild_tensor_v2", strided(storage, offset, sizes, strides))
    };
    let index = |offset, sizes: &[i64], strides: &[i64]| {
        part("LongStorage", "i", 5, offset, sizes, strides)
    };
    let values = || part(FLOAT, "f", 4, 0, &[2], &[1]);
    let sizes = || tuple([2, 4]);
    let read = |x: Py, numbers: &[i64]| {
        let file = opened(file(&Py::Dict(vec![("x".into(), x)]), &storages(numbers))).unwrap();
        let options = zt::VerifyOptions::new().strict(true);
        let report = file.verify(&options).unwrap();
        let problems = report.problems.iter().map(|problem| problem.code());
        (problems.collect::<Vec<_>>(), file)
    };
    let coo = |coords: Py| sparse(layout("torch.sparse_coo"), vec![coords, values(), sizes()]);
    let csr = sparse(
        layout("torch.sparse_csr"),
        vec![index(0, &[3], &[1]), index(3, &[2], &[1]), values(), sizes()],
    );
    for (x, numbers, expected) in [
        (coo(index(0, &[2, 2], &[2, 1])), [0, 1, 1, 3, 0], [0., 1., 0., 0., 0., 0., 0., 2.]),
        // Not in row-major order, so it is gathered.
        (coo(index(0, &[2, 2], &[1, 2])), [0, 1, 1, 3, 0], [0., 1., 0., 0., 0., 0., 0., 2.]),
        (csr, [0, 1, 2, 1, 3], [0., 1., 0., 0., 0., 0., 0., 2.]),
    ] {
        let (problems, file) = read(x, &numbers);
        assert!(problems.is_empty(), "{problems:?}");
        let dense = file.tensor("x").unwrap().to_dense().unwrap();
        assert_eq!(*dense.as_slice::<f32>().unwrap(), expected);
    }
    let (problems, _) = read(coo(index(0, &[2, 2], &[2, 1])), &[0, 1, -1, 3, 0]);
    assert_eq!(problems, ["index-value"]);
}
