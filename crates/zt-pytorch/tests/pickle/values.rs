//! Attributes, and names of keys.

use zt::{ErrorKind, Limits, Memory, OpenOptions, Value};

use crate::draft::{
    Py, beside, built, call, code, file, opened, opened_with, rebuilt, storage, strided, tuple,
    vector, with,
};

/// A list that repeats one tensor.
fn again(count: usize) -> Py {
    let keep = Py::Code(b"q\x03".to_vec());
    let others = Py::Code(b"h\x03".repeat(count - 1));
    Py::List(vec![vector("FloatStorage", "f", 4), keep, others])
}

/// Larger ones are attacks.
#[test]
fn one_tensor_many_times_and_long_lists_are_read() {
    assert_eq!(with(again(337)).len(), 2 + 337);
    // Tied tensors of a small checkpoint.
    assert_eq!(with(again(6000)).len(), 2 + 6000);
    let error = beside(vec![("x".into(), again(25_000))]).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "pickle"));
    assert!(error.to_string().contains("67108864 bytes"), "{error}");
    // A long file allows more.
    let items =
        vec![("w".into(), vector("FloatStorage", "w", 20_000_000)), ("x".into(), again(25_000))];
    let storages = [("w", 20_000_000, vec![0; 80_000_000]), ("f", 4, vec![0; 16])];
    let long = opened(file(&Py::Dict(items), &storages)).unwrap();
    assert_eq!(long.len(), 1 + 25_000);
    let key = "a".repeat(51);
    let truths = Py::Code([b"(", &b"\x88".repeat(200_000)[..], b"l"].concat());
    let file = beside(vec![(key.as_str().into(), truths)]).unwrap();
    assert_eq!(file.attributes().unwrap().unwrap().len(), 200_000);
}

/// The attribute of a value.
fn attribute(value: Py) -> Value {
    let file = with(value);
    let attributes = file.attributes().unwrap().unwrap();
    attributes.get("x").unwrap().clone()
}

/// An integer of these little-endian bytes.
fn long(bytes: &[u8]) -> Py {
    let len = u8::try_from(bytes.len()).unwrap();
    Py::Code([&[0x8a, len], bytes].concat())
}

fn map(key: &str, value: Value) -> Vec<(Value, Value)> {
    vec![(key.into(), value)]
}

#[test]
fn values_of_python_become_attributes() {
    let array = |values: &[Value]| Value::array(values.to_vec());
    let text = |text: &str| -> Py { text.into() };
    let path = |parts: &[&str]| {
        let parts = parts.iter().copied().map(Py::from).collect();
        call("pathlib", "PosixPath", parts)
    };
    let zone = || built(call("datetime", "timezone", vec![1.into()]), tuple([2]));
    let called: zt::manifest::Attributes = [
        map("datetime.timezone", array(&[Value::Unsigned(1)])),
        map("state", array(&[Value::Unsigned(2)])),
    ]
    .concat()
    .into_iter()
    .collect();
    let namespace = || call("argparse", "Namespace", Vec::new());
    let empty = || Value::Map(zt::manifest::Attributes::new());
    let big = |tag: u64, bytes: &[u8]| Value::Tag(tag, Box::new(Value::Bytes(bytes.to_vec())));
    for (value, expected) in [
        (call("torch", "Size", vec![]), array(&[])),
        (call("torch", "Size", vec![tuple([2, 3])]), array(&[2u64.into(), 3u64.into()])),
        (call("torch", "device", vec![text("cuda"), 1.into()]), "cuda:1".into()),
        (
            call("builtins", "complex", vec![1.0.into(), (-2.0).into()]),
            array(&[1.0.into(), (-2.0).into()]),
        ),
        (
            call("torch.serialization", "_get_layout", vec![text("torch.strided")]),
            "torch.strided".into(),
        ),
        (path(&["/", "a", "b"]), "/a/b".into()),
        (path(&["a", "b"]), "a/b".into()),
        (path(&[]), ".".into()),
        (zone(), Value::Map(called)),
        (namespace(), empty()),
        (built(namespace(), Py::Dict(Vec::new())), empty()),
        (built(namespace(), tuple::<Py>([])), empty()),
        (built(namespace(), Py::None), empty()),
        (call("builtins", "bytes", vec![]), Value::Bytes(vec![])),
        (call("builtins", "bytearray", vec![Py::Bytes(vec![1])]), Value::Bytes(vec![1])),
        (
            call("_codecs", "encode", vec![text("\u{ff}a"), text("latin1")]),
            Value::Bytes(vec![0xFF, b'a']),
        ),
        (long(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]), Value::Unsigned(1 << 63)),
        (long(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), big(2, &[1, 0, 0, 0, 0, 0, 0, 0, 0])),
        (long(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF]), Value::Negative(1 << 63)),
        (
            long(&[0, 0, 0, 0, 0, 0, 0, 0, 0xFE]),
            big(3, &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ),
        (Py::Global("my.module", "Class"), "my.module.Class".into()),
    ] {
        assert_eq!(attribute(value), expected);
    }
}

