//! Tensors of every function and class that rebuilds them.

use crate::draft::{
    Py, beside, built, call, code, f32s, file, opened, part, rebuilt, storage, strided, tuple,
    vector, with,
};
use crate::unknown::codes;

pub(crate) const FLOAT: &str = "FloatStorage";

pub(crate) fn f() -> Py {
    storage(FLOAT, "f", 4)
}

#[test]
fn tensors_of_every_version_of_torch_are_read() {
    let plain = rebuilt("_rebuild_tensor", strided(f(), 1, &[2], &[2])[..4].to_vec());
    let on_device = |dtype| {
        let arguments = [vector(FLOAT, "f", 4), Py::Global("torch", dtype), "xla:0".into()];
        rebuilt("_rebuild_device_tensor_from_cpu_tensor", arguments.to_vec())
    };
    let state = Py::Tuple(strided(f(), 2, &[2], &[1])[..4].to_vec());
    let of_class = |class| built(call("torch", class, Vec::new()), state.clone());
    let half = |first: i64| {
        let half = part(FLOAT, "f", 4, tuple([Py::from("v"), first.into(), 2.into()]));
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
        (negated(true), &[-1.0]),
    ] {
        let file = with(x);
        assert_eq!(file.tensor("x").unwrap().to_vec::<f32>().unwrap(), values);
    }
    // Only a device has the values.
    assert_eq!(code(on_device("float16")), "unsupported");
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
        // Before version 0.4: a variable; earlier: a tensor.
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

#[test]
fn an_object_that_holds_tensors_is_no_tensor() {
    let class = Py::Global("my", "Quantized");
    let dtype = Py::Global("torch", "float32");
    let subclass = || {
        let arguments = vec![class.clone(), dtype.clone(), tuple([4])];
        rebuilt("_rebuild_wrapper_subclass", arguments)
    };
    let parts = || {
        let values = ("values".into(), vector(FLOAT, "f", 4));
        Py::Dict(vec![values, ("bits".into(), 8.into())])
    };
    let from_type = call(
        "torch._tensor",
        "_rebuild_from_type_v2",
        vec![
            Py::Global("torch._utils", "_rebuild_wrapper_subclass"),
            class.clone(),
            tuple([class.clone(), dtype.clone(), tuple([4])]),
            parts(),
        ],
    );
    let parameter = |data: Py| {
        let arguments = vec![data, Py::Bool(true), Py::Dict(Vec::new())];
        rebuilt("_rebuild_parameter", arguments)
    };
    for x in [
        from_type,
        built(subclass(), parts()),
        built(subclass(), Py::Tuple(vec![Py::None, parts()])),
        parameter(built(subclass(), parts())),
    ] {
        let file = with(x);
        assert!(file.verify(&zt::VerifyOptions::default()).unwrap().is_ok());
        assert_eq!(codes(&file), [(Some("x".to_owned()), "not-tensor")]);
        let names: Vec<&str> = file.names().collect();
        assert_eq!(names, ["x.values", "w", "bytes"]);
        let values = file.tensor("x.values").unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    }
    // A state that is no dict has no names.
    let tensor = || vector(FLOAT, "f", 4);
    for (state, expected) in [
        (Py::List(vec![8.into(), tensor()]), "x.1"),
        (Py::Tuple(vec![tensor(), Py::None]), "x.0"),
        (tensor(), "x.0"),
    ] {
        let file = with(built(subclass(), state));
        assert_eq!(codes(&file), [(Some("x".to_owned()), "not-tensor")]);
        assert_eq!(file.names().collect::<Vec<_>>(), [expected, "w", "bytes"]);
    }
    let meta = rebuilt("_rebuild_meta_tensor_no_storage", vec![dtype.clone(), tuple([2, 3])]);
    let file = with(meta);
    assert_eq!(codes(&file), [(Some("x".to_owned()), "not-tensor")]);
}

#[test]
fn a_state_of_a_tensor_has_its_attributes() {
    let tensor = rebuilt("_rebuild_tensor_v2", strided(f(), 0, &[2], &[1]));
    let file = with(built(tensor, Py::Dict(vec![("extra".into(), 7.into())])));
    let tensor = file.tensor("x").unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(tensor.attributes().get("extra"), Some(&7u64.into()));
}

/// A jagged nested tensor, and another.
#[test]
fn the_error_of_an_unsupported_function_names_it() {
    let nested = "torch.nested._internal.nested_tensor";
    for (module, name) in [(nested, "_rebuild_njt"), ("torch._utils", "_rebuild_nested_tensor")] {
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

#[test]
fn refuses_invalid_arguments() {
    let v2 = |storage: Py, offset: i64, sizes: &[i64], strides: &[i64]| {
        rebuilt("_rebuild_tensor_v2", strided(storage, offset, sizes, strides))
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
    let of_sizes = |sizes: Py| {
        let mut arguments = strided(f(), 0, &[1], &[1]);
        arguments[2] = sizes;
        rebuilt("_rebuild_tensor_v2", arguments)
    };
    let array = call("numpy.core.multiarray", "_reconstruct", Vec::new());
    let array = built(array, tuple([Py::from(1), tuple([2, 3])]));
    let device = Py::from("cpu");
    for (x, expected) in [
        (v2(Py::None, 0, &[1], &[1]), "schema"),
        (of(1.into()), "schema"),
        (of(id("module", float(), 4)), "schema"),
        (of(id("storage", Py::Global("torch", "float32"), 4)), "schema"),
        (of(id("storage", float(), -4)), "schema"),
        (of(id("storage", float(), i64::MAX)), "bounds"),
        (v2(storage(FLOAT, &"k".repeat(65), 4), 0, &[1], &[1]), "missing-component"),
        (v2(storage(FLOAT, "none", 4), 0, &[1], &[1]), "missing-component"),
        (
            v2(part(FLOAT, "f", 4, tuple([Py::from("v"), 3.into(), 2.into()])), 0, &[1], &[1]),
            "bounds",
        ),
        (v2(part(FLOAT, "f", 4, Py::from(1)), 0, &[1], &[1]), "schema"),
        (v2(f(), 0, &[1, 1], &[1]), "schema"),
        (v2(f(), -1, &[1], &[1]), "schema"),
        (v2(f(), 3, &[2], &[1]), "bounds"),
        (v2(f(), 0, &[i64::MAX, i64::MAX, 4], &[1, 1, 1]), "bounds"),
        (v2(f(), 0, &[1; 65], &[1; 65]), "schema"),
        (of_sizes(call("torch.serialization", "_get_layout", vec![tuple([1])])), "schema"),
        (v3(Py::None), "schema"),
        (with_metadata(1.into()), "schema"),
        (with_metadata(call("torch", "Size", vec![Py::Dict(Vec::new())])), "schema"),
        (rebuilt("_rebuild_wrapper_subclass", Vec::new()), "schema"),
        (rebuilt("_rebuild_wrapper_subclass", vec![1.into()]), "schema"),
        (call("torch", "FloatTensor", Vec::new()), "unsupported"),
        (
            rebuilt(
                "_rebuild_device_tensor_from_cpu_tensor",
                vec![vector(FLOAT, "f", 4), Py::None],
            ),
            "schema",
        ),
        (rebuilt("_rebuild_device_tensor_from_numpy", vec![array, Py::None, device]), "schema"),
        (rebuilt("_rebuild_parameter", vec![Py::None]), "schema"),
    ] {
        assert_eq!(code(x), expected);
    }
}

#[test]
fn the_bytes_of_all_gathered_views_are_limited() {
    let view = |sizes: &[i64], strides: &[i64]| {
        rebuilt("_rebuild_tensor_v2", strided(f(), 0, sizes, strides))
    };
    let every_other = || view(&[2], &[2]);
    let items = [("a".into(), every_other()), ("b".into(), every_other())];
    let file = beside(items.to_vec()).unwrap();
    for name in ["a", "b"] {
        assert_eq!(file.tensor(name).unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0]);
    }
    let error = with(view(&[1 << 40], &[0])).tensor("x").unwrap_err();
    let found = (error.kind(), error.code());
    assert_eq!(found, (zt::ErrorKind::Limit, "decompression-limit"));
    // The limit grows with the file.
    let long = strided(storage(FLOAT, "f", 1 << 18), 0, &[257 << 20], &[0]);
    let long = Py::Dict(vec![("x".into(), rebuilt("_rebuild_tensor_v2", long))]);
    let long = crate::draft::file(&long, &[("f", 1 << 18, vec![0; 1 << 20])]);
    assert!(opened(long).unwrap().tensor("x").is_ok());
    // Each view is below the limit, and the third exceeds it.
    let third_of_all = |offset: i64| {
        let view = strided(f(), offset, &[100 << 20], &[0]);
        rebuilt("_rebuild_tensor_v2", view)
    };
    let names = ["a", "b", "c", "d"];
    let mut items: Vec<(Py, Py)> =
        (0..3).map(|at| (names[at].into(), third_of_all(at as i64))).collect();
    // A duplicate view counts once.
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
    assert_eq!((error.kind(), error.code()), (zt::ErrorKind::Limit, "schema"));
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

#[test]
fn an_empty_tensor_has_the_offset_of_its_storage() {
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
fn a_gathered_view_is_listed_at_its_first_element() {
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

#[test]
fn a_refused_tensor_is_listed_with_its_shape_and_dtype() {
    let with_metadata = {
        let mut arguments = strided(f(), 0, &[2, 2], &[2, 1]);
        arguments.push(1.into());
        arguments
    };
    let nowhere = strided(storage(FLOAT, "none", 4), 0, &[2, 2], &[2, 1]);
    for arguments in [with_metadata, nowhere] {
        let file = with(rebuilt("_rebuild_tensor_v2", arguments));
        let entries = file.entries();
        let entry = entries.iter().find(|entry| entry.name() == "x").unwrap();
        let raw = entry.raw().unwrap();
        assert_eq!(raw.shape.as_deref(), Some(&[2, 2][..]));
        assert_eq!(raw.components[0].1.dtype.as_deref(), Some("f32"));
    }
}
