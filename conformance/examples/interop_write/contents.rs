//! What is written: every dtype, logical type, object format, encoding and digest, and the sizes
//! and names at which readers have gone wrong.

use serde_json::json;
use zt::{Attributes, DType, DigestAlgorithm, Value, WriteOptions};

use crate::Planned;
use crate::object::{Object, column, halves};

/// f16 and bf16 as bits and value: ordinary, largest, smallest, signed zero and not finite.
const F16: [(u16, f64); 8] = [
    (0x3c00, 1.0),
    (0xc000, -2.0),
    (0x7bff, 65504.0),
    (0x0001, 5.960_464_477_539_063e-8),
    (0x8000, -0.0),
    (0x7c00, f64::INFINITY),
    (0xfc00, f64::NEG_INFINITY),
    (0x7e00, f64::NAN),
];
const BF16: [(u16, f64); 8] = [
    (0x3f80, 1.0),
    (0xc000, -2.0),
    (0x7f7f, 3.389_531_389_251_535_5e38),
    (0x0001, 9.183_549_615_799_121e-41),
    (0x8000, -0.0),
    (0x7f80, f64::INFINITY),
    (0xff80, f64::NEG_INFINITY),
    (0x7fc0, f64::NAN),
];

/// Names that were an escape, a path, a number or a prefix to somebody.
const NAMES: [&str; 10] = [
    "model.layers.9.weight",
    "model.layers.10.weight",
    "a/b/c",
    "../escape",
    "__metadata__",
    " leading and trailing ",
    "tab\tand\nnewline",
    "\u{e9} and e\u{301}",
    "重み \u{1f680}",
    "",
];

/// The files that are written object by object.
pub(crate) fn files() -> Vec<Planned> {
    let file = |name, options, objects| Planned { name, options, attributes: None, objects };
    let crc32c = WriteOptions::new();
    let sha256 = WriteOptions::new().digest(Some(DigestAlgorithm::Sha256));
    let none = WriteOptions::new().digest(None);
    vec![
        file("empty", crc32c.clone(), Vec::new()),
        file("dense", crc32c.clone(), dense()),
        file("shapes", sha256.clone(), shapes()),
        file("names", none.clone(), names()),
        file("many", crc32c.clone(), many()),
        file("sparse", crc32c.clone(), sparse()),
        file("logical_types", sha256.clone(), logical_types()),
        file("packed", crc32c.clone(), packed()),
        file("quantized", crc32c.clone(), quantized()),
        file("aligned", crc32c.clone().alignment(4096), dense()),
        file("large", sha256.clone(), large()),
        file("zstd_dense", crc32c.clone().zstd(3), dense()),
        file("zstd_shapes", sha256.clone().zstd(1), shapes()),
        file("zstd_sparse", none.clone().zstd(3), sparse()),
        file("zstd_logical_types", crc32c.clone().zstd(3), logical_types()),
        file("zstd_quantized", sha256.clone().zstd(19), quantized()),
        file("zstd_large_crc32c", crc32c.clone().zstd(3), large()),
        file("zstd_large_sha256", sha256.zstd(1), large()),
        file("tied", crc32c.clone().deduplicate(true), tied()),
        file("zstd_tied", crc32c.clone().zstd(3).deduplicate(true), tied()),
        file("attributes", none, attributes()),
        Planned {
            name: "file_attributes_text",
            options: crc32c.clone(),
            attributes: Some((
                Attributes::from_iter([("author", "zt"), ("ключ", "значение")]),
                json!({"author": "zt", "ключ": "значение"}),
            )),
            objects: dense(),
        },
        Planned {
            name: "file_attributes",
            options: crc32c,
            attributes: Some(every_kind_of_attribute()),
            objects: dense(),
        },
    ]
}

/// Everything twice: the second half shares the blobs of the first.
fn tied() -> Vec<Object> {
    let objects = || [dense(), sparse(), large()].into_iter().flatten();
    let again = objects().map(|mut object| {
        object.name += " again";
        object
    });
    objects().chain(again).collect()
}

/// The file that is written in pieces.
pub(crate) fn streamed() -> Planned {
    let options = WriteOptions::new().zstd(3);
    let objects = [dense(), sparse(), large()].into_iter().flatten().collect();
    Planned { name: "zstd_streamed", options, attributes: None, objects }
}

/// The file that becomes safetensors, which has these dtypes and dense objects only.
pub(crate) fn exported() -> Planned {
    let known = |object: &Object| {
        let (_, data) = &object.components[0];
        data.logical_type()
            .is_none_or(|name| ["f8_e4m3fn", "f8_e5m2", "complex64"].contains(&&*name))
    };
    let objects =
        [dense(), shapes(), logical_types()].into_iter().flatten().filter(known).collect();
    Planned { name: "exported", options: WriteOptions::new().zstd(3), attributes: None, objects }
}

