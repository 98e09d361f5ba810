//! Faults of pickles as errors, and collections as tensors and attributes. The machine itself is
//! tested in zt-pickle.

use zt::{ErrorKind, Value};

use crate::draft::{Py, beside, file, opened, vector, with};

/// The error of instructions that leave one value.
fn refused(code: &[u8]) -> (ErrorKind, &'static str) {
    let error = beside(vec![("x".into(), Py::Code(code.to_vec()))]).unwrap_err();
    (error.kind(), error.code())
}

#[test]
fn faults_of_a_pickle_have_kinds_and_codes() {
    for code in [
        &b"\xFF"[..],
        b"ctorch\nSize\nK\x01R",
        b"(X\x07\0\0\0storagecmy.module\nClass\ntQ)R",
        b"c_codecs\nencode\n)\x81",
        b"ctorch\nfloat32\n)R",
        b"ctorch.storage\nTypedStorage\n)R",
        b"ctorch\nSize\n)R}b",
    ] {
        let expected = (ErrorKind::Malformed, "pickle");
        assert_eq!(refused(code), expected, "{}", code.escape_ascii());
    }
    let memo_beyond_its_instruction = b"K\x01r\xFF\xFF\xFF\x7F";
    assert_eq!(refused(memo_beyond_its_instruction), (ErrorKind::Limit, "pickle"));
    let name_alone = file(&Py::Global("my.module", "Class"), &[]);
    assert_eq!(opened(name_alone).unwrap_err().code(), "pickle-global");
}

#[test]
fn collections_are_walked_into() {
    let tensor = vector("ByteStorage", "q", 4);
    let made = |name: &'static str, items: Py| {
        let global = Py::Global("collections", name);
        with(Py::Call(Box::new(global), vec![items]))
    };
    let pairs = Py::List(vec![Py::Tuple(vec!["k".into(), tensor.clone()])]);
    let dict = Py::Dict(vec![("k".into(), tensor.clone())]);
    for (file, name) in [
        (made("OrderedDict", pairs), "x.k"),
        (made("OrderedDict", dict.clone()), "x.k"),
        (made("Counter", dict), "x.k"),
        (made("deque", Py::List(vec![tensor])), "x.0"),
    ] {
        assert!(file.tensor(name).is_ok());
    }
    for code in [&b"\x8f(K\x01\x90"[..], b"cbuiltins\nfrozenset\n((K\x01ltR"] {
        let attributes = with(Py::Code(code.to_vec())).attributes().unwrap().unwrap();
        let one = Value::array(vec![Value::Unsigned(1)]);
        assert_eq!(attributes.get("x"), Some(&one), "{}", code.escape_ascii());
    }
}

#[test]
fn a_global_is_refused_at_its_name() {
    let bytes = file(&Py::Code(b"NNN000cos\nsystem\n(K\x01tR".to_vec()), &[]);
    let error = opened(bytes.clone()).unwrap_err();
    let at = usize::try_from(error.offset().unwrap()).unwrap();
    assert!(bytes[at..].starts_with(b"cos\nsystem"), "{at}");
}
