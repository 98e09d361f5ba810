//! The machine, with globals that torch does not have.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use zt_pickle::{
    Collection, Global, Heap, Made, Makes, Node, Outline, OutlineError, Pickle, PickleError,
    PickleFault, Value, load,
};

/// The accepted globals. All but the collections are of the module `shapes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ours {
    Collection(Collection),
    /// A class whose objects may have a state.
    Point,
    /// A class of sequences.
    Path,
    /// A function that takes its argument without a tuple.
    Area,
    /// A value.
    Origin,
}

impl Global for Ours {
    fn makes(self) -> Makes {
        match self {
            Ours::Collection(collection) => Makes::Collection(collection),
            Ours::Origin => Makes::Nothing,
            _ => Makes::Object,
        }
    }

    fn is_class(self) -> bool {
        self != Ours::Area
    }

    fn has_state(self) -> bool {
        self == Ours::Point
    }

    fn is_sequence(self) -> bool {
        self == Ours::Path
    }

    fn takes_bare_argument(self) -> bool {
        self == Ours::Area
    }

    fn class_of(_heap: &Heap<'_, Self>, id: Value<Self>) -> Option<Value<Self>> {
        Some(id)
    }
}

fn find(module: &str, name: &str, _at: u32) -> Option<Ours> {
    Some(match (module, name) {
        ("collections", "OrderedDict") => Ours::Collection(Collection::OrderedDict),
        ("collections", "Counter") => Ours::Collection(Collection::Counter),
        ("collections", "defaultdict") => Ours::Collection(Collection::DefaultDict),
        ("collections", "deque") => Ours::Collection(Collection::Deque),
        ("builtins", "set") => Ours::Collection(Collection::Set),
        ("builtins", "frozenset") => Ours::Collection(Collection::FrozenSet),
        ("shapes", "Point") => Ours::Point,
        ("shapes", "Path") => Ours::Path,
        ("shapes", "area") => Ours::Area,
        ("shapes", "ORIGIN") => Ours::Origin,
        _ => return None,
    })
}

/// Reads instructions that leave one value, without their `STOP`. An outline of them is the same.
fn read(code: &[u8]) -> Result<String, PickleFault> {
    let code = [code, b"."].concat();
    let read = |loaded: Result<Pickle<'_, Ours>, PickleError>| match loaded {
        Ok(pickle) => Ok(show(&pickle.heap, pickle.root)),
        Err(error) => Err((error.at, error.fault)),
    };
    let of_outline = read(outline(&code, 1 << 20).unwrap().load(find));
    let value = read(load(&code, find));
    assert_eq!(value, of_outline, "{}", code.escape_ascii());
    value.map_err(|(_, fault)| fault)
}

fn outline(bytes: &[u8], limit: u64) -> Result<Outline, OutlineError> {
    let read_at = |offset: u64, buf: &mut [u8]| {
        let from = usize::try_from(offset).unwrap();
        buf.copy_from_slice(&bytes[from..][..buf.len()]);
        Ok(())
    };
    Outline::read(0..bytes.len() as u64, limit, &read_at)
}

