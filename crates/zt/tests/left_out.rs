//! What files before 1.2 may leave out: the length and the dtype of a compressed component. It
//! comes to light when the component is decoded, and is held to the same rules then.
#![cfg(feature = "zstd")]
#![allow(clippy::unwrap_used, reason = "tests")]

use zt::container::codec::FrameCompressor;
use zt::foreign::{FileBuilder, Kind};
use zt::{
    Attributes, Blob, Component, Coo, Csr, DType, Encoding, Error, File, HashOptions, Memory,
    Object, OpenOptions, Slice, Span, VerifyOptions, Writer,
};

type Stored<'a> = (&'static str, Option<DType>, &'a [u8]);

/// Appends the content in zstd, of a length that is said or not.
fn compress(bytes: &mut Vec<u8>, content: &[u8], says: bool) -> Blob {
    let (start, mut frame) = (bytes.len() as u64, Vec::new());
    let mut compressor = FrameCompressor::new(1).unwrap();
    compressor.compress(content, &mut frame).unwrap();
    bytes.extend(frame);
    Blob {
        encoding: Encoding::Zstd,
        decoded_len: says.then_some(content.len() as u64),
        ..Blob::raw(Span::between(start, bytes.len() as u64).unwrap())
    }
}

/// A file of one object whose components are zstd, of lengths that are said or not.
fn file(format: &'static str, shape: &[u64], says: bool, components: &[Stored<'_>]) -> File {
    let (mut bytes, mut object) = (Vec::new(), Object::new(shape, format));
    for (role, dtype, content) in components {
        let mut component = Component::new(DType::U8, compress(&mut bytes, content, says));
        component.dtype = *dtype;
        object.components.push(((*role).into(), component));
    }
    of_one(object, bytes)
}

