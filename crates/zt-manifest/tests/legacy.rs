//! Manifests of layouts 0.1 and 1.0, as their writers made them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a failed unwrap is the failure of the test"
)]

mod common;

use ciborium::{Value as Cbor, cbor};
use common::{encode, parse, refused, validated, with, without};
use zt_manifest::{Attributes, ByteOrder, DType, Layout, Object, Value, Warning};

/// A tensor of 0.1, in its writers' field order.
fn tensor() -> Cbor {
    cbor!({
        "name" => "w", "offset" => 64, "size" => 16, "dtype" => "float32", "layout" => "dense",
        "shape" => [2, 2], "encoding" => "raw", "data_endianness" => "little",
        "checksum" => "crc32c:0x087C23AF",
    })
    .unwrap()
}

fn v0_1(tensor: Cbor) -> Result<(Object, Vec<Warning>), &'static str> {
    validated(&encode(&Cbor::Array(vec![tensor])), Layout::V0_1).map_err(|fault| fault.error.code())
}

#[test]
fn reads_the_bytes_of_a_real_0_1_manifest() {
    // The crate 0.1.0 writes maps of indefinite length in an array that is not.
    let mut bytes = b"\x81\xBF\x64name\x61w\x66offset\x18\x40\x64size\x10\x65dtype".to_vec();
    bytes.extend(b"\x67float32\x66layout\x65dense\x65shape\x82\x02\x02\x68encoding\x63raw");
    bytes.extend(b"\x6Fdata_endianness\x66little\x65layer\x07\x64note\x65hello\xFF");
    let index = parse(&bytes, Layout::V0_1).unwrap();
    assert!(index.version().is_none());
    assert_eq!(index.attributes().unwrap(), None);
    assert_eq!(index.extra().unwrap(), Attributes::new());
    let (object, warnings) = validated(&bytes, Layout::V0_1).unwrap();
    assert_eq!((&object.shape[..], &object.format[..]), (&[2, 2][..], "dense"));
    assert_eq!(object.component("data").unwrap().dtype, Some(DType::F32));
    let extra = Attributes::from([("layer", 7u64.into()), ("note", Value::from("hello"))]);
    assert_eq!((object.extra, warnings), (extra, vec![]));
}

#[test]
fn big_endian_elements_are_raw_ones_only() {
    let order = |tensor| v0_1(tensor).unwrap().0.components[0].1.byte_order;
    assert_eq!(order(tensor()), ByteOrder::Little);
    let big = with(tensor(), "data_endianness", "big");
    assert_eq!(order(big.clone()), ByteOrder::Big);
    assert_eq!(order(with(big, "encoding", "zstd")), ByteOrder::Little);
    let unknown = with(tensor(), "data_endianness", "middle");
    assert_eq!(v0_1(unknown).unwrap_err(), "schema");
}

#[test]
fn faults_of_a_0_1_tensor_are_its_own_unless_it_has_no_name() {
    for key in ["offset", "size", "dtype", "layout", "shape", "encoding"] {
        assert_eq!(v0_1(without(tensor(), key)).unwrap_err(), "schema", "{key}");
    }
    assert_eq!(v0_1(with(tensor(), "dtype", "f32")).unwrap_err(), "dtype");
    assert_eq!(v0_1(with(tensor(), "size", 4000)).unwrap_err(), "bounds");
    for (tensors, code, words) in [
        (vec![without(tensor(), "name")], "schema", "`name` is missing"),
        (vec![with(tensor(), "name", 1)], "schema", "`name` is an unsigned integer"),
        (vec![Cbor::Null], "schema", "`object` is "),
        (vec![tensor(), tensor()], "cbor", "two objects are named \"w\""),
    ] {
        let error = parse(encode(&Cbor::Array(tensors)), Layout::V0_1).unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(words), "{error}");
    }
    let last = with(without(tensor(), "name"), "name", "w");
    let index = parse(encode(&Cbor::Array(vec![last])), Layout::V0_1).unwrap();
    assert_eq!((index.is_empty(), index.name(0)), (false, "w"));
    assert_eq!(refused(&encode(&tensor()), Layout::V0_1), "schema");
    assert!(parse(b"\x80", Layout::V0_1).unwrap().is_empty());
}

#[test]
fn a_field_that_a_0_1_tensor_lacks_is_named_and_placed_at_the_tensor() {
    let tensors = vec![with(tensor(), "name", "first"), without(tensor(), "size")];
    let start = 1 + encode(&tensors[0]).len();
    let fault = validated(&encode(&Cbor::Array(tensors)), Layout::V0_1).unwrap_err();
    assert_eq!(fault.error.offset(), Some(start as u64), "{fault}");
    for key in ["layout", "shape", "size", "offset", "dtype", "encoding"] {
        let lacking = encode(&Cbor::Array(vec![without(tensor(), key)]));
        let fault = validated(&lacking, Layout::V0_1).unwrap_err();
        assert_eq!(fault.error.to_string(), format!("`{key}` is missing"));
    }
}

/// A name is found behind any other field of its tensor.
#[test]
fn a_0_1_name_may_follow_anything() {
    let mut bytes = b"\x81\xA3\x64note\x7F\x65hello\x61!\xFF".to_vec();
    bytes.extend(b"\x65bytes\x5F\x41a\xFF\x64name\x61w");
    let index = parse(&bytes, Layout::V0_1).unwrap();
    assert_eq!(index.names().collect::<Vec<_>>(), ["w"]);
}

