//! Attributes.

use zt::{DType, Value};

use crate::draft::{
    ATTRIBUTE, ATTRIBUTE_INFO, Draft, LINK_INFO, Message, SHARED, UNDEFINED, beside, bytes, code,
    dataspace, datatype, float, int, message,
};

/// An attribute message of version 3, called `a`.
fn attribute(datatype: &[u8], shape: &[u64], value: &[u8]) -> Vec<u8> {
    named(b"a", datatype, shape, value)
}

fn named(name: &[u8], datatype: &[u8], shape: &[u64], value: &[u8]) -> Vec<u8> {
    let name = [name, b"\0"].concat();
    let space = dataspace(shape);
    let len = |part: &[u8]| u16::try_from(part.len()).unwrap();
    let head = bytes!(3u8, 0u8, len(&name), len(datatype), len(&space), 0u8);
    [&*head, &name, datatype, &space, value].concat()
}

/// The value of a dataset's attribute, or the code of the warning about it.
fn value(attribute: Message) -> Result<Value, &'static str> {
    value_of(&|_| attribute.clone())
}

fn value_of(attribute: &dyn Fn(&mut Draft) -> Message) -> Result<Value, &'static str> {
    let file = beside(|draft| {
        let mut messages = draft.dataset(int(4, 8), &[1], &[0; 4]);
        messages.push(attribute(draft));
        messages
    });
    let tensor = file.tensor("x").unwrap();
    match tensor.attributes().get("a") {
        Some(value) => Ok(value.clone()),
        None => {
            let warnings = file.warnings();
            assert_eq!(warnings[0].object.as_deref(), Some("x"));
            Err(warnings[0].code)
        }
    }
}

#[test]
fn numbers_and_strings_of_every_kind_are_values() {
    let array = [bytes!(2u8), bytes!(2u32, 2u32), int(1, 8)].concat();
    let array = datatype(3, 10, 0, 4, &array);
    let half =
        datatype(1, 1, 15 << 8 | 2 << 4, 2, &bytes!(0u16, 16u16, 10u8, 5u8, 0u8, 10u8, 15u32));
    let bf16 =
        datatype(1, 1, 15 << 8 | 2 << 4, 2, &bytes!(0u16, 16u16, 7u8, 8u8, 0u8, 7u8, 127u32));
    let pair = datatype(5, 11, 0, 8, &float(4));
    let short = |exponent: u8, mantissa: u8, bias: u32| {
        let parts = bytes!(0u16, 8u16, mantissa, exponent, 0u8, mantissa, bias);
        datatype(1, 1, 7 << 8 | 2 << 4, 1, &parts)
    };
    let (e5m2, e4m3) = (short(5, 2, 15), short(4, 3, 7));
    let text = datatype(1, 3, 0, 2, &[]);
    let shorts = [bytes!(1u8, 2u32), int(2, 8)].concat();
    let shorts = datatype(3, 10, 0, 4, &shorts);
    let pairs = [bytes!(1u8, 2u32), pair.clone()].concat();
    let pairs = datatype(3, 10, 0, 16, &pairs);
    let list = |values: &[Value]| Value::array(values.to_vec());
    let row = |values: [i64; 2]| list(&values.map(Value::from));
    let floats =
        |values: &[f64]| list(&values.iter().copied().map(Value::Float).collect::<Vec<_>>());
    for (datatype, shape, bytes, expected) in [
        (&array, &[][..], bytes!(1i8, -2i8, 3i8, 4i8), list(&[row([1, -2]), row([3, 4])])),
        (
            &half,
            &[6],
            bytes!(0x3C00u16, 0xC000u16, 0x0001u16, 0x7C00u16, 0xFC00u16, 0x8000u16),
            floats(&[1.0, -2.0, 2f64.powi(-24), f64::INFINITY, f64::NEG_INFINITY, -0.0]),
        ),
        (&bf16, &[], bytes!(0x3FC0u16), Value::Float(1.5)),
        (
            &e5m2,
            &[4],
            vec![0x3E, 0xC0, 0x01, 0x7C],
            floats(&[1.5, -2.0, 2f64.powi(-16), f64::INFINITY]),
        ),
        (
            &e4m3,
            &[5],
            vec![0x3C, 0xC0, 0x01, 0x7E, 0x80],
            floats(&[1.5, -2.0, 2f64.powi(-9), 448.0, -0.0]),
        ),
        (&pair, &[], bytes!(1f32, -2f32), floats(&[1.0, -2.0])),
        (&shorts, &[], bytes!(1i16, -2i16), row([1, -2])),
        (
            &pairs,
            &[],
            bytes!(1f32, -2f32, 3f32, 4f32),
            list(&[floats(&[1.0, -2.0]), floats(&[3.0, 4.0])]),
        ),
        (&int(2, 8), &[2], bytes!(1i16, -2i16), row([1, -2])),
        (&int(4, 8), &[2], bytes!(1i32, -2i32), row([1, -2])),
        (&int(8, 8), &[2], bytes!(1i64, -2i64), row([1, -2])),
        // Big-endian.
        (&int(2, 9), &[2], vec![0, 1, 0xFF, 0xFE], row([1, -2])),
        (&text, &[2], b"ab\xFF\0".to_vec(), list(&["ab".into(), Value::Bytes(vec![0xFF])])),
        (&text, &[2, 0], Vec::new(), list(&[list(&[]), list(&[])])),
    ] {
        let found = value(message(ATTRIBUTE, attribute(datatype, shape, &bytes)));
        assert_eq!(found, Ok(expected));
    }
    for (datatype, bytes) in [(&half, &[0x01, 0x7C][..]), (&e5m2, &[0x7D]), (&e4m3, &[0xFF])] {
        let nan = value(message(ATTRIBUTE, attribute(datatype, &[], bytes)));
        assert!(matches!(nan, Ok(Value::Float(value)) if value.is_nan()));
    }
}

