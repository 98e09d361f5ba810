//! Tensors of every function and class that ever made them.

use crate::draft::{
    Py, beside, built, call, code, f32s, file, list, opened, part, rebuilt, storage, strided,
    tuple, vector, with,
};

const FLOAT: &str = "FloatStorage";

fn f() -> Py {
    storage(FLOAT, "f", 4)
}

#[test]
fn tensors_of_every_version_of_torch_are_read() {
    let plain = rebuilt("_rebuild_tensor", strided(f(), 1, &[2], &[2])[..4].to_vec());
    let on_device = |dtype| {
        let arguments = [
            vector(FLOAT, "f", 4),
            Py::Global("torch", dtype),
            "xla:0".into(),
        ];
        rebuilt("_rebuild_device_tensor_from_cpu_tensor", arguments.to_vec())
    };
    let state = Py::Tuple(strided(f(), 2, &[2], &[1])[..4].to_vec());
    let of_class = |class| built(call("torch", class, Vec::new()), state.clone());
    let half = |first: i64| {
        let half = part(
            FLOAT,
            "f",
            4,
            tuple([Py::from("v"), first.into(), 2.into()]),
        );
        rebuilt("_rebuild_tensor_v2", strided(half, 0, &[2], &[1]))
    };
    let negated = |value: bool| {
        let bits = [("other".into(), 1.into()), ("neg".into(), Py::Bool(value))];
        let mut arguments = strided(f(), 0, &[1], &[1]);
        arguments.push(Py::Dict(bits.to_vec()));
        rebuilt("_rebuild_tensor_v2", arguments)
    };
    for (x, values) in [
        (plain, &[2.0, 4.0][..]),
        (on_device("float32"), &[1.0, 2.0, 3.0, 4.0]),
        (of_class("FloatTensor"), &[3.0, 4.0]),
        (of_class("Tensor"), &[3.0, 4.0]),
        (half(1), &[2.0, 3.0]),
        // To the end of the storage.
        (half(2), &[3.0, 4.0]),
        (negated(false), &[1.0]),
    ] {
        let file = with(x);
        assert_eq!(file.tensor("x").unwrap().to_vec::<f32>().unwrap(), values);
    }
    // What was put off until they are used is not done here.
    for x in [on_device("float16"), negated(true)] {
        assert_eq!(code(x), "unsupported");
    }
}

fn class(name: &'static str, arguments: Vec<Py>) -> Py {
    call("torch.nn.parameter", name, arguments)
}

#[test]
fn a_parameter_is_the_tensor_within_it() {
    let vector = || vector(FLOAT, "f", 4);
    let parameter = |arguments| class("Parameter", arguments);
    let rebuilt_parameter = |inner| rebuilt("_rebuild_parameter", vec![inner]);
    let state = Py::Tuple(strided(f(), 0, &[4], &[1])[..4].to_vec());
    let nested = |times| (0..times).fold(vector(), |inner, _| rebuilt_parameter(inner));
    for x in [
        parameter(vec![vector()]),
        // Before version 0.4: a variable, and before that a tensor.
        built(parameter(Vec::new()), tuple([vector(), Py::Bool(true)])),
        built(parameter(Vec::new()), state),
        nested(7),
    ] {
        let values = with(x).tensor("x").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    }
    let typed = |function| {
        let arguments = vec![function, Py::None, tuple::<Py>([]), Py::Dict(Vec::new())];
        call("torch._tensor", "_rebuild_from_type_v2", arguments)
    };
    for x in [
        nested(9),
        parameter(Vec::new()),
        parameter(vec![1.into()]),
        built(parameter(Vec::new()), Py::None),
        typed(Py::None),
        typed(Py::Global("torch", "Size")),
    ] {
        assert_eq!(code(x), "schema");
    }
}