#[test]
fn names_of_python_are_texts() {
    for (module, name, text) in [
        ("collections", "OrderedDict", "collections.OrderedDict"),
        ("collections", "Counter", "collections.Counter"),
        ("collections", "defaultdict", "collections.defaultdict"),
        ("collections", "deque", "collections.deque"),
        ("__builtin__", "set", "set"),
        ("builtins", "frozenset", "frozenset"),
        ("builtins", "bytes", "bytes"),
        ("builtins", "bytearray", "bytearray"),
        ("builtins", "complex", "complex"),
        ("__builtin__", "long", "int"),
        ("_codecs", "encode", "_codecs.encode"),
        ("pathlib._local", "PosixPath", "pathlib.PosixPath"),
        ("argparse", "Namespace", "argparse.Namespace"),
        ("torch", "Size", "torch.Size"),
        ("torch", "device", "torch.device"),
        ("torch.serialization", "_get_layout", "torch.serialization._get_layout"),
        ("torch.cuda", "HalfTensor", "torch.Tensor"),
        ("torch.sparse", "FloatTensor", "torch.sparse.Tensor"),
        ("torch.nn.parameter", "Parameter", "torch.nn.parameter.Parameter"),
        ("torch", "per_tensor_affine", "torch.per_tensor_affine"),
        ("torch", "per_channel_affine", "torch.per_channel_affine"),
        ("torch", "per_channel_affine_float_qparams", "torch.per_channel_affine_float_qparams"),
        ("torch", "per_channel_symmetric", "torch.per_tensor_symmetric"),
        ("torch.storage", "TypedStorage", "torch.storage.TypedStorage"),
        ("torch.storage", "UntypedStorage", "torch.storage.UntypedStorage"),
        ("torch", "LongStorage", "torch.LongStorage"),
        ("torch", "bfloat16", "torch.bfloat16"),
        ("torch._utils", "_rebuild_tensor_v2", "torch._utils._rebuild_tensor_v2"),
        ("numpy", "ndarray", "numpy.ndarray"),
        // Not on the list, and only named.
        ("torch.cuda", "Event", "torch.cuda.Event"),
        ("torch.storage", "_load_from_bytes", "torch.storage._load_from_bytes"),
        ("torch", "save", "torch.save"),
    ] {
        assert_eq!(attribute(Py::Global(module, name)), text.into());
    }
}

#[test]
fn an_unsupported_value_leaves_its_neighbours_readable() {
    let text = |text: &str| -> Py { text.into() };
    let dict = |key: &str, value: i64| Py::Dict(vec![(key.into(), value.into())]);
    for value in [
        call("_codecs", "encode", vec![text("a"), text("utf-8")]),
        call("_codecs", "encode", vec![text("\u{100}"), text("latin1")]),
        call("_codecs", "encode", vec![text("a")]),
        call("torch", "device", vec![]),
        call("torch", "device", vec![1.into()]),
        call("builtins", "complex", vec![1.0.into()]),
        call("torch.serialization", "_get_layout", vec![]),
        built(call("argparse", "Namespace", Vec::new()), 1.into()),
        built(call("argparse", "Namespace", vec![1.into()]), dict("k", 1)),
    ] {
        assert_eq!(code(value), "pickle");
    }
}