#[test]
fn custom_keys_that_1_2_reserves_are_renamed() {
    let strange = with(with(tensor(), "format", "odd"), "0.1.format", 1);
    let (object, _) = v0_1(strange).unwrap();
    let kept = |key: &str| object.extra.get(key).cloned();
    assert_eq!(kept("0.1.0.1.format"), Some("odd".into()));
    assert_eq!(kept("0.1.format"), Some(1u64.into()));
    assert_eq!(kept("format"), None);
}

#[test]
fn keys_of_a_1_0_component_that_1_2_added_mean_nothing_and_are_kept() {
    let mut component = cbor!({"offset" => 64, "length" => 8}).unwrap();
    for (key, value) in [
        ("dtype", Cbor::from("f32")),
        ("type", Cbor::from("f8_e5m2")),
        ("uncompressed_length", Cbor::from(80)),
    ] {
        component = with(component, key, value);
    }
    let tensor = cbor!({
        "dtype" => "float64", "shape" => [1], "format" => "dense",
        "components" => {"data" => component},
    });
    let root = with(v1_0("int8", 64), "tensors", cbor!({"w" => tensor.unwrap()}).unwrap());
    let (object, _) = validated(&encode(&root), Layout::V1_0).unwrap();
    let data = object.component("data").unwrap();
    assert_eq!(data.dtype, Some(DType::F64), "the object's");
    assert_eq!(data.logical_type, None);
    assert_eq!(data.blob.decoded_len, Some(8), "the length of raw bytes");
    let expected = Attributes::from([
        ("1.0.dtype", Value::from("f32")),
        ("1.0.type", Value::from("f8_e5m2")),
        ("1.0.uncompressed_length", Value::from(80u64)),
    ]);
    assert_eq!(data.extra, expected);
}

/// A 1.0 manifest of one sparse tensor, in its writers' field order.
fn v1_0(dtype: &str, offset: u64) -> Cbor {
    let part = |offset: u64| cbor!({"offset" => offset, "length" => 8}).unwrap();
    let components = cbor!({
        "values" => part(offset), "indices" => part(128), "indptr" => part(192), "mask" => part(256),
    });
    let tensor = cbor!({
        "dtype" => dtype, "shape" => [1, 2], "format" => "sparse_csr",
        "components" => components.unwrap(),
    });
    cbor!({
        "version" => "1.0", "generator" => "zTensor-Rust v0.1.0", "attributes" => {},
        "tensors" => {"w" => tensor.unwrap()},
    })
    .unwrap()
}

#[test]
fn a_1_0_tensor_has_the_dtype_of_its_values() {
    let bytes = encode(&v1_0("bfloat16", 64));
    let (object, warnings) = validated(&bytes, Layout::V1_0).unwrap();
    let dtype = |role| object.component(role).unwrap().dtype;
    assert_eq!(dtype("values"), Some(DType::BF16));
    assert_eq!(dtype("indices"), Some(DType::U64));
    assert_eq!(dtype("indptr"), Some(DType::U64));
    assert_eq!(dtype("mask"), None);
    assert_eq!(warnings, []);
    let index = parse(&bytes, Layout::V1_0).unwrap();
    assert_eq!(index.attributes().unwrap(), Some(Attributes::new()));
    let generator = Attributes::from([("generator", "zTensor-Rust v0.1.0")]);
    assert_eq!(index.extra().unwrap(), generator);
}

#[test]
fn a_1_0_blob_off_the_grid_is_a_warning() {
    let (_, warnings) = validated(&encode(&v1_0("int8", 72)), Layout::V1_0).unwrap();
    let role = "values".to_owned();
    assert_eq!(warnings, [Warning::Misaligned { role, offset: 72 }]);
}

#[test]
fn faults_of_a_1_0_tensor_are_its_own() {
    let code = |root: &Cbor| {
        let fault = validated(&encode(root), Layout::V1_0).unwrap_err();
        fault.error.code()
    };
    assert_eq!(code(&v1_0("complex64", 64)), "dtype");
    assert_eq!(code(&v1_0("f32", 64)), "dtype");
    assert_eq!(code(&v1_0("int8", 0)), "bounds");
    let untyped = cbor!({"shape" => [], "format" => "dense", "components" => {}}).unwrap();
    let tensors = cbor!({"w" => untyped}).unwrap();
    assert_eq!(code(&with(v1_0("int8", 64), "tensors", tensors)), "schema");
}

#[test]
fn a_1_0_root_has_tensors_and_its_objects_mean_nothing() {
    // A 1.2 file without its last eight bytes is framed like one of 1.0: it was cut short.
    let objects = encode(&cbor!({"version" => "1.2.0", "objects" => {}}).unwrap());
    assert_eq!(refused(&objects, Layout::V1_0), "truncated");
    let neither = encode(&cbor!({"version" => "1.0"}).unwrap());
    assert_eq!(refused(&neither, Layout::V1_0), "schema");
    let both = with(v1_0("int8", 64), "objects", 1);
    let index = parse(encode(&both), Layout::V1_0).unwrap();
    assert_eq!(index.names().collect::<Vec<_>>(), ["w"]);
    assert_eq!(index.extra().unwrap().get("1.0.objects"), Some(&1u64.into()));
}
