//! Objects of classes that are not on the list, and arrays of NumPy.

use zt::{ByteOrder, ErrorKind, File, Value};

use crate::draft::{Py, beside, built, call, file, list, opened, storage, tuple, vector, with};

fn bytes() -> Py {
    vector("ByteStorage", "q", 4)
}

fn dict(key: &str, value: Py) -> Py {
    Py::Dict(vec![(key.into(), value)])
}

/// An object of a user's class.
fn object(arguments: Vec<Py>) -> Py {
    call("my.module", "Class", arguments)
}

/// Instructions behind a value.
fn then(value: &Py, code: &[u8], items: &[Py]) -> Py {
    Py::Code(value.then(code, items))
}

fn names(file: &File) -> Vec<&str> {
    file.names().collect()
}

/// What Python would do with each unknown global is a warning of its own, which other tests check.
pub(crate) fn codes(file: &File) -> Vec<(Option<String>, &'static str)> {
    let warnings = file.warnings().into_iter();
    warnings
        .filter(|warning| !warning.code.starts_with("pickle-"))
        .map(|warning| (warning.object, warning.code))
        .collect()
}

/// The one warning about an object, or about the file.
fn about(object: Option<&str>) -> (Option<String>, &'static str) {
    (object.map(str::to_owned), "unknown-class")
}

#[test]
fn an_unknown_object_is_a_warning_and_its_tensors_are_listed() {
    let slots = tuple([dict("a", 1.into()), dict("b", bytes())]);
    let inner = object(vec![bytes()]);
    for (value, listed) in [
        (object(vec![1.into()]), None),
        (Py::Code(b"(K\x01imy.module\nClass\n".to_vec()), None),
        (Py::Code(b"(cmy.module\nClass\nK\x01o".to_vec()), None),
        (Py::Code(b"cmy.module\nClass\n)}\x92".to_vec()), None),
        (Py::Code(b"cos\nsystem\n(X\x02\0\0\0lstR".to_vec()), None),
        (object(vec![1.into(), bytes()]), Some("x.1")),
        (built(object(vec![]), dict("a", bytes())), Some("x.a")),
        (built(object(vec![]), slots), Some("x.b")),
        (built(object(vec![]), bytes()), Some("x.0")),
        (object(vec![storage("ByteStorage", "q", 4)]), Some("x.0")),
        (then(&object(vec![]), b"a", &[bytes()]), Some("x.0")),
        (then(&object(vec![]), b"s", &["k".into(), bytes()]), Some("x.k")),
        // In lists, and in other objects.
        (object(vec![list([1.into(), bytes()])]), Some("x.0.1")),
        (built(object(vec![]), dict("a", inner)), Some("x.a.0")),
    ] {
        let file = with(value);
        let mut expected = vec!["w", "bytes"];
        expected.splice(0..0, listed);
        assert_eq!(names(&file), expected);
        assert_eq!(codes(&file), [about(Some("x"))]);
        if let Some(name) = listed {
            let tensor = file.tensor(name).unwrap();
            assert_eq!(tensor.to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
        }
        assert!(file.attributes().unwrap().is_none());
    }
}

/// A class such as a user's own dict holds values, and its state describes it.
#[test]
fn the_items_of_an_unknown_object_are_read_as_those_of_a_collection() {
    let made = then(&object(vec![]), b"s", &["rate".into(), 0.5.into()]);
    let file = with(built(made, dict("hidden", 1.into())));
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("x.rate"), Some(&Value::Float(0.5)));
    assert_eq!(attributes.len(), 1);
}

#[test]
fn objects_of_one_class_are_one_warning() {
    let other = || call("my.module", "Other", Vec::new());
    let file = with(Py::List(vec![object(vec![]), other(), object(vec![])]));
    let expected = [about(Some("x.0")), about(Some("x.1"))];
    assert_eq!(codes(&file), expected);
    assert!(file.warnings()[0].message.contains('2'));
}

/// Nodes of a tree often know their parents.
#[test]
fn an_object_that_holds_itself_is_walked_once() {
    let code = b"cmy.module\nClass\n)Rq\x09}(X\x06\0\0\0parenth\x09X\x01\0\0\0t".to_vec();
    let item = bytes();
    let whole = then(&Py::Code(code), b"ub", &[item]);
    assert_eq!(names(&with(whole)), ["x.t", "w", "bytes"]);
}