/// A zero ends a string only if the datatype declares it.
#[test]
fn strings_end_before_their_padding() {
    const TERMINATED: u32 = 0;
    const ZEROS: u32 = 1;
    const SPACES: u32 = 2;
    for (padding, stored, expected) in [
        (TERMINATED, b"a\0b\0", "a".into()),
        (ZEROS, b"a\0b\0", "a\0b".into()),
        (ZEROS, b"\0\0\0\0", "".into()),
        (ZEROS, b"a b ", "a b ".into()),
        (SPACES, b"a b ", "a b".into()),
        (SPACES, b"a b\0", "a b\0".into()),
        (TERMINATED, b"\xFF\0b\0", Value::Bytes(b"\xFF".to_vec())),
        (ZEROS, b"\xFF\0b\0", Value::Bytes(b"\xFF\0b".to_vec())),
        (SPACES, b"\xFF b ", Value::Bytes(b"\xFF b".to_vec())),
    ] {
        let text = datatype(1, 3, padding, 4, &[]);
        let found = value(message(ATTRIBUTE, attribute(&text, &[], stored)));
        assert_eq!(found, Ok(expected), "{padding}, {stored:?}");
    }
    let text = datatype(1, 3, 3, 4, &[]);
    let found = value(message(ATTRIBUTE, attribute(&text, &[], b"abcd")));
    assert_eq!(found, Err("attribute"));
}

/// Strings of variable length are in a heap, which may be missing or not have the string.
#[test]
fn long_strings_are_found_in_their_heap() {
    let text = datatype(1, 9, 1, 16, &int(1, 0));
    let found = |version: u8, address: Option<u64>, len: u32, index: u32| {
        let file = beside(|draft| {
            let objects = [bytes!(1u16, 1u16, 0u32, 3u64), b"abc\0\0\0\0\0".to_vec()].concat();
            let free = bytes!(0u16, 0u16, 0u32, 16u64);
            let len_of_all = 16 + objects.len() as u64 + free.len() as u64;
            let head = [b"GCOL".to_vec(), bytes!(version, 0u8, 0u16, len_of_all)].concat();
            let heap = draft.put([head, objects, free].concat());
            let reference = bytes!(len, address.unwrap_or(heap), index);
            let mut messages = draft.dataset(int(4, 8), &[1], &[0; 4]);
            messages.push(message(ATTRIBUTE, attribute(&text, &[], &reference)));
            messages
        });
        let attributes = file.tensor("x").unwrap().attributes().clone();
        let value = attributes.get("a").cloned();
        value.ok_or_else(|| file.warnings()[0].code)
    };
    assert_eq!(found(1, None, 3, 1), Ok("abc".into()));
    assert_eq!(found(1, None, 2, 1), Ok("ab".into()));
    // An empty string needs no heap.
    assert_eq!(found(1, None, 0, 9), Ok("".into()));
    assert_eq!(found(1, Some(0), 3, 1), Ok("".into()));
    assert_eq!(found(1, Some(UNDEFINED), 3, 1), Ok("".into()));
    for (version, address, len, index) in [
        (2, None, 3, 1),
        (1, None, 4, 1),
        (1, None, 3, 2),
        (1, None, 3, 1 << 16),
        (1, Some(8), 3, 1),
        (1, Some(1 << 40), 3, 1),
    ] {
        assert_eq!(found(version, address, len, index), Err("attribute"));
    }
}

