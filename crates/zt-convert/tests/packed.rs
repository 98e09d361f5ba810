//! Values of less than a byte, and scales, in files that other programs wrote: `conformance/data/packed`.
#![cfg(all(feature = "npy", feature = "onnx", feature = "pytorch", feature = "safetensors"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;
use zt::formats::Scalar;
use zt::{DType, File, FloatType, Memory, Tensor, VerifyOptions};
use zt_convert::{
    ConvertOptions, Input, InputOptions, Kinds, MlDtype, NPZ, SAFETENSORS, Summary, ZT,
};

fn data(name: &str) -> PathBuf {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/packed");
    data.join(name)
}

fn open(name: &str) -> File {
    let file = zt_convert::open(data(name)).unwrap();
    assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
    file
}

fn to(options: &ConvertOptions<'_>, file: &File) -> zt::Result<(File, Vec<u8>, Summary)> {
    let mut bytes = Vec::new();
    let summary = Kinds::builtin().convert(&[Input::from(file.clone())], &mut bytes, options)?;
    let written = zt_convert::open_source(Memory::new(bytes.clone()))?;
    Ok((written, bytes, summary))
}

fn numbers(tensor: &Tensor<'_>, file: &File) -> Vec<f64> {
    let dense = tensor.to_dense().unwrap();
    let scalars = dense.elements().scalars(file.registry()).unwrap();
    scalars.map(|scalar| scalar.as_f64().unwrap()).collect()
}

/// The file with one of its objects.
fn only(file: &File, name: &str) -> File {
    file.select(|found| (found == name).then(|| found.to_owned())).unwrap()
}

fn identity(file: &File) -> String {
    file.hash(&zt::HashOptions::new()).unwrap().to_string()
}