/// A value in Python's words.
fn show(heap: &Heap<'_, Ours>, value: Value<Ours>) -> String {
    let items = |items: &[Value<Ours>]| {
        let items: Vec<String> = items.iter().map(|item| show(heap, *item)).collect();
        items.join(", ")
    };
    let Some(node) = heap.node(value) else {
        return match value {
            Value::None => "None".into(),
            Value::Bool(value) => format!("{value}"),
            Value::Int(value) => format!("{value}"),
            Value::Float(value) => format!("{value:?}"),
            other => format!("{other:?}"),
        };
    };
    match node {
        Node::Text(text) => format!("{text:?}"),
        Node::Halves(bytes) => format!("halves {}", bytes.escape_ascii()),
        Node::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Node::Elsewhere { offset, byte_len } => format!("{byte_len} bytes at {offset}"),
        Node::Long(bytes) => format!("long {}", bytes.escape_ascii()),
        Node::Tuple(values) => format!("({})", items(values)),
        Node::List(values) => format!("[{}]", items(values)),
        Node::Set(values) => format!("{{{}}}", items(values)),
        Node::FrozenSet(values) => format!("frozen {{{}}}", items(values)),
        Node::Dict(pairs) => {
            let pairs = pairs.iter();
            let pairs =
                pairs.map(|(key, value)| format!("{}: {}", show(heap, *key), show(heap, *value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Node::Made(Made { maker, arguments, state }) => {
            let state = state.map(|state| format!(" with {}", show(heap, state)));
            let arguments = show(heap, *arguments);
            format!("{maker:?}{arguments}{}", state.unwrap_or_default())
        }
        Node::StandIn(object) => {
            let (module, name) = heap.named(object.class).unwrap();
            let part = |word: &str, value: Option<Value<Ours>>| {
                let part = value.map(|value| format!(" {word} {}", show(heap, value)));
                part.unwrap_or_default()
            };
            let state = part("with", object.state);
            let (items, pairs) = (part("of", object.items), part("of", object.pairs));
            let arguments = show(heap, object.arguments);
            format!("<{module} {name}>{arguments}{state}{items}{pairs}")
        }
        Node::Named { .. } => {
            let (module, name) = heap.named(value).unwrap();
            format!("<{module} {name}>")
        }
        Node::Persistent(id) => format!("outside {}", show(heap, *id)),
        node => unreachable!("{node:?}"),
    }
}

/// `pickle.dumps({"a": [1, -70000, 2.5, None, True, (), ("x",)], "€": 1 << 70}, protocol)`.
const PROTOCOLS: [&[u8]; 6] = [
    b"(dp0\nVa\np1\n(lp2\nI1\naI-70000\naF2.5\naNaI01\na(ta(Vx\np3\ntp4\nasV\\u20ac\np5\n\
      L1180591620717411303424L\ns.",
    b"}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\x90\xee\xfe\xffG@\x04\x00\x00\x00\x00\x00\x00N\
      I01\n)(X\x01\x00\x00\x00xq\x03tq\x04eX\x03\x00\x00\x00\xe2\x82\xacq\x05\
      L1180591620717411303424L\nu.",
    b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\x90\xee\xfe\xffG@\x04\x00\x00\x00\x00\
      \x00\x00N\x88)X\x01\x00\x00\x00xq\x03\x85q\x04eX\x03\x00\x00\x00\xe2\x82\xacq\x05\
      \x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
    b"\x80\x03}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\x90\xee\xfe\xffG@\x04\x00\x00\x00\x00\
      \x00\x00N\x88)X\x01\x00\x00\x00xq\x03\x85q\x04eX\x03\x00\x00\x00\xe2\x82\xacq\x05\
      \x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
    b"\x80\x04\x957\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\x90\xee\xfe\xffG@\
      \x04\x00\x00\x00\x00\x00\x00N\x88)\x8c\x01x\x94\x85\x94e\x8c\x03\xe2\x82\xac\x94\
      \x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
    b"\x80\x05\x957\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\x90\xee\xfe\xffG@\
      \x04\x00\x00\x00\x00\x00\x00N\x88)\x8c\x01x\x94\x85\x94e\x8c\x03\xe2\x82\xac\x94\
      \x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
];

#[test]
fn reads_the_same_value_from_every_protocol() {
    for bytes in PROTOCOLS {
        let Pickle { heap, root, rest, .. } = load(bytes, find).unwrap();
        let long = r"long \x00\x00\x00\x00\x00\x00\x00\x00@";
        let expected = format!(r#"{{"a": [1, -70000, 2.5, None, true, (), ("x")], "€": {long}}}"#);
        assert_eq!(show(&heap, root), expected);
        assert!(rest.is_empty());
    }
}

#[test]
fn refuses_a_pickle_that_is_truncated_at_any_byte() {
    for bytes in PROTOCOLS {
        for len in 0..bytes.len() {
            let fault = load(&bytes[..len], find).unwrap_err().fault;
            assert!(matches!(fault, PickleFault::Truncated { .. }), "{len}: {fault}");
        }
    }
}

#[test]
fn reads_numbers_and_texts_of_every_instruction() {
    for (code, expected) in [
        (&b"S'a\\n\\r\\t\\\\\\'\\x41'\n"[..], r#""a\n\r\t\\'A""#),
        (b"S\"\\xff\"\n", r#"b"\xff""#),
        (b"Va\xE9\\u20ac\\U0001f600\\n\n", r#""aé€😀\\n""#),
        (b"V\\udc80\n", r"halves \xed\xb2\x80"),
        (b"X\x04\0\0\0a\xED\xB2\x80", r"halves a\xed\xb2\x80"),
        (b"U\x01\xFF", r#"b"\xff""#),
        (b"T\x01\0\0\0a", r#""a""#),
        (b"\x8c\x01a", r#""a""#),
        (b"\x8d\x01\0\0\0\0\0\0\0a", r#""a""#),
        (b"C\x01a", r#"b"a""#),
        (b"B\x01\0\0\0a", r#"b"a""#),
        (b"\x8e\x01\0\0\0\0\0\0\0a", r#"b"a""#),
        (b"\x96\x01\0\0\0\0\0\0\0a", r#"b"a""#),
        (b"I01\n", "true"),
        (b"I00\n", "false"),
        (b"I-5\n", "-5"),
        (b"L5L\n", "5"),
        (b"F-0.5\n", "-0.5"),
        (b"M\x01\x02", "513"),
        (b"J\xFF\xFF\xFF\xFF", "-1"),
        (b"\x8a\x00", "0"),
        (b"\x8a\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", "-1"),
        (b"\x8b\x01\0\0\0\x05", "5"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
}

#[test]
fn keeps_values_on_the_stack_and_in_memos() {
    for (code, expected) in [
        (&b"K\x01K\x020"[..], "1"),
        (b"K\x01(K\x02K\x031", "1"),
        (b"K\x01(0", "1"),
        (b"K\x0520", "5"),
        (b"K\x05p1\n0g1\n", "5"),
        (b"K\x05q\x010h\x01", "5"),
        (b"K\x05r\x01\0\0\0", "5"),
        (b"K\x05\x94K\x06\x94\x86h\x01\x86", "((5, 6), 6)"),
        (b"K\x05q\0K\x06q\0\x86h\0\x86", "((5, 6), 6)"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
}

#[test]
fn a_list_may_hold_itself() {
    let Pickle { heap, root, .. } = load(b"]q\0h\0a.", find).unwrap();
    assert_eq!(heap.sequence(root), Some(&[root][..]));
}

#[test]
fn lists_persistent_ids_in_their_order() {
    let Pickle { heap, root, .. } = load(b"(K\x01QVa\nQK\x02QK\x03t.", find).unwrap();
    assert_eq!(show(&heap, root), r#"(outside 1, outside "a", outside 2, 3)"#);
    let ids: Vec<String> = heap.persistent().map(|id| show(&heap, id)).collect();
    assert_eq!(ids, ["outside 1", "outside \"a\"", "outside 2"]);
}

#[test]
fn makes_collections_of_nothing_and_of_others() {
    for (code, expected) in [
        (&b"\x8f(K\x01\x90"[..], "{1}"),
        (b"(K\x01\x91", "frozen {1}"),
        (b"cbuiltins\nset\n)R", "{}"),
        (b"cbuiltins\nset\n((K\x01ltR", "{1}"),
        (b"cbuiltins\nset\n((K\x01ttR", "{1}"),
        (b"cbuiltins\nset\n((K\x01\x91tR", "{1}"),
        (b"cbuiltins\nset\n)\x81(K\x01\x90", "{1}"),
        (b"cbuiltins\nfrozenset\n)R", "frozen {}"),
        (b"cbuiltins\nfrozenset\n(\x8f(K\x01\x90tR", "frozen {1}"),
        (b"ccollections\nOrderedDict\n)RK\x01K\x02s", "{1: 2}"),
        (b"ccollections\nOrderedDict\n((lp0\n(K\x01K\x02tatR", "{1: 2}"),
        (b"ccollections\nOrderedDict\n((K\x01K\x02dtR", "{1: 2}"),
        (b"ccollections\nCounter\n((K\x01K\x02dtR", "{1: 2}"),
        (b"ccollections\ndefaultdict\n(cbuiltins\nset\ntRK\x01K\x02s", "{1: 2}"),
        (b"ccollections\ndeque\n)R(K\x01e", "[1]"),
        (b"ccollections\ndeque\n((K\x01lK\x05tR", "[1]"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
}

#[test]
fn a_duplicate_key_has_its_first_place_and_its_last_value() {
    for (code, expected) in [
        (&b"}(Va\nK\x01Vb\nK\x02Va\nK\x03u"[..], r#"{"a": 3, "b": 2}"#),
        (b"}(K\x01K\x01\x88K\x02G\x3F\xF0\0\0\0\0\0\0K\x03u", "{1: 3}"),
        (b"}(K\x01\x85K\x01K\x01\x85K\x02u", "{(1): 2}"),
        (b"}(ca\nb\nK\x01ca\nb\nK\x02u", "{<a b>: 2}"),
        // A bytes object is not a text, and NaN is not equal to itself.
        (b"}(Va\nK\x01C\x01aK\x02u", r#"{"a": 1, b"a": 2}"#),
        (b"}(FNaN\nK\x01FNaN\nK\x02u", "{NaN: 1, NaN: 2}"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
}

#[test]
fn records_calls_with_their_arguments_and_states() {
    for (code, expected) in [
        (&b"cshapes\nPoint\n(K\x01K\x02tR"[..], "Point(1, 2)"),
        (b"cshapes\nPoint\n)\x81}b", "Point() with {}"),
        (b"Vshapes\nVPoint\n\x93)R", "Point()"),
        (b"cshapes\narea\nK\x05R", "Area(5)"),
        (b"(K\x01K\x02ishapes\nPoint\n", "Point(1, 2)"),
        (b"(cshapes\nPoint\nK\x01K\x02o", "Point(1, 2)"),
        (b"cshapes\nORIGIN\n", "Global(Origin)"),
        // The attributes of a dict are dropped.
        (b"}}b", "{}"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
    let Pickle { heap, root, .. } = load(b"cshapes\nPath\n((K\x01ltR.", find).unwrap();
    assert_eq!(heap.sequence(root), Some(&[Value::Int(1)][..]));
}

#[test]
fn an_object_of_a_refused_global_is_a_stand_in() {
    for (code, expected) in [
        (&b"cos\nsystem\n\x85"[..], "(<os system>)"),
        (b"cos\nsystem\n(Vtrue\ntR", r#"<os system>("true")"#),
        (b"cos\nsystem\nVtrue\nR", r#"<os system>"true""#),
        (b"Vos\nVsystem\n\x93)\x81", "<os system>()"),
        (b"(Vtrue\nios\nsystem\n", r#"<os system>("true")"#),
        (b"(cos\nsystem\nVtrue\no", r#"<os system>("true")"#),
        (b"cm\nC\n)}Va\nK\x01s\x92", r#"<m C>((), {"a": 1})"#),
        (b"cm\nC\n)\x81K\x01b", "<m C>() with 1"),
        (b"cm\nC\n)\x81K\x01bK\x02b", "<m C>() with (1, 2)"),
        (b"cm\nC\n)\x81K\x01a(K\x02K\x03e", "<m C>() of [1, 2, 3]"),
        (b"cm\nC\n)\x81K\x01K\x02s(K\x03K\x04u", "<m C>() of {1: 2, 3: 4}"),
        (b"cm\nC\n)\x81(K\x01K\x02K\x01K\x03u", "<m C>() of {1: 3}"),
        // The result of a call is called.
        (b"cm\nf\nK\x01\x85RK\x02\x85R", "<m f>(<m f>(1), (2))"),
        // A persistent id may stand for a class.
        (b"cm\nC\nQ)R", "<m C>()"),
    ] {
        assert_eq!(read(code).unwrap(), expected, "{}", code.escape_ascii());
    }
    // It may be a key, and it may hold itself.
    assert!(read(b"}cm\nC\n)RNs").is_ok());
    let Pickle { heap, root, .. } = load(b"cm\nC\n)Rq\0h\0b.", find).unwrap();
    let Some(Node::StandIn(object)) = heap.node(root) else {
        panic!("a stand-in");
    };
    assert_eq!(object.state, Some(root));
}

#[test]
fn a_root_that_is_only_a_refused_name_is_refused_where_it_is_named() {
    let PickleError { at, fault, .. } = load(b"NN00cos\nsystem\n.", find).unwrap_err();
    let (module, name) = ("os".into(), "system".into());
    assert_eq!((at, fault), (4, PickleFault::Global { module, name }));
}

#[test]
fn finds_the_values_that_hold_a_value_at_any_depth() {
    // Every list holds bytes, but the last one.
    let code = b"(]C\x01aa]}N(C\x01atsa]\x8f(cm\nC\n)RC\x01ab\x90a]cm\nC\n)RC\x01aaa\
                 ](cshapes\nPoint\nC\x01a\x85R\x91a]q\0h\0a(C\x01ae]Naq\x01h\x01at.";
    let Pickle { heap, root, .. } = load(code, find).unwrap();
    let holders = heap.holders(|node| matches!(node, Node::Bytes(_))).unwrap();
    let lists = heap.tuple(root).unwrap();
    let held: Vec<bool> = lists.iter().map(|list| holders.has(*list)).collect();
    assert_eq!(held, [true, true, true, true, true, true, false]);
    assert!(holders.has(root) && !holders.has(Value::<Ours>::None));
}

#[test]
fn refuses_instructions_that_data_does_not_need() {
    for code in [&b"\x97"[..], b"\x98", b"P\n"] {
        let fault = PickleFault::Instruction { code: code[0] };
        assert_eq!(read(code), Err(fault));
    }
    let keywords = b"cshapes\nPoint\n)}\x92";
    assert_eq!(read(keywords), Err(PickleFault::Instruction { code: 0x92 }));
    assert_eq!(read(b"\x80\x06"), Err(PickleFault::Protocol { found: 6 }));
}

#[test]
fn refuses_instructions_without_their_values() {
    for code in [
        &b""[..],
        b"0",
        b"2",
        b"\x85",
        b"R",
        b"(\x93",
        b"(R",
        b"(K\x01\x86",
        b"K\x01b",
        b"q\0",
        b"(o",
    ] {
        assert_eq!(read(code), Err(PickleFault::StackEmpty), "{}", code.escape_ascii());
    }
    for code in [&b"1"[..], b"t", b"e", b"u", b"l", b"\x91", b"o", b"im\nC\n"] {
        assert_eq!(read(code), Err(PickleFault::NoMark), "{}", code.escape_ascii());
    }
    assert_eq!(read(b"h\x09"), Err(PickleFault::NoMemo { index: 9 }));
    assert_eq!(read(b"}(K\x01u"), Err(PickleFault::OddItems { count: 1 }));
}

#[test]
fn refuses_values_of_the_wrong_type() {
    for (code, expected) in [
        (&b"K\x01K\x02a"[..], "a list"),
        (b"K\x01(e", "a list"),
        (b"K\x01K\x02K\x03s", "a dict"),
        (b"K\x01(\x90", "a set"),
        (b"K\x01Nb", "an object with a state"),
        (b"cshapes\nPath\n)R}b", "an object with a state"),
        (b"K\x01K\x02\x93", "the name of a global"),
        (b"cshapes\nPoint\nK\x01R", "a tuple of arguments"),
        (b"cbuiltins\nset\n(K\x01tR", "a collection"),
        (b"ccollections\nCounter\n((K\x01ltR", "a collection"),
        (b"ccollections\nOrderedDict\n((K\x01ltR", "a key and a value"),
    ] {
        match read(code) {
            Err(PickleFault::Operand { expected: found, .. }) => assert_eq!(found, expected),
            other => panic!("{}: {other:?}", code.escape_ascii()),
        }
    }
    for code in [&b"}]K\x01s"[..], b"\x8f(]\x90", b"(]\x91", b"cbuiltins\nset\n((]ltR"] {
        let found = "a list";
        assert_eq!(read(code), Err(PickleFault::Unhashable { found }));
    }
    for (code, found) in [(&b"K\x01)R"[..], "an integer"), (b"cshapes\nORIGIN\n)R", "a value")] {
        assert_eq!(read(code), Err(PickleFault::Call { found }));
    }
    for (code, found) in [(&b"N)\x81"[..], "None"), (b"cshapes\narea\n)\x81", "a function")] {
        assert_eq!(read(code), Err(PickleFault::Class { found }));
    }
}

#[test]
fn refuses_invalid_numbers_and_texts() {
    for code in [
        &b"Sa\n"[..],
        b"S'\\q'\n",
        b"S'\\'\n",
        b"S'\\xg0'\n",
        b"V\\u12\n",
        b"T\xFF\xFF\xFF\xFF",
        b"\x8b\xFF\xFF\xFF\xFF",
        b"Ix\n",
        b"Fx\n",
        b"gx\n",
    ] {
        assert_eq!(read(code), Err(PickleFault::Number), "{}", code.escape_ascii());
    }
    for code in [&b"X\x01\0\0\0\xFF"[..], b"V\\U00110000\n", b"X\x04\0\0\0a\xED\xA0b", b"I\xFF\n"] {
        assert_eq!(read(code), Err(PickleFault::NotUtf8), "{}", code.escape_ascii());
    }
}

#[test]
fn a_short_pickle_takes_little_memory() {
    // A list of 200 numbers is copied into 100 sets, and a dict into 100 others.
    let copies = |maker: &str, end: &[u8]| {
        let items = [b"(", &b"K\x01".repeat(200)[..], end, b"q\x020"].concat();
        let copies = b"h\x01h\x02\x85R0".repeat(100);
        [format!("c{maker}\nq\x010").as_bytes(), &items, &copies, b"N"].concat()
    };
    // One long text is the key of many dicts.
    let keys = b"}(h\x01NVb\nNu0".repeat(200);
    let keys = [b"X\0\x01\0\0", &[b'a'; 256][..], b"q\x01", &keys].concat();
    let long =
        [b"X\0\0\x01\0", &[b'a'; 1 << 16][..], b"q\x01", &b"}(h\x01NVb\nNu0".repeat(2000)].concat();
    assert!(read(&keys).is_ok());
    for code in [
        copies("builtins\nset", b"l"),
        copies("collections\nCounter", b"d"),
        long,
        b"K\x01r\xFF\xFF\xFF\x7F".to_vec(),
    ] {
        assert!(matches!(read(&code), Err(PickleFault::Limit { .. })));
    }
    for code in [&b"X\xFF\xFF\xFF\xFF"[..], b"\x95\xFF\0\0\0\0\0\0\0"] {
        assert!(matches!(read(code), Err(PickleFault::Truncated { .. })));
    }
}

#[test]
fn compares_keys_only_to_a_limited_depth() {
    let key = [&b")"[..], &b"\x85".repeat(500_000)].concat();
    let code = [b"}", &key[..], b"K\x01s", &key, b"K\x02s."].concat();
    let Pickle { heap, root, .. } = load(&code, find).unwrap();
    assert!(matches!(heap.node(root), Some(Node::Dict(pairs)) if pairs.len() == 2));
}

#[test]
fn another_pickle_may_follow() {
    let bytes = b"\x80\x02K\x01.\x80\x02K\x02.";
    let first = load(bytes, find).unwrap();
    let second = load(first.rest, find).unwrap();
    assert_eq!((first.root, second.root), (Value::Int(1), Value::Int(2)));
}

#[test]
fn a_list_of_globals_may_be_made_at_run_time() {
    let accepted = [("my".to_owned(), "Point".to_owned(), Ours::Point)];
    let find = |module: &str, name: &str, _at: u32| {
        let mut rows = accepted.iter();
        let row = rows.find(|row| (row.0.as_str(), row.1.as_str()) == (module, name));
        row.map(|row| row.2)
    };
    assert!(load(b"cmy\nPoint\n)R.", find).is_ok());
    let other = load(b"cshapes\nPoint\n)R.", find).unwrap();
    assert!(matches!(other.heap.node(other.root), Some(Node::StandIn(_))));
}

#[test]
fn describes_the_type_of_every_value() {
    for (code, expected) in [
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
        (b"cshapes\nORIGIN\n", "a global"),
        (b"cshapes\nPoint\n)R", "an object"),
        (b"cm\nC\n)R", "an object of an unsupported class"),
        (b"K\x01Q", "an object outside the pickle"),
    ] {
        let code = [code, b"."].concat();
        let Pickle { heap, root, .. } = load(&code, find).unwrap();
        assert_eq!(heap.describe(root), expected, "{}", code.escape_ascii());
    }
}

#[test]
fn an_outline_leaves_long_byte_strings_where_they_are() {
    let long = |code: &[u8], len: usize, byte: u8| {
        let len_bytes = (len as u64).to_le_bytes();
        let len_bytes = &len_bytes[..if code[0] < 0x80 { 4 } else { 8 }];
        [code, len_bytes, &vec![byte; len]].concat()
    };
    // Each of them ends in another window.
    let items = [
        long(b"B", 1 << 10, 0xFF),
        long(b"\x8e", (1 << 10) - 1, b'.'),
        long(b"\x8e", 100_000, b'.'),
        long(b"T", 70_000, b'q'),
        long(b"\x96", 3 << 20, b'.'),
        long(b"B", 1 << 10, b'.'),
        long(b"X", 2 << 10, b'x'),
    ];
    let mut code = b"\x80\x05(".to_vec();
    let mut expected = Vec::new();
    for item in &items {
        expected.push((code.len() as u64, item.len() as u64));
        code.extend(item);
    }
    code.extend(b"t.tail");
    let outline = outline(&code, 8 << 10).unwrap();
    assert_eq!(outline.byte_len(), code.len() as u64 - 4);
    let pickle = outline.load(find).unwrap();
    let found = pickle.heap.tuple(pickle.root).unwrap().iter();
    let found: Vec<_> = found
        .map(|item| match pickle.heap.node(*item).unwrap() {
            Node::Elsewhere { offset, byte_len } => (*offset, *byte_len),
            Node::Bytes(bytes) => (0, bytes.len() as u64),
            Node::Text(text) => (1, text.len() as u64),
            other => panic!("{other:?}"),
        })
        .collect();
    let at = |item: usize, operand: u64| {
        let (start, len) = expected[item];
        (start + 1 + operand, len - 1 - operand)
    };
    let short = ((1 << 10) - 1, 2 << 10);
    let wanted = [at(0, 4), (0, short.0), at(2, 8), at(3, 4), at(4, 8), at(5, 4), (1, short.1)];
    assert_eq!(found, wanted);
}

#[test]
fn an_outline_has_a_limit_and_its_faults_have_the_positions_of_the_pickle() {
    let long = [&b"\x8e\0\x10\0\0\0\0\0\0"[..], &[0; 4096]].concat();
    let text = [&b"X\0\x10\0\0"[..], &[b'x'; 4096], b"."].concat();
    assert!(outline(&text, 4102).is_ok());
    let error = outline(&text, 4101).unwrap_err();
    assert!(matches!(error, OutlineError::TooLong { limit: 4101 }));
    let refused = |code: &[u8]| {
        let error = outline(code, 64).unwrap().load(find).unwrap_err();
        (usize::try_from(error.at).unwrap(), error.fault)
    };
    let at = long.len();
    let memo = |limit| PickleFault::Limit { what: "memos (one for each byte before)", limit };
    // A memo takes memory, and the bytes that are left out do not pay for it.
    let far = [&long[..], b"r\0\x01\0\0."].concat();
    assert_eq!(refused(&far), (at, memo(14)));
    let named = [&long[..], b"0cos\nsystem\n."].concat();
    let (name_at, fault) = refused(&named);
    assert_eq!(name_at, at + 1);
    assert!(matches!(fault, PickleFault::Global { .. }));
    // The string, an instruction behind it, and its frame are truncated.
    let truncated = |needed, available| PickleFault::Truncated { needed, available };
    assert_eq!(refused(&long[..at - 1]), (0, truncated(4096, 4095)));
    let cut = [&long[..], b"J\x01"].concat();
    assert_eq!(refused(&cut), (at, truncated(4, 1)));
    let frame = |len: u64| [&b"\x95"[..], &len.to_le_bytes(), &long, b"."].concat();
    let len = at as u64 + 1;
    assert!(outline(&frame(len), 64).unwrap().load(find).is_ok());
    assert_eq!(refused(&frame(len + 1)), (0, truncated(len + 1, len)));
}