#[test]
fn an_attribute_without_a_value_is_a_warning_and_hides_nothing() {
    let sound = attribute(&int(4, 8), &[], &bytes!(1i32));
    let with = |at: usize, byte: u8| {
        let mut body = sound.clone();
        body[at] = byte;
        message(ATTRIBUTE, body)
    };
    assert_eq!(value(with(0, 3)), Ok(Value::Unsigned(1)));
    let in_table = Message { flags: SHARED, ..with(0, 3) };
    for message in [
        with(0, 4),
        // The datatype or the dataspace is shared.
        with(1, 1),
        with(1, 2),
        in_table,
        message(ATTRIBUTE, attribute(&int(4, 8), &[8], &bytes!(1i32))),
        message(ATTRIBUTE, attribute(&datatype(1, 5, 0, 4, &[]), &[], &[0; 4])),
        // Many lists without bytes in the file.
        message(ATTRIBUTE, attribute(&int(4, 8), &[1 << 16, 0], &[])),
        message(ATTRIBUTE, attribute(&int(4, 8), &[1 << 40, 1 << 40, 0], &[])),
        message(ATTRIBUTE_INFO, bytes!(1u8, 0u8, UNDEFINED, UNDEFINED)),
    ] {
        assert_eq!(value(message), Err("attribute"));
    }
}

/// A byte of their header is unused, and their parts are padded.
#[test]
fn attributes_of_version_1_have_no_flags() {
    let head = bytes!(1u8, 3u8, 2u16, 12u16, 8u16);
    let parts = [b"a\0\0\0\0\0\0\0".to_vec(), int(4, 8), vec![0; 4]];
    let body = [head, parts.concat(), dataspace(&[]), bytes!(-3i32)];
    let found = value(message(ATTRIBUTE, body.concat()));
    assert_eq!(found, Ok(Value::from(-3i64)));
}

/// Keras declares two opaque bytes as bf16 in an attribute, which may have other values.
#[test]
fn an_attribute_declares_two_opaque_bytes_as_bf16() {
    let found = |name: &[u8], value: &[u8]| {
        beside(|draft| {
            let opaque = datatype(1, 5, 0, 2, &[]);
            let text = datatype(1, 3, 0, value.len() as u32, &[]);
            let mut messages = draft.dataset(opaque, &[1], &bytes!(0x3FC0u16));
            let body = named(name, &text, &[], value);
            messages.push(message(ATTRIBUTE, body));
            messages
        })
    };
    let file = found(b"dtype", b"bfloat16");
    let data = file.tensor("x").unwrap();
    assert_eq!(data.component("data").unwrap().dtype, Some(DType::BF16));
    for (name, value) in [(&b"dtype"[..], &b"float16"[..]), (b"a", b"bfloat16")] {
        assert_eq!(code(&found(name, value), "x"), "dtype");
    }
}

/// Such names are escaped. The first of many get a warning each.
#[test]
fn names_that_are_not_utf_8_get_a_warning() {
    let file = beside(|draft| {
        let mut messages = draft.dataset(int(4, 8), &[1], &[0; 4]);
        for byte in 0x80..0x8A {
            let body = named(&[byte], &int(4, 8), &[], &bytes!(1i32));
            messages.push(message(ATTRIBUTE, body));
        }
        messages
    });
    assert_eq!(file.tensor("x").unwrap().attributes().len(), 10);
    let found = file.warnings();
    assert!(found.iter().all(|it| it.code == "name"), "{found:?}");
    assert_eq!(found.len(), 9);
    assert!(found[0].message.contains("\"\\x80\""), "{found:?}");
    assert!(found[8].message.starts_with("2 more "), "{found:?}");
}

#[test]
fn eight_warnings_need_no_count_of_the_rest() {
    let file = beside(|draft| {
        let mut messages = draft.dataset(int(4, 8), &[1], &[0; 4]);
        messages.extend(vec![message(ATTRIBUTE, []); 8]);
        messages
    });
    assert_eq!(file.warnings().len(), 8);
}