const F4: [f64; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

#[test]
fn safetensors_is_copied_byte_for_byte_also_by_way_of_zt() {
    let file = open("f4.safetensors");
    let shape = |name| file.tensor(name).unwrap().shape().to_vec();
    assert_eq!((shape("w4"), shape("f6")), (vec![2, 8], vec![4]));
    assert_eq!(numbers(&file.tensor("w4").unwrap(), &file), F4);
    assert_eq!(numbers(&file.tensor("s").unwrap(), &file), [0.5, 1.0, 2.0]);

    let (native, ..) = to(&ConvertOptions::new(ZT), &file).unwrap();
    assert_eq!(native.tensor("w4").unwrap().format(), "zt.f4_e2m1fn/1");
    let (copy, direct, _) = to(&ConvertOptions::new(SAFETENSORS), &file).unwrap();
    let (_, by_way, _) = to(&ConvertOptions::new(SAFETENSORS), &native).unwrap();
    assert_eq!(direct, by_way);
    for name in ["w4", "s", "f6", "f6b"] {
        let bytes = |file: &File| file.tensor(name).unwrap().bytes("data").unwrap().to_vec();
        assert_eq!(bytes(&file), bytes(&copy), "{name}");
    }
    assert_eq!(identity(&file), identity(&native));
    assert_eq!(identity(&file), identity(&copy));
    let report = zt::diff::diff(&file, &native, &zt::diff::DiffOptions::new()).unwrap();
    assert!(report.is_same());
}

#[test]
fn floats_are_cast_on_request() {
    let file = open("f4.safetensors");
    for (dtype, target) in
        [(FloatType::F32, ZT), (FloatType::BF16, SAFETENSORS), (FloatType::F32, NPZ)]
    {
        let options = ConvertOptions::new(target).dtype(Some(dtype));
        let (cast, ..) = to(&options, &file).unwrap();
        for name in ["w4", "s", "f6", "f6b"] {
            let tensor = cast.tensor(name).unwrap();
            let data = tensor.component("data").unwrap();
            assert_eq!((tensor.format(), data.dtype), ("dense", Some(dtype.dtype())));
            let expected = numbers(&file.tensor(name).unwrap(), &file);
            assert_eq!(numbers(&tensor, &cast), expected, "{name}");
        }
    }
}

#[test]
fn pairs_of_torch_are_f4_of_safetensors() {
    let file = open("dtypes.pt");
    let tensor = file.tensor("float4").unwrap();
    assert_eq!((tensor.shape(), tensor.format()), (&[2, 8][..], "zt.f4_e2m1fn/1"));
    let pairs = only(&file, "float4");
    let (native, ..) = to(&ConvertOptions::new(ZT), &pairs).unwrap();
    for file in [&pairs, &native] {
        let (written, bytes, _) = to(&ConvertOptions::new(SAFETENSORS), file).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains(r#""dtype":"F4","shape":[2,8]"#));
        let tensor = written.tensor("float4").unwrap();
        assert_eq!(*tensor.bytes("data").unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
    let complex = file.tensor("complex32").unwrap();
    let dense = complex.to_dense().unwrap();
    let values: Vec<Scalar> = dense.elements().scalars(file.registry()).unwrap().collect();
    let parts = values.iter().map(|value| match value {
        Scalar::Complex64(value) => (value.re, value.im),
        other => panic!("{other:?}"),
    });
    assert_eq!(complex.shape(), [3]);
    assert_eq!(parts.collect::<Vec<_>>(), [(1.0, 0.0), (2.0, 0.0), (0.5, 0.0)]);
}

#[test]
fn onnx_has_the_values_that_its_library_gives() {
    let file = open("types.onnx");
    let truth = fs::read_to_string(data("types.json")).unwrap();
    let truth: Json = serde_json::from_str(&truth).unwrap();
    let truth = truth.as_object().unwrap();
    assert_eq!(file.len(), truth.len());
    for (name, values) in truth {
        let values: Vec<f64> = serde_json::from_value(values.clone()).unwrap();
        assert_eq!(numbers(&file.tensor(name).unwrap(), &file), values, "{name}");
    }
    let (native, ..) = to(&ConvertOptions::new(ZT), &file).unwrap();
    assert_eq!(identity(&file), identity(&native));

    let external = open("ext_i4.onnx");
    let values = numbers(&external.tensor("i4").unwrap(), &external);
    assert_eq!(values, [-8.0, 7.0, 1.0, -1.0, 3.0]);
}

#[test]
fn types_of_ml_dtypes_are_read_as_they_are_named() {
    let floats = vec![0.5, 1.0, 2.0, 1.5];
    let cases = [
        ("bfloat16", floats.clone()),
        ("float8_e4m3fn", floats.clone()),
        ("float8_e5m2", floats.clone()),
        ("float8_e8m0fnu", vec![0.5, 1.0, 2.0, 2.0]),
        ("float4_e2m1fn", floats),
        ("int4", vec![1.0, 2.0, 3.0, -1.0]),
        ("uint4", vec![1.0, 2.0, 3.0, 4.0]),
    ];
    for (name, expected) in cases {
        let path = data(&format!("ml_{name}.npy"));
        let unnamed = zt_convert::open(&path).unwrap();
        let fault = unnamed.entries()[0].fault().unwrap().to_string();
        assert!(fault.contains("--ml-dtype"), "{fault}");
        let ml_dtype = MlDtype::from_name(name).unwrap();
        let options = InputOptions::new().ml_dtypes([ml_dtype]);
        let input = Kinds::builtin().open(&path, &options).unwrap();
        let file = input.file();
        assert!(file.verify(&VerifyOptions::default()).unwrap().is_ok());
        let tensor = file.entries()[0].tensor().unwrap();
        assert_eq!(numbers(&tensor, file), expected, "{name}");
    }
}

/// NumPy has integers of a byte at least.
#[test]
fn an_archive_of_numpy_has_bytes_and_a_warning() {
    let file = open("types.onnx");
    let (written, _, summary) = to(&ConvertOptions::new(NPZ), &file).unwrap();
    for (name, dtype) in [("int4_raw", DType::I8), ("uint2_i32", DType::U8), ("f4_raw", DType::F32)]
    {
        let tensor = written.tensor(name).unwrap();
        assert_eq!(tensor.component("data").unwrap().dtype, Some(dtype));
        let expected = numbers(&file.tensor(name).unwrap(), &file);
        assert_eq!(numbers(&tensor, &written), expected, "{name}");
        let mut warnings = summary.warnings.iter();
        assert!(warnings.any(|it| it.object.as_deref() == Some(name) && it.code == "lossy"));
    }
}

#[test]
fn safetensors_cannot_represent_what_does_not_fill_its_last_byte() {
    let file = only(&open("types.onnx"), "f4_raw");
    let error = to(&ConvertOptions::new(SAFETENSORS), &file).unwrap_err();
    assert_eq!(error.code(), "lossy");
    assert!(error.to_string().contains("do not fill their last byte"), "{error}");
    let dense = ConvertOptions::new(SAFETENSORS).dense(true);
    let (written, ..) = to(&dense, &file).unwrap();
    let values = numbers(&written.tensor("f4_raw").unwrap(), &written);
    assert_eq!(values, [0.5, -6.0, 1.5, 3.0, -0.5]);
}