/// Every dtype; 32 times over, so that zstd has something to do.
fn dense() -> Vec<Object> {
    let reals = [0.1, -0.0, f64::MAX, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let singles = [0.1, -0.0, f32::MAX, 1e-45, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    vec![
        Object::dense("f64", &[32, 7], column(&reals.repeat(32))),
        Object::dense("f32", &[32, 7, 1], column(&singles.repeat(32))),
        Object::dense("f16", &[32, 2, 4], halves(DType::F16, &F16.repeat(32))),
        Object::dense("bf16", &[32, 2, 2, 2], halves(DType::BF16, &BF16.repeat(32))),
        Object::dense("i64", &[128], column(&[i64::MIN, -1, 0, i64::MAX].repeat(32))),
        Object::dense("i32", &[64, 2], column(&[i32::MIN, -1, 0, i32::MAX].repeat(32))),
        Object::dense("i16", &[32, 5], column(&[i16::MIN, -1, 0, 1, i16::MAX].repeat(32))),
        Object::dense("i8", &[3, 32], column(&[i8::MIN, -1, i8::MAX].repeat(32))),
        Object::dense("u64", &[96], column(&[0, 1 << 53 | 1, u64::MAX].repeat(32))),
        Object::dense("u32", &[1, 96], column(&[0, 1, u32::MAX].repeat(32))),
        Object::dense("u16", &[96, 1], column(&[0, 1, u16::MAX].repeat(32))),
        Object::dense("u8", &[64], column(&[0, u8::MAX].repeat(32))),
        Object::dense("bool", &[3, 32], column(&[true, false, true].repeat(32))),
    ]
}

fn shapes() -> Vec<Object> {
    let mut objects = vec![
        Object::dense("scalar f32", &[], column(&[-1.5f32])),
        Object::dense("scalar i64", &[], column(&[i64::MAX])),
        Object::dense("one", &[1], column(&[7u16])),
        Object::dense("nothing", &[0], column::<f32>(&[])),
        Object::dense("nothing in the middle", &[2, 0, 4], column::<i8>(&[])),
        Object::dense("nothing, immensely", &[0, 1 << 40], column::<u8>(&[])),
    ];
    let ramp: Vec<i16> = (-128..128).collect();
    objects.push(Object::dense("rank 8", &[2; 8], column(&ramp)));
    objects
}

fn names() -> Vec<Object> {
    let objects = (0u8..).zip(NAMES);
    objects.map(|(number, name)| Object::dense(name, &[1], column(&[number]))).collect()
}

/// Enough for the manifest to be longer than the data, and for offsets of every CBOR width.
fn many() -> Vec<Object> {
    let object = |number: u32| {
        Object::dense(format!("layer.{number}.bias"), &[2], column(&[number, u32::MAX - number]))
    };
    (0..2000).map(object).collect()
}

fn sparse() -> Vec<Object> {
    let csr = |name, shape: [u64; 2], values, indices: &[u64], indptr: &[u64]| {
        let components =
            [("values", values), ("indices", column(indices)), ("indptr", column(indptr))];
        Object::new(name, &shape, "sparse_csr", components)
    };
    let coo = |name, shape: &[u64], values, coords: &[u64]| {
        Object::new(name, shape, "sparse_coo", [("values", values), ("coords", column(coords))])
    };
    vec![
        csr("csr f32", [3, 4], column(&[1.5f32, -2.0, 0.25]), &[1, 3, 0], &[0, 2, 2, 3])
            .filled_in(&[0.0, 1.5, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0]),
        csr("csr i8", [2, 2], column(&[-7i8]), &[1], &[0, 0, 1]).filled_in(&[0, 0, 0, -7]),
        csr("csr bf16", [1, 8], halves(DType::BF16, &BF16), &[0, 1, 2, 3, 4, 5, 6, 7], &[0, 8]),
        csr("csr of nothing", [2, 3], column::<f64>(&[]), &[], &[0, 0, 0]).filled_in(&[0.0; 6]),
        csr("csr without rows", [0, 3], column::<f32>(&[]), &[], &[0]),
        // Coordinates dimension by dimension: all rows, then all columns.
        coo("coo f64", &[2, 3], column(&[0.5f64, 4.0]), &[0, 1, 2, 0])
            .filled_in(&[0.0, 0.0, 0.5, 4.0, 0.0, 0.0]),
        coo("coo u8 of rank 1", &[4], column(&[9u8, 8]), &[3, 0]).filled_in(&[8, 0, 0, 9]),
        coo("coo i32 of rank 3", &[2, 2, 2], column(&[-1i32, 5]), &[0, 1, 1, 0, 0, 1])
            .filled_in(&[0, 0, -1, 0, 0, 5, 0, 0]),
        coo("coo of nothing", &[3, 3], column::<f32>(&[]), &[]).filled_in(&[0.0; 9]),
    ]
}

fn logical_types() -> Vec<Object> {
    let codes: Vec<u8> = (0..=255).collect();
    let eight = |name| Object::dense(name, &[4, 256], column(&codes.repeat(4)).of(name));
    let small = halves(DType::F16, &F16.repeat(8)).of("complex32");
    let single = column(&[1.0f32, -2.0, 0.5, f32::NAN].repeat(32)).of("complex64");
    let double = column(&[1e300, -0.0].repeat(32)).of("complex128");
    let scalar = column(&[3.0f32, 4.0]).of("complex64");
    vec![
        eight("f8_e4m3fn"),
        eight("f8_e5m2"),
        eight("f8_e4m3fnuz"),
        eight("f8_e5m2fnuz"),
        eight("f8_e8m0fnu"),
        Object::dense("complex32", &[4, 8], small),
        Object::dense("complex64", &[2, 32], single),
        Object::dense("complex128", &[32, 1], double),
        Object::dense("complex scalar", &[], scalar),
    ]
}

/// Values of less than a byte. Readers of other projects give the bytes.
fn packed() -> Vec<Object> {
    let bytes: Vec<u8> = (0..96).collect();
    let packed =
        |name, shape: &[u64], format| Object::new(name, shape, format, [("data", column(&bytes))]);
    vec![
        packed("four bits", &[8, 24], "zt.f4_e2m1fn/1"),
        packed("six bits", &[8, 16], "zt.f6_e3m2fn/1"),
        packed("two bits", &[3, 128], "zt.i2/1"),
    ]
}

fn quantized() -> Vec<Object> {
    let attributes = |bits: u64, group_size: u64, packing: &str| {
        let map = Attributes::from_iter([
            ("bits", Value::from(bits)),
            ("group_size", Value::from(group_size)),
            ("packing", Value::from(packing)),
        ]);
        (map, json!({"bits": bits, "group_size": group_size, "packing": packing}))
    };
    let four = {
        let packed: Vec<i32> = (0..64).map(|word| 0x7654_3210 ^ (word % 8)).collect();
        let scale =
            [(0x3800, 0.5), (0x3c00, 1.0), (0x4000, 2.0), (0x2e66, 0.099_975_585_937_5)].repeat(4);
        let components = [
            ("packed_weight", column(&packed)),
            ("scales", halves(DType::F16, &scale)),
            ("zeros", halves(DType::F16, &[(0x4800, 8.0); 16])),
        ];
        let (map, truth) = attributes(4, 32, "8_per_i32");
        Object::new("four bits", &[8, 64], "quantized_group", components).attributes(map, truth)
    };
    let eight = {
        let packed: Vec<u8> = (0..64).collect();
        let scales = halves(DType::BF16, &[(0x3f80, 1.0), (0xc000, -2.0)]);
        let components = [("packed_weight", column(&packed)), ("scales", scales)];
        let (map, truth) = attributes(8, 32, "1_per_u8");
        Object::new("eight bits", &[64], "quantized_group", components).attributes(map, truth)
    };
    vec![four, eight, Object::dense("bias", &[1], column(&[0.5f32]))]
}

/// More than one zstd frame, in whole frames and not; what does not shrink; what fills a page.
fn large() -> Vec<Object> {
    let ramp: Vec<u32> = (0..2_500_000).map(|element| element / 7).collect();
    let whole_frames: Vec<u8> =
        (0..2u32 << 22).map(|element| (element >> 9).to_le_bytes()[0]).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let noise: Vec<u64> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
    .take(700_000)
    .collect();
    vec![
        Object::dense("small before", &[3], column(&[1u8, 2, 3])),
        Object::dense("ramp", &[2500, 1000], column(&ramp)),
        Object::dense("whole frames", &[2, 1 << 22], column(&whole_frames)),
        Object::dense("noise", &[700_000], column(&noise)),
        Object::dense("small after", &[3], column(&[4u8, 5, 6])),
    ]
}

fn attributes() -> Vec<Object> {
    let (map, truth) = every_kind_of_attribute();
    let some = || column(&[1u8]);
    vec![
        Object::dense("every kind", &[1], some()).attributes(map, truth),
        Object::dense("an empty map", &[1], some()).attributes(Attributes::new(), json!({})),
        Object::dense("none", &[1], some()),
    ]
}

/// Every kind of CBOR value that Python has a value for.
fn every_kind_of_attribute() -> (Attributes, serde_json::Value) {
    let deep =
        Attributes::from_iter([("deep", Value::array(vec![Value::Null, Value::Bool(false)]))]);
    let map = Attributes::from_iter([
        ("text", Value::from("ünï")),
        ("unsigned", Value::from(1u64 << 40)),
        ("negative", Value::from(-5i64)),
        ("float", Value::Float(0.1)),
        ("half", Value::Float(1.5)),
        ("infinity", Value::Float(f64::INFINITY)),
        ("not a number", Value::Float(f64::NAN)),
        ("bool", Value::Bool(true)),
        ("null", Value::Null),
        ("bytes", Value::Bytes(vec![0x00, 0xff, 0x10])),
        ("list", Value::array(vec![Value::from(1u64), Value::from("two"), Value::Float(3.0)])),
        ("map", Value::Map(deep)),
    ]);
    let truth = json!({
        "text": "ünï",
        "unsigned": 1u64 << 40,
        "negative": -5,
        "float": 0.1,
        "half": 1.5,
        "infinity": {"$float": "inf"},
        "not a number": {"$float": "nan"},
        "bool": true,
        "null": null,
        "bytes": {"$bytes_hex": "00ff10"},
        "list": [1, "two", 3.0],
        "map": {"deep": [null, false]},
    });
    (map, truth)
}