#[test]
fn an_unknown_root_is_read_and_alone_it_is_refused() {
    let module = built(object(vec![]), dict("weight", vector("FloatStorage", "f", 1)));
    let storages = [("f", 1, vec![0; 4])];
    let read = opened(file(&module, &storages)).unwrap();
    assert_eq!(names(&read), ["weight"]);
    assert_eq!(codes(&read), [about(None)]);
    for alone in [object(vec![]), dict("a", object(vec![]))] {
        let error = opened(file(&alone, &[])).unwrap_err();
        let found = (error.kind(), error.code());
        assert_eq!(found, (ErrorKind::Unsupported, "pickle-global"));
    }
}

#[test]
fn an_unknown_attribute_of_a_tensor_leaves_the_tensor_readable() {
    let Py::Call(function, arguments) = bytes() else { unreachable!() };
    let class = Py::Global("torch", "Tensor");
    let state = Py::Dict(vec![("own".into(), object(vec![])), ("bits".into(), 4.into())]);
    let arguments = vec![*function, class, Py::Tuple(arguments), state];
    let file = with(call("torch._tensor", "_rebuild_from_type_v2", arguments));
    let tensor = file.tensor("x").unwrap();
    assert_eq!(tensor.attributes().get("bits"), Some(&Value::Unsigned(4)));
    assert_eq!(codes(&file), [about(Some("x"))]);
}

#[test]
fn a_namespace_may_be_the_root() {
    let items =
        Py::Dict(vec![("lr".into(), 0.5.into()), ("w".into(), vector("FloatStorage", "f", 1))]);
    let root = built(call("argparse", "Namespace", Vec::new()), items);
    let file = opened(file(&root, &[("f", 1, vec![0; 4])])).unwrap();
    assert_eq!(names(&file), ["w"]);
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("lr"), Some(&Value::Float(0.5)));
}

fn dtype(code: Py, order: &str) -> Py {
    let made = call("numpy", "dtype", vec![code, Py::Bool(false), Py::Bool(true)]);
    built(made, tuple([Py::from(3), order.into(), Py::None]))
}

/// An array by its state.
fn array(module: &'static str, dtype: Py, sizes: &[i64], is_fortran: bool, data: Py) -> Py {
    let class = Py::Global("numpy", "ndarray");
    let made = call(module, "_reconstruct", vec![class, tuple([0]), Py::Bytes(vec![b'b'])]);
    let sizes = tuple(sizes.iter().copied());
    let order = Py::Bool(is_fortran);
    built(made, Py::Tuple(vec![1.into(), sizes, dtype, order, data]))
}

#[test]
fn arrays_and_scalars_of_numpy_are_tensors() {
    let old = "numpy.core.multiarray";
    let new = "numpy._core.multiarray";
    let i2 = |order: &str| dtype("i2".into(), order);
    let data = |bytes: &[u8]| Py::Bytes(bytes.to_vec());
    let encoded = || call("_codecs", "encode", vec!["\u{1}\0\u{ff}\u{ff}".into(), "latin1".into()]);
    let buffer = |order: &str| {
        let arguments = vec![data(&[1, 0, 2, 0, 3, 0, 4, 0]), i2("<"), tuple([2, 2]), order.into()];
        call("numpy._core.numeric", "_frombuffer", arguments)
    };
    let four = || data(&[1, 0, 2, 0, 3, 0, 4, 0]);
    for (value, shape, expected) in [
        (array(old, i2("<"), &[2], false, data(&[1, 0, 0xFF, 0xFF])), &[2][..], &[1i16, -1][..]),
        (array(new, i2(">"), &[2], false, data(&[0, 1, 0xFF, 0xFF])), &[2], &[1, -1]),
        (array(new, i2("<"), &[2], false, encoded()), &[2], &[1, -1]),
        // Python 2 writes bytes as texts.
        (array(old, i2("<"), &[1], false, "\u{1}\0".into()), &[1], &[1]),
        (array(new, i2("<"), &[2, 2], false, four()), &[2, 2], &[1, 2, 3, 4]),
        (array(new, i2("<"), &[2, 2], true, four()), &[2, 2], &[1, 3, 2, 4]),
        (buffer("C"), &[2, 2], &[1, 2, 3, 4]),
        (buffer("F"), &[2, 2], &[1, 3, 2, 4]),
        (call(new, "scalar", vec![i2("<"), data(&[5, 0])]), &[], &[5]),
        (call(old, "scalar", vec![i2(">"), data(&[0, 5])]), &[], &[5]),
    ] {
        let file = with(value);
        let tensor = file.tensor("x").unwrap();
        assert_eq!(tensor.shape(), shape);
        assert_eq!(tensor.to_vec::<i16>().unwrap(), expected);
        assert!(file.warnings().is_empty());
    }
    let big = with(array(new, i2(">"), &[1], false, data(&[0, 1])));
    let component = big.tensor("x").unwrap().component("data").unwrap().byte_order;
    assert_eq!(component, ByteOrder::Big);
    let bfloat16 = dtype(Py::Global("ml_dtypes", "bfloat16"), "<");
    let file = with(array(new, bfloat16, &[1], false, data(&[0x80, 0x3F])));
    let component = file.tensor("x").unwrap().component("data").unwrap().dtype;
    assert_eq!(component, Some(zt::DType::BF16));
}

