//! The datatypes of datasets.

use zt::{ByteOrder, DType, File, Memory, VerifyOptions};
use zt_foreign::{InputOptions, MlDtype};

use crate::draft::{beside, bytes, bytes_beside, code, datatype, float, int, opened_with};

/// A file with `x`, one element of that type with zeros.
fn of(datatype: Vec<u8>) -> File {
    beside(|draft| draft.dataset(datatype, &[1], &[0; 64]))
}

const STRING: u8 = 3;
const OPAQUE: u8 = 5;
const RECORD: u8 = 6;
const ENUM: u8 = 8;
const ARRAY: u8 = 10;
const COMPLEX: u8 = 11;

fn string() -> Vec<u8> {
    datatype(1, STRING, 0, 4, &[])
}

/// A field of a record of version 3 with less than 256 bytes.
fn member(name: &str, at: u8, datatype: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0, at], datatype].concat()
}

fn pair(len: u32, first: (&str, u8, &[u8]), second: (&str, u8, &[u8])) -> Vec<u8> {
    let member = |(name, at, datatype)| member(name, at, datatype);
    let members = [member(first), member(second)].concat();
    datatype(3, RECORD, 2, len, &members)
}

/// Names for values of one byte each.
fn names(base: &[u8], names: &[(&str, u8)]) -> Vec<u8> {
    let texts: String = names.iter().map(|(name, _)| format!("{name}\0")).collect();
    let values: Vec<u8> = names.iter().map(|(_, value)| *value).collect();
    let count = u32::try_from(names.len()).unwrap();
    let properties = [base, texts.as_bytes(), &values].concat();
    datatype(3, ENUM, count, base[4].into(), &properties)
}

fn array(version: u8, len: u32, dimensions: &[u32], base: &[u8]) -> Vec<u8> {
    let rank = u8::try_from(dimensions.len()).unwrap();
    let dimensions: Vec<u8> = dimensions.iter().flat_map(|it| it.to_le_bytes()).collect();
    let properties = match version {
        // With padding, and permutations that are never used.
        2 => [&[rank, 0, 0, 0], &*dimensions, &dimensions, base].concat(),
        _ => [&[rank], &*dimensions, base].concat(),
    };
    datatype(version, ARRAY, 0, len, &properties)
}

#[test]
fn numbers_are_read() {
    let f64_pair = {
        // Version 1 pads names to 8 bytes, and has unused dimensions.
        let member = |name: &str, at: u32| {
            [format!("{name}\0\0\0\0\0\0\0").into_bytes(), bytes!(at, 0u32, 0u64, 0u128), float(8)]
                .concat()
        };
        let members = [member("r", 0), member("i", 8)].concat();
        datatype(1, RECORD, 2, 16, &members)
    };
    let nested = array(3, 16, &[2], &array(3, 8, &[2, 2], &int(2, 0)));
    for (datatype, dtype, logical_type, shape) in [
        (datatype(1, 4, 0, 1, &bytes!(0u16, 8u16)), DType::U8, None, &[1][..]),
        (datatype(1, 4, 8, 2, &bytes!(0u16, 16u16)), DType::U16, None, &[1]),
        // A byte has no byte order.
        (int(1, 9), DType::I8, None, &[1]),
        (f64_pair, DType::F64, Some("complex128"), &[1]),
        (datatype(5, COMPLEX, 0, 8, &float(4)), DType::F32, Some("complex64"), &[1]),
        (datatype(5, COMPLEX, 0, 16, &float(8)), DType::F64, Some("complex128"), &[1]),
        (array(2, 8, &[2, 2], &int(2, 0)), DType::U16, None, &[1, 2, 2]),
        (nested, DType::U16, None, &[1, 2, 2, 2]),
        (names(&int(1, 0), &[("FALSE", 0), ("TRUE", 1)]), DType::Bool, None, &[1]),
        (names(&int(1, 8), &[("TRUE", 1), ("FALSE", 0)]), DType::Bool, None, &[1]),
        (names(&int(1, 0), &[("TRUE", 0), ("FALSE", 1)]), DType::U8, None, &[1]),
        (names(&int(1, 0), &[("FALSE", 1), ("TRUE", 1)]), DType::U8, None, &[1]),
        (names(&int(1, 0), &[("FALSE", 0), ("TRUE", 2)]), DType::U8, None, &[1]),
        (names(&int(1, 0), &[("FALSE", 0)]), DType::U8, None, &[1]),
    ] {
        let file = of(datatype);
        let tensor = file.tensor("x").unwrap();
        let data = tensor.component("data").unwrap();
        assert_eq!((data.dtype, data.logical_type.as_deref()), (Some(dtype), logical_type));
        assert_eq!(data.byte_order, ByteOrder::Little);
        assert_eq!(tensor.shape(), shape);
        let elements: u64 = shape.iter().product();
        let halves = if logical_type.is_some() { 2 } else { 1 };
        let expected = elements * dtype.byte_len() as u64 * halves;
        assert_eq!(tensor.bytes("data").unwrap().len() as u64, expected);
    }
}