/// A few bytes can have any number of them.
#[test]
fn only_the_first_of_many_warnings_are_listed() {
    let file = beside(|draft| {
        let mut messages = draft.dataset(int(4, 8), &[1], &[0; 4]);
        let sound = attribute(&int(4, 8), &[], &bytes!(1i32));
        let other = attribute(&int(4, 8), &[], &bytes!(2i32));
        messages.extend(vec![message(ATTRIBUTE, []); 30]);
        messages.push(message(ATTRIBUTE, sound));
        messages.extend(vec![message(ATTRIBUTE, other); 30]);
        messages
    });
    let attributes = file.tensor("x").unwrap().attributes().clone();
    assert_eq!(attributes.get("a"), Some(&Value::Unsigned(1)));
    for code in ["attribute", "attribute-conflict"] {
        let warnings = file.warnings().into_iter();
        let found: Vec<_> = warnings.filter(|warning| warning.code == code).collect();
        assert_eq!(found.len(), 9, "{code}");
        assert!(found[8].message.starts_with("22 more "), "{:?}", found[8]);
        assert!(found.iter().all(|it| it.object.as_deref() == Some("x")));
    }
}

#[test]
fn a_count_of_warnings_names_the_group() {
    let file = beside(|_| {
        let links = [bytes!(0u16), bytes!(UNDEFINED, UNDEFINED)].concat();
        let mut messages = vec![message(LINK_INFO, links)];
        messages.extend(vec![message(ATTRIBUTE, []); 9]);
        messages
    });
    let found = file.warnings();
    assert_eq!(found.len(), 9);
    let rest = &found[8].message;
    assert!(rest.starts_with("1 more ") && rest.contains("\"x\""), "{rest}");
}

/// Many attributes are in the object's own heap, or in the file's heap of shared messages.
#[test]
fn shared_attributes_of_a_heap_are_in_another_heap() {
    const BY_NAME: u8 = 8;
    let found = |flags: u8| {
        let sound = attribute(&int(4, 8), &[], &bytes!(1i32));
        let len = u16::try_from(sound.len()).unwrap();
        value_of(&|draft| {
            let mut block = [vec![0; 16], sound.clone()].concat();
            block.resize(512, 0);
            let root = draft.put(block);
            let head = bytes!(0u8, 8u16, 0u16, 0u8, 4096u32, 0u64, UNDEFINED);
            let statistics = [bytes!(0u64, UNDEFINED), vec![0; 8 * 8]].concat();
            let table = bytes!(4u16, 512u64, 1024u64, 32u16, 1u16, root, 0u16);
            let heap = draft.put_checked(&[b"FRHP", &head, &statistics, &table]);
            let record = bytes!(0u8, 16u32, len, 0u8, flags, 0u32, 0u32);
            let names = draft.tree2(BY_NAME, &[record]);
            message(ATTRIBUTE_INFO, bytes!(0u8, 0u8, heap, names))
        })
    };
    assert_eq!(found(0), Ok(Value::Unsigned(1)));
    assert_eq!(found(SHARED), Err("attribute"));
}

/// Every dimension is a list around each value, which needs no byte in the file.
#[test]
fn the_lists_of_values_are_limited_by_the_length_of_the_file() {
    let byte = int(1, 8);
    let array_of = |len: u32, rank: u8, base: &[u8]| {
        let dimensions = bytes!(1u32).repeat(rank.into());
        datatype(3, 10, 0, len, &[&[rank][..], &dimensions, base].concat())
    };
    let array = |rank: u8, base: &[u8]| array_of(1, rank, base);
    let ones = |rank: usize| vec![1; rank];
    let found = |datatype: &[u8], shape: &[u64], values: &[u8]| {
        value(message(ATTRIBUTE, attribute(datatype, shape, values)))
    };
    let deep = (0..60).fold(Value::Unsigned(7), |value, _| Value::array(vec![value]));
    assert_eq!(found(&array(32, &byte), &ones(28), &[7]), Ok(deep.clone()));
    let arrays = array(28, &array(32, &byte));
    assert_eq!(found(&arrays, &[], &[7]), Ok(deep));
    let many = |count: u64| [&[count][..], &ones(31)].concat();
    let wide = found(&byte, &many(100), &[7; 100]).unwrap();
    assert_eq!(wide.as_array().map(<[Value]>::len), Some(100));
    let pair = datatype(5, 11, 0, 8, &float(4));
    for (datatype, shape, values) in [
        // HDF5 allows this depth, but a manifest does not.
        (&array(32, &byte), ones(29), vec![7]),
        (&array_of(8, 32, &pair), ones(28), vec![0; 8]),
        (&array(32, &array(32, &array(1, &byte))), ones(0), vec![7]),
        // More dimensions than HDF5 allows.
        (&array(33, &byte), ones(0), vec![7]),
        (&byte, many(30_000), vec![7; 30_000]),
        (&byte, [&many(4096)[..31], &[0]].concat(), vec![]),
        (&byte, [&ones(30)[..], &[8192, 0]].concat(), vec![]),
    ] {
        let found = found(datatype, &shape, &values);
        assert_eq!(found, Err("attribute"), "{shape:?}");
    }
}
