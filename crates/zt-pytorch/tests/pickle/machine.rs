//! Instructions, one by one.

use zt::{ErrorKind, Value};

use crate::draft::{Py, beside, file, opened, vector, with};

/// What instructions that leave one value make an attribute of; the code where they are refused.
fn run(code: &[u8]) -> Result<Value, &'static str> {
    let items = vec![("x".into(), Py::Code(code.to_vec()))];
    let file = beside(items).map_err(|error| error.code())?;
    let attributes = file.attributes().unwrap().unwrap();
    Ok(attributes.get("x").unwrap().clone())
}

/// The kind of error that instructions are refused with.
fn kind(code: &[u8]) -> ErrorKind {
    let items = vec![("x".into(), Py::Code(code.to_vec()))];
    beside(items).unwrap_err().kind()
}

#[test]
fn texts_and_numbers_of_every_protocol_are_read() {
    for (code, expected) in [
        (
            &b"S'a\\n\\r\\t\\\\\\'\\x41'\n"[..],
            Value::from("a\n\r\t\\'A"),
        ),
        (b"S\"\\xff\"\n", Value::Bytes(vec![0xFF])),
        (
            b"Va\xE9\\u20ac\\U0001f600\\n\n",
            "a\u{e9}\u{20ac}\u{1f600}\\n".into(),
        ),
        (b"V\\udc80\n", Value::Bytes(vec![0xED, 0xB2, 0x80])),
        (b"U\x01\xFF", Value::Bytes(vec![0xFF])),
        (b"T\x01\0\0\0a", "a".into()),
        (b"\x8c\x01a", "a".into()),
        (b"C\x01a", Value::Bytes(b"a".to_vec())),
        (b"\x8e\x01\0\0\0\0\0\0\0a", Value::Bytes(b"a".to_vec())),
        (b"I01\n", Value::Bool(true)),
        (b"I00\n", Value::Bool(false)),
        (b"I-5\n", Value::from(-5i64)),
        (b"L5L\n", Value::Unsigned(5)),
        (b"F-0.5\n", Value::Float(-0.5)),
        (b"M\x01\x02", Value::Unsigned(0x201)),
        (b"J\xFF\xFF\xFF\xFF", Value::from(-1i64)),
        (b"\x8b\x01\0\0\0\x05", Value::Unsigned(5)),
        // Values that are taken from the stack again, and one that is there twice.
        (b"K\x01K\x020", Value::Unsigned(1)),
        (b"K\x01(K\x02K\x031", Value::Unsigned(1)),
        (b"K\x01(0", Value::Unsigned(1)),
        (b"K\x0520", Value::Unsigned(5)),
        // Memos by lines.
        (b"K\x05p1\n0g1\n", Value::Unsigned(5)),
    ] {
        assert_eq!(run(code), Ok(expected), "{}", code.escape_ascii());
    }
}

#[test]
fn instructions_that_cannot_be_carried_out_are_refused() {
    for code in [
        &b"Sa\n"[..],
        b"S'\\q'\n",
        b"S'\\'\n",
        b"S'\\xg0'\n",
        b"V\\u12\n",
        b"V\\U00110000\n",
        b"X\x01\0\0\0\xFF",
        b"X\x04\0\0\0a\xED\xA0b",
        b"X\xFF\xFF\xFF\xFF",
        b"T\xFF\xFF\xFF\xFF",
        b"\x8b\xFF\xFF\xFF\xFF",
        b"Ix\n",
        b"Fx\n",
        b"I1",
        b"\x80\x06",
        b"\x95\xFF\0\0\0\0\0\0\0",
        b"h\x09",
        b"j\x09\0\0\0",
        b"gx\n",
        b"K\x01r\xFF\xFF\xFF\x7F",
        b"\xFF",
        // Of what is not there, or below a mark.
        b"(\x93",
        b"(R",
        b"(K\x01\x86",
        b"t1111",
        // Of something else.
        b"K\x01K\x02a",
        b"K\x01(e",
        b"K\x01K\x02K\x03s",
        b"K\x01(\x90",
        b"K\x01Nb",
        b"](K\x01u",
        b"}(K\x01u",
        b"}]K\x01s",
        b"\x8f(]\x90",
        b"(]\x91",
        b"K\x01K\x02\x93",
        b"K\x01)R",
        b"K\x01)\x81",
        b"ctorch\nSize\nK\x01R",
        b"(X\x07\0\0\0storagecmy.module\nClass\ntQ)R",
        b"c_codecs\nencode\n)\x81",
        b"ctorch\nfloat32\n)R",
        b"ctorch.storage\nTypedStorage\n)R",
        b"ctorch\nSize\n)R}b",
        b"cbuiltins\nset\n(K\x01tR",
        b"cbuiltins\nset\n((]ltR",
        b"cbuiltins\nfrozenset\n((]ltR",
        b"ccollections\nOrderedDict\n((K\x01ltR",
        b"ccollections\nOrderedDict\n(((]K\x01tltR",
        b"ccollections\nCounter\n((K\x01ltR",
        b"(icollections\nOrderedDict\n",
    ] {
        let found = run(code);
        assert_eq!(found, Err("pickle"), "{}", code.escape_ascii());
    }
    for code in [
        &b"cos\nsystem\n(X\x02\0\0\0lstR"[..],
        b"cos\nsystem\n)\x81",
        b"(ios\nsystem\n",
        b"X\x02\0\0\0osX\x06\0\0\0system\x93)R",
        b"(X\x06\0\0\0modulecmy.module\nClass\ntQ)\x81",
    ] {
        assert_eq!(run(code), Err("pickle-global"), "{}", code.escape_ascii());
        assert_eq!(kind(code), ErrorKind::Unsupported);
    }
    assert_eq!(kind(b"\xFF"), ErrorKind::Malformed);
    // A list of 200 numbers made a set 100 times, and a dict made another.
    for (maker, end) in [("builtins\nset", b'l'), ("collections\nCounter", b'd')] {
        let copies = b"h\x01h\x02\x85R0".repeat(100);
        let items = [b"(", &b"K\x01".repeat(200)[..], &[end], b"q\x020"].concat();
        let maker = format!("c{maker}\nq\x010");
        let code = [maker.as_bytes(), &items, &copies, b"N"].concat();
        assert_eq!(run(&code), Err("pickle"));
        assert_eq!(kind(&code), ErrorKind::Limit);
    }
    // Nothing but a name holds no data.
    let bytes = file(&Py::Global("my.module", "Class"), &[]);
    assert_eq!(opened(bytes).unwrap_err().code(), "pickle-global");
}