#[test]
fn python_attributes_of_a_tensor_are_attributes_of_its_object() {
    let given = |state: Py| {
        let Py::Call(function, arguments) = vector("FloatStorage", "f", 4) else { unreachable!() };
        let class = Py::Global("torch", "Tensor");
        let arguments = vec![*function, class, Py::Tuple(arguments), state];
        with(call("torch._tensor", "_rebuild_from_type_v2", arguments))
    };
    let dict = |key: &str, value: Py| Py::Dict(vec![(key.into(), value)]);
    let one = Value::Unsigned(1);
    let inner: zt::manifest::Attributes = map("k", one.clone()).into_iter().collect();
    // A dict, and a dict with slots.
    for state in
        [dict("meta", dict("k", 1.into())), tuple([dict("meta", dict("k", 1.into())), Py::None])]
    {
        let file = given(state);
        let tensor = file.tensor("x").unwrap();
        assert_eq!(tensor.attributes().get("meta"), Some(&Value::Map(inner.clone())));
    }
    // An attribute that is or holds a tensor is listed beside it: a storage, and a namespace.
    let namespace = |state| built(call("argparse", "Namespace", Vec::new()), state);
    let bytes = || vector("ByteStorage", "q", 4);
    for (state, name) in [
        (dict("s", storage("ByteStorage", "q", 4)), "x.s"),
        (dict("ns", namespace(dict("t", bytes()))), "x.ns.t"),
    ] {
        let file = given(state);
        assert!(file.tensor("x").unwrap().attributes().is_empty());
        let inner = file.tensor(name).unwrap();
        assert_eq!(inner.to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
    }
    // An unsupported attribute is a fault of the tensor.
    let unknown = call("torch", "device", vec![]);
    assert_eq!(given(dict("meta", unknown)).tensor("x").unwrap_err().code(), "pickle");
}

/// A `DTensor` as torch pickles it: a subclass, its local part, and its distribution over devices.
#[test]
fn the_parts_of_a_distributed_tensor_are_tensors() {
    let made = |module, name: &'static str, state: Py| {
        let class = Py::Global(module, name);
        let mut new = Vec::new();
        if let Py::Global(module, name) = class {
            new.extend(format!("c{module}\n{name}\n)").bytes());
            new.push(0x81);
        }
        built(Py::Code(new), state)
    };
    let dict = |pairs: Vec<(&str, Py)>| {
        let pairs = pairs.into_iter();
        Py::Dict(pairs.map(|(key, value)| (key.into(), value)).collect())
    };
    let placements = "torch.distributed.tensor.placement_types";
    let shard = made(placements, "Shard", dict(vec![("dim", 0.into())]));
    let mesh = dict(vec![("_rank_map", vector("ByteStorage", "q", 4))]);
    let mesh = made("torch.distributed.device_mesh", "DeviceMesh", mesh);
    let spec = dict(vec![("mesh", mesh), ("placements", Py::Tuple(vec![shard]))]);
    let spec = made("torch.distributed.tensor._dtensor_spec", "DTensorSpec", spec);
    let class = Py::Global("torch.distributed.tensor", "DTensor");
    let arguments =
        vec![class.clone(), Py::Global("torch", "float32"), tuple([8]), tuple([1]), 0.into()];
    let state = dict(vec![("_local_tensor", vector("FloatStorage", "f", 4)), ("_spec", spec)]);
    let function = Py::Global("torch._utils", "_rebuild_wrapper_subclass");
    let arguments = vec![function, class, Py::Tuple(arguments), Py::Tuple(vec![Py::None, state])];
    let file = with(call("torch._tensor", "_rebuild_from_type_v2", arguments));
    let names: Vec<&str> = file.names().collect();
    assert_eq!(names, ["x._local_tensor", "w", "bytes"]);
    let expected = ["x", "x._spec"].map(|name| (Some(name.to_owned()), "not-tensor"));
    assert_eq!(crate::unknown::codes(&file), expected);
    let local = file.tensor("x._local_tensor").unwrap();
    assert_eq!(local.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

/// A scalar of NumPy: its type, its byte order and its bytes.
fn scalar(code: &str, order: &str, bytes: Py) -> Py {
    let dtype = scalar_type("dtype", code, order);
    call("numpy._core.multiarray", "scalar", vec![dtype, bytes])
}

/// The dtype of a scalar, of a class of `numpy`.
fn scalar_type(class: &'static str, code: &str, order: &str) -> Py {
    let arguments = vec![code.into(), Py::Bool(false), Py::Bool(true)];
    let state = tuple([Py::from(3), order.into(), Py::None]);
    built(call("numpy", class, arguments), state)
}

#[test]
fn keys_name_tensors_as_python_writes_them() {
    let bytes = |bytes: &[u8]| Py::Bytes(bytes.to_vec());
    let encoded = call("_codecs", "encode", vec!["\u{80}\u{3f}".into(), "latin1".into()]);
    let mut deep = Py::Int(1);
    for _ in 0..6 {
        deep = tuple([deep]);
    }
    let many = tuple((0..65).map(Py::Int));
    for (key, name) in [
        (Py::None, "None"),
        (Py::Bool(true), "True"),
        (Py::Bool(false), "False"),
        (Py::Float(0.5), "0.5"),
        (bytes(b"a\xFF"), "b\"a\\xff\""),
        (Py::Global("torch", "float32"), "torch.float32"),
        (Py::FrozenSet(vec![1.into()]), "{1}"),
        (tuple([Py::from("a"), Py::None]), "(\"a\", None)"),
        (long(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]), "9223372036854775808"),
        // A text with a lone surrogate in it.
        (Py::Code(b"X\x05\0\0\0a\xED\xB2\x80b".to_vec()), "a\\udc80b"),
        (tuple([Py::Code(b"X\x04\0\0\0\"\xED\xB2\x80".to_vec())]), "(\"\\\"\\udc80\")"),
        (scalar("i2", "<", bytes(&[0xFE, 0xFF])), "-2"),
        (scalar("i8", ">", bytes(&[0, 0, 0, 0, 0, 0, 1, 0])), "256"),
        (scalar("u1", "|", bytes(&[255])), "255"),
        (scalar("u8", "<", bytes(&[0xFF; 8])), "18446744073709551615"),
        (scalar("b1", "|", bytes(&[1])), "True"),
        (scalar("f8", "<", bytes(&0.25f64.to_le_bytes())), "0.25"),
        (scalar("f4", ">", bytes(&0.25f32.to_be_bytes())), "0.25"),
        (scalar("U2", "<", bytes(&[b'a', 0, 0, 0, 0, 0, 0, 0])), "a"),
        (scalar("U1", ">", bytes(&[0, 0, 0, b'a'])), "a"),
        (scalar("i2", ">", encoded), "-32705"),
        // Keys that no real checkpoint has.
        (deep, "<key 0>"),
        (many, "<key 0>"),
        (scalar("U2", "<", bytes(&[b'a', 0, 0, 0])), "<key 0>"),
        (scalar("i2", "<", bytes(&[1])), "<key 0>"),
        (scalar("V2", "<", bytes(&[1, 2])), "<key 0>"),
        (scalar("i2", "<", 1.into()), "<key 0>"),
        (scalar("i2", "<", Py::List(Vec::new())), "<key 0>"),
        (call("numpy", "ndarray", Vec::new()), "<key 0>"),
        // Incomplete scalars.
        (
            call(
                "numpy.core.multiarray",
                "_reconstruct",
                vec![scalar_type("dtype", "u1", "|"), bytes(&[1])],
            ),
            "<key 0>",
        ),
        (
            call(
                "numpy.core.multiarray",
                "scalar",
                vec![scalar_type("ndarray", "u1", "|"), bytes(&[1])],
            ),
            "<key 0>",
        ),
        (scalar("u1", "|", call("torch", "device", vec!["a".into(), "latin1".into()])), "<key 0>"),
        (call("numpy.core.multiarray", "scalar", vec![1.into(), 2.into()]), "<key 0>"),
        (
            call("numpy.core.multiarray", "scalar", vec![call("torch", "Size", vec![]), 2.into()]),
            "<key 0>",
        ),
        (
            call(
                "numpy.core.multiarray",
                "scalar",
                vec![call("numpy", "ndarray", vec![]), 2.into()],
            ),
            "<key 0>",
        ),
    ] {
        let file = beside(vec![(key, vector("ByteStorage", "q", 4))]).unwrap();
        let names: Vec<&str> = file.names().collect();
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}

#[test]
fn a_duplicate_key_replaces_the_value_of_the_first() {
    let named = || Py::Global("my.module", "Class");
    let half = || Py::Code(b"X\x03\0\0\0\xED\xB2\x80".to_vec());
    for (first, again) in [
        ("a".into(), "a".into()),
        (Py::Int(1), Py::Float(1.0)),
        (Py::Bool(true), Py::Int(1)),
        (Py::Bytes(vec![1]), Py::Bytes(vec![1])),
        (named(), named()),
        (half(), half()),
        (long(&[0; 9]), Py::Int(0)),
        (long(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), long(&[0, 0, 0, 0, 0, 0, 0, 0, 1])),
        (tuple([1, 2]), tuple([1, 2])),
        (tuple([tuple(["a"])]), tuple([tuple(["a"])])),
        (Py::Global("torch", "float32"), Py::Global("torch", "float32")),
        (Py::Global("numpy", "dtype"), Py::Global("numpy", "dtype")),
        (Py::None, Py::None),
    ] {
        // A similar key that is not equal.
        let other = match &first {
            Py::Global("my.module", _) => Py::Global("my.module", "Other"),
            Py::Global("torch", _) => Py::Global("torch", "float16"),
            Py::Global(..) => Py::Global("numpy", "ndarray"),
            Py::Tuple(_) => tuple([7]),
            _ => Py::FrozenSet(Vec::new()),
        };
        let last = strided(storage("ByteStorage", "q", 4), 3, &[1], &[1]);
        let last = rebuilt("_rebuild_tensor_v2", last);
        let tensor = || vector("FloatStorage", "f", 4);
        let items = vec![(other, tensor()), (first, tensor()), (again, last)];
        let file = beside(items).unwrap();
        assert_eq!(file.len(), 4);
        let name = file.names().nth(1).unwrap();
        assert_eq!(file.tensor(name).unwrap().to_vec::<u8>().unwrap(), [4]);
    }
    for (first, other) in [
        (Py::Float(f64::NAN), Py::Float(f64::NAN)),
        (tuple([f64::NAN]), tuple([f64::NAN])),
        (Py::Float(0.5), Py::Float(0.25)),
        (tuple([1, 2]), tuple([1, 2, 3])),
        (tuple([1, 2]), tuple([1, 3])),
        (named(), Py::Global("my.module", "Other")),
        ("1".into(), Py::Int(1)),
    ] {
        let items = [first, other].map(|key| (key, vector("ByteStorage", "q", 4)));
        assert_eq!(beside(items.to_vec()).unwrap().len(), 4);
    }
}

#[test]
fn refuses_names_above_the_limit() {
    let items = Py::List(vec![vector("FloatStorage", "f", 4)]);
    let bytes = file(&Py::Dict(vec![("a".into(), items)]), &[("f", 4, vec![0; 16])]);
    let opened = |name_len| {
        let limits = Limits::default().with_name_len(name_len);
        let options = OpenOptions::new().limits(limits);
        opened_with(Memory::new(bytes.clone()), &options)
    };
    assert!(opened(3).unwrap().tensor("a.0").is_ok());
    let error = opened(2).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "pickle"));
}