#[test]
fn numbers_may_be_big_endian() {
    let mut big = float(4);
    big[1] |= 1;
    let values = [1.5f32, -2.0].map(f32::to_be_bytes).concat();
    let file = beside(|draft| draft.dataset(big, &[2], &values));
    let tensor = file.tensor("x").unwrap();
    let data = tensor.component("data").unwrap();
    assert_eq!(data.byte_order, ByteOrder::Big);
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.5, -2.0]);
}

/// The dimensions of nested arrays count together.
#[test]
fn an_element_has_64_dimensions_at_most() {
    let of = |outer: usize| {
        let inner = array(3, 1, &[1; 32], &int(1, 0));
        let all = array(3, 1, &vec![1; outer], &array(3, 1, &[1; 31], &inner));
        beside(|draft| draft.dataset(all, &[], &[7]))
    };
    let file = of(1);
    assert_eq!(file.tensor("x").unwrap().shape(), [1; 64]);
    assert_eq!(code(&of(2), "x"), "structure-limit");
}

/// A listing shows their type, and the error that an option opens them as bf16.
#[test]
fn two_opaque_bytes_are_listed_with_a_fault() {
    let file = of(datatype(1, OPAQUE, 0, 2, &[]));
    let entries = file.entries();
    let entry = entries.iter().find(|entry| entry.name() == "x").unwrap();
    let raw = entry.raw().unwrap();
    assert_eq!(raw.shape.as_deref(), Some(&[1][..]));
    assert_eq!(raw.format.as_deref(), Some("dense"));
    let dtypes = raw.components.iter().map(|(_, part)| part.dtype.as_deref());
    let words = "two opaque bytes; --ml-dtype bfloat16 reads them as bf16";
    assert_eq!(dtypes.collect::<Vec<_>>(), [Some(words)]);
    assert_eq!(code(&file, "x"), "dtype");
}

/// A null dataspace: version 2, rank 0.
const NULL: [u8; 4] = [2, 0, 0, 2];

#[test]
fn elements_that_are_not_numbers_are_left_out_of_a_sound_file() {
    let f32s = [("r", 0, &*float(4)), ("i", 4, &float(4))];
    let mut records = vec![datatype(3, RECORD, 3, 12, &[])];
    for (at, change) in [
        (0, ("x", 0, &*float(4))),
        (0, ("r", 1, &float(4))),
        (1, ("x", 4, &float(4))),
        (1, ("i", 5, &float(4))),
        (1, ("i", 4, &int(4, 8))),
    ] {
        let mut parts = f32s;
        parts[at] = change;
        records.push(pair(8, parts[0], parts[1]));
    }
    records.push(pair(16, ("r", 0, &float(4)), ("i", 8, &float(4))));
    records.push(pair(8, ("r", 0, &int(4, 8)), ("i", 4, &int(4, 8))));
    records.push(pair(8, ("r", 0, &string()), ("i", 4, &string())));
    // A sequence of variable length has the type of its items.
    let sequence = datatype(1, 9, 0, 16, &int(4, 8));
    records.push(pair(20, ("r", 0, &sequence), ("i", 16, &int(4, 8))));
    let null = beside(|draft| {
        let mut x = draft.dataset(int(4, 8), &[1], &[0; 4]);
        x[0].body = NULL.to_vec();
        x
    });
    let others = [
        string(),
        names(&string(), &[("a", 0)]),
        array(3, 8, &[2], &string()),
        datatype(1, 2, 0, 4, &bytes!(32u16)),
        datatype(1, 7, 0, 8, &[]),
        datatype(1, OPAQUE, 0, 3, &[]),
    ];
    let files = records.into_iter().chain(others).map(of);
    for file in files.chain([null]) {
        assert_eq!(file.names().collect::<Vec<_>>(), ["w"]);
        let warnings = file.warnings();
        let found: Vec<_> = warnings.iter().map(|it| (it.code, it.object.as_deref())).collect();
        assert_eq!(found, [("not-tensor", Some("x"))]);
        assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
    }
}