#[test]
fn collections_are_made_of_others() {
    let tensor = vector("ByteStorage", "q", 4);
    let pairs = Py::List(vec![Py::Tuple(vec!["k".into(), tensor.clone()])]);
    let made = |name: &'static str, items: Py| {
        let global = Py::Global("collections", name);
        with(Py::Call(Box::new(global), vec![items]))
    };
    for file in [
        made("OrderedDict", pairs),
        made("OrderedDict", Py::Dict(vec![("k".into(), tensor.clone())])),
        made("Counter", Py::Dict(vec![("k".into(), tensor.clone())])),
    ] {
        assert!(file.tensor("x.k").is_ok());
    }
    assert!(
        made("deque", Py::List(vec![tensor.clone()]))
            .tensor("x.0")
            .is_ok()
    );
    let numbers = |code: &[u8]| run(code).unwrap();
    let one = Value::Array(vec![Value::Unsigned(1)]);
    for code in [
        &b"\x8f(K\x01\x90"[..],
        b"(K\x01\x91",
        b"cbuiltins\nset\n((K\x01ltR",
        b"cbuiltins\nset\n((K\x01ttR",
        b"cbuiltins\nset\n((K\x01\x91tR",
        b"cbuiltins\nset\n(\x8f(K\x01\x90tR",
        b"cbuiltins\nfrozenset\n((K\x01ltR",
        b"cbuiltins\nset\n)\x81(K\x01\x90",
        b"cbuiltins\nset\n(]tR(K\x01\x90",
    ] {
        assert_eq!(numbers(code), one, "{}", code.escape_ascii());
    }
    // As Python pickles it: empty, and its items behind it.
    let deque = with(Py::Code(b"ccollections\ndeque\n)R(K\x01e".to_vec()));
    let attributes = deque.attributes().unwrap().unwrap();
    assert_eq!(attributes.get("x.0"), Some(&Value::Unsigned(1)));
    let none = Value::Array(Vec::new());
    for code in [
        &b"cbuiltins\nset\n)R"[..],
        b"cbuiltins\nfrozenset\n)R",
        b"ccollections\ndeque\n)R",
    ] {
        assert_eq!(numbers(code), none, "{}", code.escape_ascii());
    }
}

#[test]
fn an_error_names_the_value_that_is_called() {
    for (value, name) in [
        (&b"N"[..], "None"),
        (b"\x88", "a bool"),
        (b"K\x01", "an integer"),
        (b"G\0\0\0\0\0\0\0\0", "a float"),
        (b"X\x01\0\0\0a", "a text"),
        (b"C\x01a", "bytes"),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\x01", "a long integer"),
        (b")", "a tuple"),
        (b"]", "a list"),
        (b"\x8f", "a set"),
        (b"(\x91", "a set"),
        (b"}", "a dict"),
        (b"ctorch\nSize\n(]tR", "an object"),
        (
            b"(X\x07\0\0\0storagectorch\nFloatStorage\ntQ",
            "outside the pickle",
        ),
    ] {
        for end in [&b")R"[..], b")\x81"] {
            let code = [value, end].concat();
            let items = vec![("x".into(), Py::Code(code.clone()))];
            let message = beside(items).unwrap_err().message();
            assert!(message.contains(name), "{}: {message}", code.escape_ascii());
        }
    }
}

/// Not where it is called.
#[test]
fn a_name_is_refused_where_it_stands() {
    let bytes = file(&Py::Code(b"NNN000cos\nsystem\n(K\x01tR".to_vec()), &[]);
    let error = opened(bytes.clone()).unwrap_err();
    let at = usize::try_from(error.offset().unwrap()).unwrap();
    assert!(bytes[at..].starts_with(b"cos\nsystem"), "{at}");
}

/// Two keys, so that they are compared, of tuples within tuples.
#[test]
fn keys_are_looked_into_no_deeper_than_they_are_compared() {
    let key = [&b")"[..], &b"\x85".repeat(500_000)].concat();
    let code = [b"}", &key[..], b"K\x01s", &key, b"K\x02s"].concat();
    assert!(run(&code).is_err());
}