fn of_one(object: Object, bytes: Vec<u8>) -> File {
    let mut builder = FileBuilder::new(Kind::new("test"), OpenOptions::new());
    let source = builder.source(Memory::new(bytes));
    builder.object("x", object, source);
    builder.build().unwrap()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

const U64: Option<DType> = Some(DType::U64);
const U16: Option<DType> = Some(DType::U16);

fn csr(says: bool, indptr: &[u64], indices: &[u64], values: &[u8]) -> File {
    let (indptr, indices) = (words(indptr), words(indices));
    let components =
        [("values", U16, values), ("indices", U64, &indices), ("indptr", U64, &indptr)];
    file("sparse_csr", &[2, 3], says, &components)
}

fn coo(says: bool, coords: &[u64], values: &[u8]) -> File {
    let coords = words(coords);
    let components = [("values", U16, values), ("coords", U64, &coords[..])];
    file("sparse_coo", &[2, 3], says, &components)
}

fn dense(says: bool, dtype: Option<DType>, values: &[u8]) -> File {
    file("dense", &[2, 3], says, &[("data", dtype, values)])
}

fn slices(text: &str) -> Vec<Slice> {
    Slice::parse_list(text).unwrap()
}

#[test]
fn lengths_that_fit_are_as_good_as_those_that_are_said() {
    let values = [1, 0, 2, 0, 3, 0];
    let twelve: Vec<u8> = (0..12).collect();
    let files = [false, true].map(|says| {
        [
            csr(says, &[0, 2, 3], &[0, 2, 1], &values),
            coo(says, &[0, 0, 1, 0, 2, 1], &values),
            dense(says, U16, &twelve),
        ]
    });
    let [left_out, said] = files;
    for (left_out, said) in left_out.iter().zip(&said) {
        let [found, expected] = [left_out, said].map(|file| {
            let tensor = file.tensor("x").unwrap();
            let parts =
                ["", "1", ":,1:", "::-1,2"].map(|text| tensor.slice(&slices(text)).unwrap());
            (tensor.to_dense().unwrap(), parts)
        });
        assert!(found == expected);
        let [found, expected] = [left_out, said].map(|file| {
            let options = HashOptions::new().dense(true);
            let mut hash = file.hash(&options).unwrap();
            let (_, object) = hash.objects.remove(0);
            let object = object.unwrap();
            (hash.content.unwrap(), object.components, object.dense.unwrap())
        });
        assert_eq!(found, expected);
        assert!(left_out.verify(&VerifyOptions::default()).unwrap().is_ok());
    }
    let tensor = left_out[0].tensor("x").unwrap();
    let part: Csr<'_> = tensor.slice_csr(&slices("0")).unwrap();
    assert_eq!((part.indices(), part.indptr()), (&[0, 2][..], &[0, 2][..]));
    let tensor = left_out[1].tensor("x").unwrap();
    let part: Coo<'_> = tensor.slice_coo(&slices("0")).unwrap();
    assert_eq!(part.coords(0).unwrap(), [0, 2]);
}

/// Those that follow from the shape are told to the decoder, the others are compared behind it.
#[test]
fn lengths_that_contradict_each_other_are_found_by_whoever_decodes() {
    const MISMATCH: &str = "shape-size-mismatch";
    let values = [1, 0, 2, 0, 3, 0];
    let code = |error: Error| {
        assert_eq!(error.object(), Some("x"));
        error.code()
    };
    for (name, file, expected) in [
        ("short pointers", csr(false, &[0, 3], &[0, 2, 1], &values), "zstd"),
        ("long pointers", csr(false, &[0, 2, 3, 3], &[0, 2, 1], &values), "zstd"),
        ("few values", csr(false, &[0, 2, 3], &[0, 2, 1], &values[..4]), MISMATCH),
        ("half a value", csr(false, &[0, 2, 3], &[0, 2, 1], &values[..5]), MISMATCH),
        ("odd coordinates", coo(false, &[0, 0, 1, 0, 2], &values), MISMATCH),
        ("few coordinates", coo(false, &[0, 0, 0, 2], &values), MISMATCH),
        ("few numbers", dense(false, U16, &values), "zstd"),
    ] {
        let report = file.verify(&VerifyOptions::default()).unwrap();
        let problems: Vec<_> = report.problems.into_iter().map(code).collect();
        assert_eq!(problems, [expected], "{name}");
        let tensor = file.tensor("x").unwrap();
        let some = slices("1");
        let part = match tensor.format() {
            "sparse_csr" => tensor.slice_csr(&some).map(drop),
            "sparse_coo" => tensor.slice_coo(&some).map(drop),
            _ => tensor.slice(&some).map(drop),
        };
        let results = [part, tensor.slice(&some).map(drop), tensor.to_dense().map(drop)];
        for result in results {
            assert_eq!(code(result.unwrap_err()), expected, "{name}");
        }
    }
}

#[test]
fn a_component_has_to_say_of_which_dtype_it_is_where_nothing_else_does() {
    let twelve: Vec<u8> = (0..12).collect();
    let coords = words(&[0, 1]);
    let components = [("values", U16, &[1, 0][..]), ("coords", None, &coords)];
    for (file, code, role) in [
        (dense(false, None, &twelve), "dtype", "data"),
        (file("sparse_coo", &[2, 3], false, &components), "index-dtype", "coords"),
    ] {
        let tensor = file.tensor("x").unwrap();
        let error = tensor.fault().unwrap();
        assert_eq!((error.code(), error.component()), (code, Some(role)));
    }
}

/// Layout 1.0 has one dtype for an object: the dtype of its data.
#[test]
fn scales_without_a_dtype_are_as_wide_as_they_are_long() {
    let one = |width: usize| match width {
        2 => vec![0, 0x3C],
        4 => 1f32.to_le_bytes().to_vec(),
        _ => vec![1; width],
    };
    for (width, expected, has_values) in
        [(2, DType::F16, true), (4, DType::F32, true), (3, DType::U8, false)]
    {
        let scales = one(width).repeat(2);
        let components = [
            ("data", Some(DType::U8), &[0x21, 0x43][..]),
            ("scale", None, &scales),
            ("zero_point", None, &scales),
        ];
        let file = file("quantized_4bit", &[2, 2], false, &components);
        let tensor = file.tensor("x").unwrap();
        assert_eq!(tensor.dtype_to_write("scale").unwrap(), expected);
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        let copied = writer.copy("x", &tensor);
        if !has_values {
            assert_eq!(tensor.to_dense().unwrap_err().code(), "unsupported");
            assert_eq!(copied.unwrap_err().code(), "dtype");
            continue;
        }
        writer.finish().unwrap();
        let copied = File::from_bytes(bytes).unwrap();
        let copied = copied.tensor("x").unwrap();
        assert_eq!(copied.component("scale").unwrap().dtype, Some(expected));
        for tensor in [tensor, copied] {
            let dense = tensor.to_dense().unwrap();
            assert_eq!(*dense.as_slice::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0]);
        }
    }
}

/// The shape does not give the length of an unknown type either: any length is right.
#[test]
fn the_length_of_values_of_an_unknown_type_is_counted() {
    let content: Vec<u8> = (0..5_000_000u32).map(|at| (at / 3).to_le_bytes()[0]).collect();
    let file = |format: &'static str, says: bool, roles: &[&'static str]| {
        let (mut bytes, mut object) = (Vec::new(), Object::new([5_000_000], format));
        for role in roles {
            let mut component = Component::new(DType::U8, compress(&mut bytes, &content, says));
            component.logical_type = (format == "dense").then_some("test.alien".into());
            object = object.with_component(*role, component);
        }
        if format != "dense" {
            let mut attributes = Attributes::new();
            attributes.insert("dtype", "f16");
            attributes.insert("type", "test.alien");
            object.attributes = Some(attributes);
        }
        of_one(object, bytes)
    };
    for (format, roles) in [("dense", &["data"][..]), ("zt.planes/1", &["plane0", "plane1"])] {
        let [left_out, said] = [false, true].map(|says| {
            let file = file(format, says, roles);
            let tensor = file.tensor("x").unwrap();
            assert!(*tensor.bytes(roles[0]).unwrap() == content[..]);
            let dense = tensor.to_dense().unwrap();
            assert_eq!(dense.elements().bytes.len(), roles.len() * content.len());
            let options = HashOptions::new().dense(true);
            let hash = file.hash(&options).unwrap();
            let object = hash.objects[0].1.clone().unwrap();
            (dense, object.dense.unwrap())
        });
        assert!(left_out == said, "{format}");
    }
}