/// h5py writes the types of ml_dtypes as opaque bytes. A type below a byte takes a byte a value.
#[test]
fn opaque_bytes_are_of_the_type_of_ml_dtypes_that_the_user_names() {
    let opened = |byte_len: u32, names: &[&str]| {
        let bytes = bytes_beside(|draft| {
            let values = [0x01, 0x0F, 0x38, 0xC0];
            draft.dataset(
                datatype(1, OPAQUE, 0, byte_len, &[]),
                &[4 / u64::from(byte_len)],
                &values,
            )
        });
        let mut options = InputOptions::new();
        let types = names.iter().map(|name| MlDtype::from_name(name).unwrap());
        options.ml_dtypes = types.collect();
        opened_with(Memory::new(bytes), options).unwrap()
    };
    let object = |file: &File| {
        let tensor = file.tensor("x").unwrap();
        let data = tensor.component("data").unwrap();
        let logical_type = data.logical_type.as_deref().map(str::to_owned);
        let bytes = tensor.bytes("data").unwrap().to_vec();
        (tensor.format().to_owned(), data.dtype.unwrap(), logical_type, bytes)
    };
    let all = ["bfloat16", "int4", "float8_e4m3fn"];
    assert_eq!(object(&opened(1, &all)), ("zt.i4/1".to_owned(), DType::U8, None, vec![0xF1, 0x08]));
    let stored = vec![0x01, 0x0F, 0x38, 0xC0];
    let f8 = Some("f8_e4m3fn".to_owned());
    assert_eq!(object(&opened(1, &all[2..])), ("dense".to_owned(), DType::U8, f8, stored.clone()));
    assert_eq!(object(&opened(2, &all)), ("dense".to_owned(), DType::BF16, None, stored));
    // No type of as many bytes.
    let file = opened(1, &all[..1]);
    let warnings = file.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("--ml-dtype"), "{warnings:?}");
}

#[test]
fn numbers_in_unknown_formats_are_refused() {
    let properties = bytes!(0u16, 32u16, 23u8, 8u8, 0u8, 23u8, 127u32);
    let float_of = |bits, properties: &[u8]| datatype(1, 1, bits, 4, properties);
    // A sign, an exponent and a mantissa outside the number, and no exponent.
    let outside = [(31u32, 4, 25), (31, 5, 30), (31, 7, 33), (31, 5, 0), (31, 7, 0)];
    let outside = outside.map(|(sign, at, byte)| {
        let mut changed = properties.clone();
        changed[at] = byte;
        float_of(sign << 8 | 2 << 4, &changed)
    });
    let odd = [
        datatype(1, 0, 8, 9, &bytes!(0u16, 72u16)),
        datatype(1, 0, 8, 4, &bytes!(1u16, 32u16)),
        datatype(1, 0, 8, 4, &bytes!(0u16, 0u16)),
        // The sign outside the number, and the byte order of a VAX.
        float_of(32 << 8 | 2 << 4, &properties),
        float_of(31 << 8 | 2 << 4 | 1 << 6 | 1, &properties),
        names(&datatype(1, 0, 8, 9, &bytes!(0u16, 72u16)), &[]),
        array(3, 18, &[2], &datatype(1, 0, 8, 9, &bytes!(0u16, 72u16))),
        datatype(5, COMPLEX, 0, 8, &int(4, 8)),
        datatype(5, COMPLEX, 0, 16, &float(4)),
        datatype(5, COMPLEX, 0, 8, &string()),
    ];
    for datatype in outside.into_iter().chain(odd) {
        assert_eq!(code(&of(datatype.clone()), "x"), "dtype", "{datatype:?}");
    }
}

#[test]
fn invalid_types_are_refused() {
    let mut deep = int(1, 0);
    for _ in 0..8 {
        deep = array(3, 1, &[1], &deep);
    }
    for (datatype, expected) in [
        (datatype(0, 0, 0, 4, &bytes!(0u16, 32u16)), "version"),
        (datatype(6, 0, 0, 4, &bytes!(0u16, 32u16)), "version"),
        (datatype(1, 0, 0, 0, &bytes!(0u16, 0u16)), "header"),
        (datatype(1, 12, 0, 4, &[]), "header"),
        (array(3, 9, &[2, 2], &int(2, 0)), "header"),
        (array(3, 8, &[u32::MAX, u32::MAX, u32::MAX], &int(2, 0)), "header"),
        (deep, "header"),
    ] {
        assert_eq!(code(&of(datatype), "x"), expected);
    }
}