#[test]
fn numbers_in_names_are_written_as_in_python() {
    let name = |key: Py| {
        let file = opened(file(
            &Py::Dict(vec![(key, vector("FloatStorage", "f", 4))]),
            &[("f", 4, vec![0; 16])],
        ))
        .unwrap();
        file.names().next().unwrap().to_owned()
    };
    for (value, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (2.5, "2.5"),
        (1e15, "1000000000000000.0"),
        (9_999_999_999_999_998.0, "9999999999999998.0"),
        (1e16, "1e+16"),
        (1.5e16, "1.5e+16"),
        (-1e22, "-1e+22"),
        (1e100, "1e+100"),
        (0.0001, "0.0001"),
        (0.000_01, "1e-05"),
        (1.25e-9, "1.25e-09"),
        (5e-324, "5e-324"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(name(Py::Float(value)), text);
    }
    for ((real, imaginary), text) in [
        ((1.0, -2.0), "(1-2j)"),
        ((1.5, 2.0), "(1.5+2j)"),
        ((0.0, 2.0), "2j"),
        ((-0.0, 2.0), "(-0+2j)"),
        ((0.0, -0.0), "-0j"),
        ((1e16, f64::INFINITY), "(1e+16+infj)"),
        ((1.0, f64::NAN), "(1+nanj)"),
    ] {
        let parts = vec![Py::Float(real), Py::Float(imaginary)];
        assert_eq!(name(call("builtins", "complex", parts)), text);
    }
}