#[test]
fn arrays_of_other_values_are_warnings_and_broken_ones_are_faults() {
    let new = "numpy._core.multiarray";
    let of =
        |code: &str, sizes: &[i64], data| array(new, dtype(code.into(), "|"), sizes, false, data);
    let data = || Py::Bytes(vec![0; 4]);
    for value in [of("U1", &[1], data()), of("V4", &[1], data()), of("M8", &[1], data())] {
        let file = with(value);
        assert_eq!(codes(&file), [about(Some("x"))]);
        assert_eq!(names(&file), ["w", "bytes"]);
    }
    let objects = of("O8", &[2], Py::List(vec![bytes(), 7.into()]));
    let file = with(objects);
    assert_eq!(names(&file), ["x.0", "w", "bytes"]);
    let attributes = file.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("x.1"), Some(&Value::Unsigned(7)));
    let text = call(new, "scalar", vec![dtype("U1".into(), "<"), Py::Bytes(vec![b'a', 0, 0, 0])]);
    let attributes = with(text).attributes().unwrap().unwrap();
    assert_eq!(attributes.get("x"), Some(&"a".into()));
    for (value, expected) in [
        (of("i4", &[2], data()), "shape-size-mismatch"),
        (of("i4", &[1], 1.into()), "schema"),
        (of("i4", &[-1], data()), "schema"),
        (of("i4", &[i64::MAX, i64::MAX], data()), "bounds"),
        (call(new, "_reconstruct", vec![]), "unsupported"),
        (call(new, "scalar", vec![1.into(), 2.into()]), "schema"),
    ] {
        assert_eq!(crate::draft::code(value), expected);
    }
}

/// Thousands of arrays may share their bytes. Those of Python 2, which are texts, take memory.
#[test]
fn shared_bytes_of_arrays_have_a_limit_in_memory() {
    let many = |shared: Py| shared_bytes(&shared);
    assert_eq!(many(Py::Bytes(vec![0; 1 << 20])), [None; 3]);
    let text = Py::Text("\0".repeat(1 << 20));
    assert_eq!(many(text), [None, None, Some("pickle")]);
}

/// The codes of the errors of arrays that share their bytes: the first, the 51st and the last of 201.
fn shared_bytes(shared: &Py) -> [Option<&'static str>; 3] {
    let new = "numpy._core.multiarray";
    let first = call(new, "scalar", vec![dtype("i1".into(), "|"), shared.clone()]);
    assert_eq!(crate::draft::code(first), "shape-size-mismatch");
    let kept = then(shared, b"q\x09", &[]);
    let array = |data| array(new, dtype("i1".into(), "|"), &[1 << 20], false, data);
    let mut items = vec![array(kept)];
    items.extend((0..200).map(|_| array(Py::Code(b"h\x09".to_vec()))));
    let file = beside(vec![("x".into(), Py::List(items))]).unwrap();
    // A small file may take 64 MiB.
    let code = |at: usize| file.tensor(&format!("x.{at}")).err().map(|error| error.code());
    [0, 50, 200].map(code)
}

#[test]
fn globals_are_known_by_their_whole_names() {
    assert!(with(vector("ByteStorage", "q", 4)).tensor("x").is_ok());
    for (module, name) in [
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("torch._utils", "_import_dotted_name"),
        ("torch._tensor", "_rebuild_parameter"),
        ("torch", "load"),
        ("torch", "NoSuchStorage"),
        ("torch.cuda", "Size"),
        ("torch.storage", "FloatStorage"),
        ("builtins", "eval"),
        ("__builtin__", "getattr"),
        ("os", "system"),
        ("numpy.core.multiarray", "array"),
        ("numpy", "core.multiarray.scalar"),
        ("torch.nn.modules.linear", "Linear"),
        ("", ""),
    ] {
        let file = with(call(module, name, vec![]));
        assert!(file.tensor("x").is_err(), "{module}.{name}");
        let attributes = file.attributes().unwrap();
        assert!(attributes.is_none_or(|it| it.get("x").is_none()), "{module}.{name}");
        let is_named = !codes(&file).is_empty() || names(&file).contains(&"x");
        assert!(is_named, "{module}.{name}");
    }
}