/// Of a nested tensor of the jagged layout, among others.
#[test]
fn a_tensor_of_a_function_that_is_not_read_is_a_fault_that_names_it() {
    let nested = "torch.nested._internal.nested_tensor";
    for (module, name) in [
        (nested, "_rebuild_njt"),
        ("torch._utils", "_rebuild_nested_tensor"),
    ] {
        let arguments = vec![
            Py::Global(module, name),
            Py::Global(nested, "NestedTensor"),
            tuple([vector(FLOAT, "f", 4)]),
            Py::Dict(Vec::new()),
        ];
        let file = with(call("torch._tensor", "_rebuild_from_type_v2", arguments));
        let error = file.tensor("x").unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (zt::ErrorKind::Unsupported, "pickle-global"));
        let message = error.to_string();
        assert!(message.contains(&format!("{module}.{name}")), "{message}");
    }
}

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
fn what_a_tensor_was_given_decodes_no_value() {
    let given = |x: Py, name: &str, value: Py| {
        let Py::Call(function, arguments) = x else {
            unreachable!()
        };
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
fn scales_of_channels_are_numbers_of_the_pickle_or_a_tensor() {
    let per_channel = |scales: Py, zeros: Py, axis: i64| {
        scheme("per_channel_affine", vec![scales, zeros, axis.into()])
    };
    // As torch had them before version 1.4.
    let lists = |axis| per_channel(list([0.5, 2.0]), list([1, 0]), axis);
    let none = per_channel(list::<f64>([]), list::<i64>([]), 0);
    // Zero-points that are no integers.
    let real = [list([0.5, 2.0]), list([0.5, 1.5]), 0.into()];
    let real = scheme("per_channel_affine_float_qparams", real.to_vec());
    let per_tensor = || scheme("per_tensor_affine", vec![0.5.into(), 1.into()]);
    for (x, values) in [
        (
            quantized("QInt8Storage", &[2, 2], &[2, 1], lists(0)),
            &[0.0, 0.5, 6.0, 8.0][..],
        ),
        (
            quantized("QInt8Storage", &[2, 2], &[2, 1], lists(1)),
            &[0.0, 4.0, 1.0, 8.0],
        ),
        (
            quantized("QUInt8Storage", &[2, 2], &[1, 2], lists(0)),
            &[0.0, 1.0, 4.0, 8.0],
        ),
        (
            quantized("QInt8Storage", &[2, 2], &[2, 1], real),
            &[0.25, 0.75, 3.0, 5.0],
        ),
        (quantized("QInt8Storage", &[0, 2], &[2, 1], none), &[]),
        // Two values of a byte, the first in its lower half.
        (
            quantized("QUInt4x2Storage", &[4], &[1], per_tensor()),
            &[0.0, -0.5, 0.5, -0.5],
        ),
        // All of the storage.
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
    // Channels of nothing have no scales.
    let file = with(quantized("QInt8Storage", &[2, 0], &[1, 1], lists(0)));
    let tensor = file.tensor("x").unwrap();
    assert!(tensor.bytes("scales").unwrap().is_empty());
    let dense = tensor.to_dense().unwrap();
    assert!(dense.as_slice::<f32>().unwrap().is_empty());
}

#[test]
fn quantized_tensors_that_cannot_be_are_refused() {
    let int8 = |scheme| quantized("QInt8Storage", &[2, 2], &[2, 1], scheme);
    let channel = |scales: Py, zeros: Py, axis: i64| {
        int8(scheme(
            "per_channel_affine",
            vec![scales, zeros, axis.into()],
        ))
    };
    let zeros = || list([0, 0]);
    let per_tensor = || scheme("per_tensor_affine", vec![0.5.into(), 1.into()]);
    for (x, expected) in [
        (quantized(FLOAT, &[1], &[1], per_tensor()), "schema"),
        (int8(vec![1.into()]), "schema"),
        (
            int8(scheme("per_tensor_symmetric", Vec::new())),
            "unsupported",
        ),
        (
            int8(scheme("per_tensor_affine", vec![1.into(), 1.into()])),
            "schema",
        ),
        (channel(list([0.5, 2.0]), zeros(), 2), "shape-size-mismatch"),
        (channel(list([0.5]), zeros(), 0), "shape-size-mismatch"),
        (channel(list(["0.5", "2.0"]), zeros(), 0), "schema"),
        (
            channel(list([Py::from(0.5), Py::None]), zeros(), 0),
            "schema",
        ),
        (channel(Py::None, zeros(), 0), "schema"),
        (
            channel(vector(FLOAT, "f", 4), zeros(), 0),
            "shape-size-mismatch",
        ),
        // Packed integers begin with a byte, lie together and lie in the storage.
        (
            quantized("QUInt4x2Storage", &[2, 2], &[1, 2], per_tensor()),
            "unsupported",
        ),
        (
            quantized("QUInt4x2Storage", &[9], &[1], per_tensor()),
            "bounds",
        ),
        // Integers without a scale.
        (vector("QInt8Storage", "q", 4), "dtype"),
    ] {
        assert_eq!(code(x), expected);
    }
}

/// `_rebuild_sparse_tensor`, of a layout and its parts.
fn sparse(layout: Py, parts: Vec<Py>) -> Py {
    rebuilt("_rebuild_sparse_tensor", vec![layout, Py::Tuple(parts)])
}

fn layout(name: &str) -> Py {
    call("torch.serialization", "_get_layout", vec![name.into()])
}

/// Numbers of the storage `q`, which are a byte each.
fn bytes(offset: i64, sizes: &[i64], strides: &[i64]) -> Py {
    let storage = storage("ByteStorage", "q", 4);
    rebuilt(
        "_rebuild_tensor_v2",
        strided(storage, offset, sizes, strides),
    )
}

#[test]
fn sparse_tensors_that_cannot_be_are_refused() {
    let coo = || layout("torch.sparse_coo");
    let csr = || layout("torch.sparse_csr");
    let (one, two) = (bytes(0, &[1], &[1]), bytes(0, &[2], &[1]));
    let matrix = bytes(0, &[1, 1], &[1, 1]);
    let sizes = |sizes: &[i64]| tuple(sizes.iter().copied());
    let vector_of = |sizes: Py| vec![matrix.clone(), one.clone(), sizes];
    for (x, expected) in [
        (
            sparse("torch.sparse_coo".into(), vector_of(sizes(&[4]))),
            "schema",
        ),
        (
            sparse(
                call("torch", "Size", vec!["torch.sparse_coo".into()]),
                vector_of(sizes(&[4])),
            ),
            "schema",
        ),
        (
            sparse(layout("torch.sparse_bsr"), vector_of(sizes(&[4]))),
            "unsupported",
        ),
        (
            sparse(coo(), vec![matrix.clone(), matrix.clone(), sizes(&[4])]),
            "unsupported",
        ),
        (
            sparse(coo(), vec![one.clone(), one.clone(), sizes(&[4])]),
            "shape-size-mismatch",
        ),
        (
            sparse(coo(), vector_of(sizes(&[4, 4]))),
            "shape-size-mismatch",
        ),
        // A part that is no tensor, or is none that lies in one place.
        (
            sparse(coo(), vec![Py::None, one.clone(), sizes(&[4])]),
            "schema",
        ),
        (
            sparse(
                coo(),
                vec![call("torch", "Size", vec![]), one.clone(), sizes(&[4])],
            ),
            "schema",
        ),
        (
            sparse(
                csr(),
                vec![two.clone(), one.clone(), matrix.clone(), sizes(&[1, 4])],
            ),
            "unsupported",
        ),
        (
            sparse(csr(), vec![two, one.clone(), one.clone(), sizes(&[4])]),
            "unsupported",
        ),
    ] {
        assert_eq!(code(x), expected);
    }
    // Before version 2.1 nobody said whether coordinates are in order.
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

/// Indices of i64 are declared as what the format asks for.
#[test]
fn indices_of_sparse_tensors_are_u64() {
    let storages = |numbers: &[i64]| {
        let numbers: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        [("f", 4, f32s(&[1.0, 2.0, 3.0, 4.0])), ("i", 5, numbers)]
    };
    let part = |class, key, count, offset, sizes: &[i64], strides: &[i64]| {
        let storage = storage(class, key, count);
        rebuilt(
            "_rebuild_tensor_v2",
            strided(storage, offset, sizes, strides),
        )
    };
    let index = |offset, sizes: &[i64], strides: &[i64]| {
        part("LongStorage", "i", 5, offset, sizes, strides)
    };
    let values = || part(FLOAT, "f", 4, 0, &[2], &[1]);
    let sizes = || tuple([2, 4]);
    let read = |x: Py, numbers: &[i64]| {
        let file = opened(file(&Py::Dict(vec![("x".into(), x)]), &storages(numbers))).unwrap();
        let options = zt::VerifyOptions {
            strict: true,
            ..Default::default()
        };
        let report = file.verify(&options).unwrap();
        let problems = report.problems.iter().map(|problem| problem.code());
        (problems.collect::<Vec<_>>(), file)
    };
    let coo = |coords: Py| sparse(layout("torch.sparse_coo"), vec![coords, values(), sizes()]);
    let csr = sparse(
        layout("torch.sparse_csr"),
        vec![
            index(0, &[3], &[1]),
            index(3, &[2], &[1]),
            values(),
            sizes(),
        ],
    );
    for (x, numbers, expected) in [
        (
            coo(index(0, &[2, 2], &[2, 1])),
            [0, 1, 1, 3, 0],
            [0., 1., 0., 0., 0., 0., 0., 2.],
        ),
        // Not in row-major order: made while it is read.
        (
            coo(index(0, &[2, 2], &[1, 2])),
            [0, 1, 1, 3, 0],
            [0., 1., 0., 0., 0., 0., 0., 2.],
        ),
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

#[test]
fn arguments_that_make_no_tensor_are_refused() {
    let v2 = |storage: Py, offset: i64, sizes: &[i64], strides: &[i64]| {
        rebuilt(
            "_rebuild_tensor_v2",
            strided(storage, offset, sizes, strides),
        )
    };
    let of = |id: Py| v2(Py::Outside(Box::new(id)), 0, &[1], &[1]);
    let id = |kind: &str, class: Py, count: i64| {
        tuple([kind.into(), class, "f".into(), "cpu".into(), count.into()])
    };
    let float = || Py::Global("torch", FLOAT);
    let v3 = |dtype: Py| {
        let mut arguments = strided(f(), 0, &[1], &[1]);
        arguments.push(dtype);
        rebuilt("_rebuild_tensor_v3", arguments)
    };
    let with_metadata = |metadata: Py| {
        let mut arguments = strided(f(), 0, &[1], &[1]);
        arguments.push(metadata);
        rebuilt("_rebuild_tensor_v2", arguments)
    };
    let meta = |dtype: Py| {
        rebuilt(
            "_rebuild_meta_tensor_no_storage",
            vec![dtype, tuple([2, 3])],
        )
    };
    let array = call("numpy.core.multiarray", "_reconstruct", Vec::new());
    let array = built(array, tuple([Py::from(1), tuple([2, 3])]));
    let device = Py::from("cpu");
    for (x, expected) in [
        (v2(Py::None, 0, &[1], &[1]), "schema"),
        (of(1.into()), "schema"),
        (of(id("module", float(), 4)), "schema"),
        (
            of(id("storage", Py::Global("torch", "float32"), 4)),
            "schema",
        ),
        (of(id("storage", float(), -4)), "schema"),
        (of(id("storage", float(), i64::MAX)), "bounds"),
        (
            v2(storage(FLOAT, &"k".repeat(65), 4), 0, &[1], &[1]),
            "missing-component",
        ),
        (
            v2(storage(FLOAT, "none", 4), 0, &[1], &[1]),
            "missing-component",
        ),
        (
            v2(
                part(FLOAT, "f", 4, tuple([Py::from("v"), 3.into(), 2.into()])),
                0,
                &[1],
                &[1],
            ),
            "bounds",
        ),
        (
            v2(part(FLOAT, "f", 4, Py::from(1)), 0, &[1], &[1]),
            "schema",
        ),
        (v2(f(), 0, &[1, 1], &[1]), "schema"),
        (v2(f(), -1, &[1], &[1]), "schema"),
        (v2(f(), 3, &[2], &[1]), "bounds"),
        (v2(f(), 0, &[i64::MAX, i64::MAX, 4], &[1, 1, 1]), "bounds"),
        (v2(f(), 0, &[1; 65], &[1; 65]), "schema"),
        (v3(Py::None), "schema"),
        (with_metadata(1.into()), "schema"),
        (
            with_metadata(call("torch", "Size", vec![Py::Dict(Vec::new())])),
            "schema",
        ),
        (meta(Py::Global("torch", "float32")), "unsupported"),
        (meta(Py::None), "unsupported"),
        (
            rebuilt("_rebuild_wrapper_subclass", Vec::new()),
            "unsupported",
        ),
        (call("torch", "FloatTensor", Vec::new()), "unsupported"),
        (
            rebuilt(
                "_rebuild_device_tensor_from_cpu_tensor",
                vec![vector(FLOAT, "f", 4), Py::None],
            ),
            "schema",
        ),
        (
            rebuilt(
                "_rebuild_device_tensor_from_numpy",
                vec![array, Py::None, device],
            ),
            "pickle-global",
        ),
        (rebuilt("_rebuild_parameter", vec![Py::None]), "schema"),
    ] {
        assert_eq!(code(x), expected);
    }
}

/// What a view makes of a few bytes is bounded, and a view that is there twice is made once.
#[test]
fn views_are_made_of_what_the_storage_justifies() {
    let view = |sizes: &[i64], strides: &[i64]| {
        rebuilt("_rebuild_tensor_v2", strided(f(), 0, sizes, strides))
    };
    let every_other = || view(&[2], &[2]);
    let items = [("a".into(), every_other()), ("b".into(), every_other())];
    let file = beside(items.to_vec()).unwrap();
    for name in ["a", "b"] {
        assert_eq!(
            file.tensor(name).unwrap().to_vec::<f32>().unwrap(),
            [1.0, 3.0]
        );
    }
    let error = with(view(&[1 << 40], &[0])).tensor("x").unwrap_err();
    let found = (error.kind(), error.code());
    assert_eq!(found, (zt::ErrorKind::Limit, "decompression-limit"));
    // Some times what the file has, beside what any may make.
    let long = strided(storage(FLOAT, "f", 1 << 18), 0, &[257 << 20], &[0]);
    let long = Py::Dict(vec![("x".into(), rebuilt("_rebuild_tensor_v2", long))]);
    let long = crate::draft::file(&long, &[("f", 1 << 18, vec![0; 1 << 20])]);
    assert!(opened(long).unwrap().tensor("x").is_ok());
    // Each of them is no more than a view may make; the third is more than all of them may.
    let third_of_all = |offset: i64| {
        let view = strided(f(), offset, &[100 << 20], &[0]);
        rebuilt("_rebuild_tensor_v2", view)
    };
    let names = ["a", "b", "c", "d"];
    let mut items: Vec<(Py, Py)> = (0..3)
        .map(|at| (names[at].into(), third_of_all(at as i64)))
        .collect();
    // One that has been made is no further one.
    items.push(("d".into(), third_of_all(0)));
    let file = beside(items).unwrap();
    let code = |name: &str| file.tensor(name).err().map(|error| error.code());
    let expected = [None, None, Some("decompression-limit"), None];
    assert_eq!(names.map(code), expected);
}

#[test]
fn tensors_have_at_most_64_dimensions() {
    let x = |rank: usize| {
        let ones = vec![1; rank];
        rebuilt("_rebuild_tensor_v2", strided(f(), 0, &ones, &ones))
    };
    assert_eq!(with(x(64)).tensor("x").unwrap().shape(), [1; 64]);
    let error = with(x(65)).tensor("x").unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (zt::ErrorKind::Limit, "schema")
    );
}

#[test]
fn keys_of_storages_have_at_most_64_bytes() {
    for (len, code) in [(64, None), (65, Some("header"))] {
        let key = "k".repeat(len);
        let x = Py::Dict(vec![("x".into(), vector(FLOAT, &key, 1))]);
        let file = opened(file(&x, &[(key.as_str(), 1, f32s(&[1.5]))]));
        let found = file.and_then(|file| file.tensor("x")?.to_vec::<f32>());
        assert_eq!(found.err().map(|error| error.code()), code);
    }
}

/// Of what it lies in, whatever is said of its place.
#[test]
fn a_tensor_of_nothing_lies_where_its_storage_begins() {
    let nothing = strided(f(), 1 << 40, &[0, 3], &[3, 1]);
    let file = with(rebuilt("_rebuild_tensor_v2", nothing));
    let span = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        tensor.object().component("data").unwrap().blob.span
    };
    let (x, w) = (span("x"), span("w"));
    assert_eq!((x.offset(), x.byte_len()), (w.offset(), 0));
}

/// Objects are listed in the order of their data.
#[test]
fn a_view_that_is_made_is_listed_where_its_first_element_is() {
    let view = |offset, stride| {
        let view = strided(f(), offset, &[2], &[stride]);
        rebuilt("_rebuild_tensor_v2", view)
    };
    let items = [("made".into(), view(2, 0)), ("plain".into(), view(1, 1))];
    let file = beside(items.to_vec()).unwrap();
    let entries = file.entries();
    let names: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["w", "plain", "made", "bytes"]);
}

/// Whether it is known before the tensor is understood or all but its elements is.
#[test]
fn a_tensor_that_is_refused_is_listed_with_what_is_known_of_it() {
    let with_conjugates = {
        let mut arguments = strided(f(), 0, &[2, 2], &[2, 1]);
        arguments.push(Py::Dict(vec![("conj".into(), Py::Bool(true))]));
        arguments
    };
    let nowhere = strided(storage(FLOAT, "none", 4), 0, &[2, 2], &[2, 1]);
    for arguments in [with_conjugates, nowhere] {
        let file = with(rebuilt("_rebuild_tensor_v2", arguments));
        let entries = file.entries();
        let entry = entries.iter().find(|entry| entry.name() == "x").unwrap();
        let raw = entry.raw().unwrap();
        assert_eq!(raw.shape.as_deref(), Some(&[2, 2][..]));
        assert_eq!(raw.components[0].1.dtype.as_deref(), Some("f32"));
    }
}
