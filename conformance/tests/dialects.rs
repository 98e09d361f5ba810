//! Quantized checkpoints as objects of `.zt` and back, and from dialect to dialect: `conformance/data/quantized`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use zt::foreign::Kind;
use zt::{Dense, Elements, File, FloatType, Memory, VerifyOptions, Writer};
use zt_convert::{ConvertOptions, GGUF, Input, InputOptions, Kinds, Logical, SAFETENSORS, ZT};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/quantized")
}

fn models() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(data()).unwrap().map(|it| it.unwrap().path().join("model")).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders
}

fn open(path: &Path) -> Input {
    Kinds::builtin().open(path, InputOptions::new()).unwrap()
}

fn open_bytes(bytes: &[u8]) -> Input {
    let source = Memory::new(bytes.to_vec());
    Kinds::builtin().open_source(source, InputOptions::new()).unwrap()
}

/// The input as a file of another kind, in the dialect if one is given.
fn converted(input: &Input, kind: Kind, dialect: Option<&str>) -> zt::Result<Vec<u8>> {
    let options = ConvertOptions::new(kind).dialect(dialect.map(str::to_owned));
    let mut bytes = Vec::new();
    Kinds::builtin().convert(std::slice::from_ref(input), &mut bytes, &options)?;
    Ok(bytes)
}

/// The type, the shape and the bytes of a tensor.
type Stored = (Option<String>, Vec<u64>, Vec<u8>);

fn tensors(file: &File) -> BTreeMap<String, Stored> {
    let tensor = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        let value_type = tensor.value_type().map(Into::into);
        (value_type, tensor.shape().to_vec(), tensor.bytes("data").unwrap().to_vec())
    };
    file.names().map(|name| (name.to_owned(), tensor(name))).collect()
}

/// The weights that codes and scales mean, as f32.
fn weights(input: Input) -> BTreeMap<String, Vec<f32>> {
    let logical = Logical::new().float(Some(FloatType::F32));
    let input = Kinds::builtin().logical(input, logical).unwrap();
    let file = input.file();
    let values = |name: &str| {
        let dense = file.tensor(name).unwrap().to_f32().unwrap();
        dense.as_slice::<f32>().unwrap().to_vec()
    };
    file.names().map(|name| (name.to_owned(), values(name))).collect()
}

/// The same weights, bit for bit.
fn assert_same(found: &BTreeMap<String, Vec<f32>>, expected: &BTreeMap<String, Vec<f32>>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, values) in found {
        let bits = |values: &[f32]| values.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(values), bits(&expected[name]), "{name}");
    }
}

#[test]
fn a_model_is_objects_of_zt_and_the_same_model_again() {
    let mut groups = 0;
    for model in models() {
        let input = open(&model);
        if input.file().kind() == GGUF {
            continue;
        }
        let bytes = converted(&input, ZT, Some("zt")).unwrap();
        let objects = open_bytes(&bytes);
        let report = objects.file().verify(&VerifyOptions::new().strict(true)).unwrap();
        assert!(report.is_ok(), "{model:?}: {:?}", report.problems);
        let formats = objects.file().tensors().map(|it| it.unwrap().format().to_owned());
        let formats: Vec<String> = formats.collect();
        assert!(formats.iter().any(|it| it == "zt.quantized/1" || it == "quantized_group"));
        groups += formats.iter().filter(|it| *it == "quantized_group").count();

        // Back: the same tensors and attributes.
        let plain = open_bytes(&converted(&input, SAFETENSORS, None).unwrap());
        let back = open_bytes(&converted(&objects, SAFETENSORS, None).unwrap());
        assert_eq!(tensors(back.file()), tensors(plain.file()), "{model:?}");
        let attributes = |input: &Input| input.file().attributes().unwrap();
        assert_eq!(attributes(&back), attributes(&plain), "{model:?}");

        // No settings lie beside the objects, which say how values are made.
        let expected = weights(input);
        for tensor in objects.file().tensors() {
            let tensor = tensor.unwrap();
            if tensor.format() == "quantized_group" {
                let dense = tensor.to_dense().unwrap();
                let values = dense.as_slice::<f32>().unwrap().to_vec();
                let of = BTreeMap::from([(tensor.name().to_owned(), values)]);
                let expected = expected[tensor.name()].clone();
                assert_same(&of, &BTreeMap::from([(tensor.name().to_owned(), expected)]));
            }
        }
        assert_same(&weights(objects), &expected);
    }
    assert!(groups >= 7, "{groups}");
}

#[test]
fn a_cast_keeps_objects_of_quantized_weights() {
    let input = open(&data().join("09-gptq/model"));
    let objects = open_bytes(&converted(&input, ZT, Some("zt")).unwrap());
    let options = ConvertOptions::new(ZT).dtype(FloatType::BF16);
    let mut bytes = Vec::new();
    let summary =
        Kinds::builtin().convert(std::slice::from_ref(&objects), &mut bytes, &options).unwrap();
    assert!(summary.warnings.iter().any(|warning| warning.code == "quantized"));
    // What is not quantized is cast.
    let is_weight = |tensor: &zt::Tensor<'_>| tensor.format() == "zt.quantized/1";
    let names: Vec<String> = objects
        .file()
        .tensors()
        .map(|it| it.unwrap())
        .filter(is_weight)
        .map(|it| it.name().to_owned())
        .collect();
    let (found, expected) = (weights(open_bytes(&bytes)), weights(objects));
    assert_eq!(names.len(), 2);
    for name in names {
        assert_eq!(found[&name], expected[&name], "{name}");
    }
}

/// What the scale of a whole weight is rounded to, if it becomes a reciprocal.
const NEAR: f32 = 2e-7;

#[test]
fn codes_keep_their_values_in_another_dialect() {
    // The values of the weight in the model, and in the dialect.
    let cases = [
        ("15-gguf-fp4", "compressed-tensors", SAFETENSORS, 0.0),
        ("15-gguf-fp4", "gguf", GGUF, 0.0),
        ("08-ct-mxfp4", "gguf", GGUF, 0.0),
        ("13-mlx-mxfp4", "gguf", GGUF, 0.0),
        ("13-mlx-mxfp4", "compressed-tensors", SAFETENSORS, 0.0),
        ("05-ct-nvfp4", "compressed-tensors", SAFETENSORS, 0.0),
        ("06-modelopt-nvfp4", "compressed-tensors", SAFETENSORS, NEAR),
        ("12-comfy-tensors-nvfp4", "compressed-tensors", SAFETENSORS, NEAR),
        ("01-deepseek-fp8", "compressed-tensors", SAFETENSORS, 0.0),
        ("20-ct-fp8-blocks", "deepseek", SAFETENSORS, 0.0),
    ];
    for (model, dialect, kind, near) in cases {
        let input = open(&data().join(model).join("model"));
        let bytes = converted(&input, kind, Some(dialect)).unwrap();
        let (found, mut expected) = (weights(open_bytes(&bytes)), weights(input));
        // A format without a type of 16 bits for vectors stores them as f32, and keeps their values.
        expected.retain(|name, _| found.contains_key(name) || name.ends_with("weight"));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, values) in found {
            for (found, expected) in values.iter().zip(&expected[&name]) {
                let far = (found - expected).abs() / expected.abs().max(f32::MIN_POSITIVE);
                let is_same = found == expected || found.is_nan() && expected.is_nan();
                assert!(is_same || far <= near, "{model} {dialect} {name}: {found} {expected}");
            }
        }
    }
}

#[test]
fn blocks_of_gguf_come_back_bit_for_bit() {
    let gguf = open(&data().join("15-gguf-fp4/model"));
    let packed = open_bytes(&converted(&gguf, SAFETENSORS, Some("compressed-tensors")).unwrap());
    let back = open_bytes(&converted(&packed, GGUF, Some("gguf")).unwrap());
    for name in ["blk.0.ffn_up.weight", "blk.1.ffn_up.weight"] {
        let bytes = |input: &Input| {
            let tensor = input.file().tensor(name).unwrap();
            (tensor.format().to_owned(), tensor.bytes("data").unwrap().to_vec())
        };
        assert_eq!(bytes(&back), bytes(&gguf), "{name}");
    }
    // The scale of the whole weight is 1.
    assert_eq!(*back.file().tensor("blk.1.ffn_up.scale").unwrap().values::<f32>().unwrap(), [1.0]);
}

/// NVFP4 of ModelOpt with whole blocks of GGUF: two rows of 64 columns, with this scale of the whole weight.
fn modelopt(global: f32) -> Input {
    let codes: Vec<u8> = (0..64).map(|at: u8| at.wrapping_mul(37)).collect();
    let scales = Elements::new(zt::DType::U8, &[0x38, 0x40, 0x01, 0x7e, 0x30, 0, 0x48, 0x08][..]);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("a.weight", &Dense::from_slice(&[2, 32], &codes).unwrap()).unwrap();
    let scales = scales.with_logical_type("f8_e4m3fn");
    writer.add("a.weight_scale", &Dense::from_elements([2, 4], scales).unwrap()).unwrap();
    writer.add("a.weight_scale_2", &Dense::from_slice(&[], &[global]).unwrap()).unwrap();
    writer.finish().unwrap();
    open_bytes(&bytes)
}

/// llama.cpp multiplies by `NAME.scale` after the product: the blocks alone are other values.
#[test]
fn the_scale_of_a_whole_weight_stays_beside_blocks() {
    let model = modelopt(0.3);
    let gguf = open_bytes(&converted(&model, GGUF, Some("gguf")).unwrap());
    assert_eq!(*gguf.file().tensor("a.scale").unwrap().values::<f32>().unwrap(), [0.3]);
    assert_same(&weights(gguf.clone()), &weights(model.clone()));
    assert!(weights(model)["a.weight"].iter().any(|it| *it != 0.0));

    // Dense values of the blocks lack it, and say so.
    let options = ConvertOptions::new(SAFETENSORS).dense(true);
    let input = std::slice::from_ref(&gguf);
    let summary = Kinds::builtin().convert(input, Vec::new(), &options).unwrap();
    assert!(summary.warnings.iter().any(|warning| warning.code == "quantized"));
    // Objects of `.zt` hold both.
    let objects = open_bytes(&converted(&gguf, ZT, Some("zt")).unwrap());
    assert_eq!(objects.file().names().collect::<Vec<_>>(), ["a.weight"]);
    assert_same(&weights(objects), &weights(gguf));
}

#[test]
fn a_weight_without_a_place_in_the_dialect_is_refused_by_name() {
    for (model, dialect, kind) in [
        ("07-gptoss-mxfp4", "gguf", GGUF),
        ("02-ct-fp8", "deepseek", SAFETENSORS),
        ("14-hqq", "compressed-tensors", SAFETENSORS),
        // Columns whose groups do not follow each other, and zero points whose minimum no f16 is.
        ("09-gptq-desc-act", "gguf", GGUF),
        ("10-awq", "gguf", GGUF),
        // Rows that are no whole blocks.
        ("05-ct-nvfp4", "gguf", GGUF),
        ("01-deepseek-fp8", "gptq", SAFETENSORS),
    ] {
        let input = open(&data().join(model).join("model"));
        let error = converted(&input, kind, Some(dialect)).unwrap_err();
        assert_eq!(error.code(), "unsupported", "{model} {dialect}: {error}");
        assert!(error.to_string().contains(dialect), "{model} {dialect}: {error}");
    }
    // A scale that GGUF takes for another number.
    let mut bytes = converted(&modelopt(1.0), SAFETENSORS, None).unwrap();
    let at = bytes.windows(4).position(|it| it == [0x38, 0x40, 0x01, 0x7e]).unwrap();
    bytes[at] = 0xb8;
    let error = converted(&open_bytes(&bytes), GGUF, Some("gguf")).unwrap_err();
    assert_eq!(error.code(), "quantization", "{error}");
}

/// Warnings of code `quantized` of a conversion to a dialect, and the file.
fn told(input: &Input, kind: Kind, dialect: &str) -> (Vec<String>, Input) {
    let options = ConvertOptions::new(kind).dialect(Some(dialect.to_owned()));
    let mut bytes = Vec::new();
    let summary =
        Kinds::builtin().convert(std::slice::from_ref(input), &mut bytes, &options).unwrap();
    let warnings = summary.warnings.into_iter().filter(|it| it.code == "quantized");
    (warnings.map(|warning| warning.to_string()).collect(), open_bytes(&bytes))
}

#[test]
fn what_is_not_written_in_a_dialect_is_said() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("a.weight", &Dense::from_slice(&[2], &[1.0f32, 2.0]).unwrap()).unwrap();
    writer.finish().unwrap();
    for dialect in ["zt", "gguf", "deepseek"] {
        let (warnings, _) = told(&open_bytes(&bytes), ZT, dialect);
        let [warning] = &*warnings else { panic!("{dialect}: {warnings:?}") };
        assert!(warning.contains("no quantized weight"), "{warning}");
    }

    // AQLM has no values here, and stays as it is.
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    let codes = Dense::from_slice(&[4, 8, 1], &[1i16; 32]).unwrap();
    writer.add("a.codes", &codes).unwrap();
    writer.add("a.codebooks", &Dense::from_slice(&[1, 4, 1, 8], &[0.5f32; 32]).unwrap()).unwrap();
    writer.add("a.scales", &Dense::from_slice(&[4, 1, 1, 1], &[1.0f32; 4]).unwrap()).unwrap();
    writer.finish().unwrap();
    let input = open_bytes(&bytes);
    let (warnings, kept) = told(&input, ZT, "zt");
    assert!(matches!(&*warnings, [warning] if warning.contains("kept")), "{warnings:?}");
    assert_eq!(tensors(kept.file()), tensors(input.file()));
}

#[test]
fn a_header_that_describes_another_dialect_is_left_out() {
    let input = open(&data().join("12-comfy-metadata-fp8/model"));
    let key = "_quantization_metadata";
    let has =
        |input: &Input| input.file().attributes().unwrap().is_some_and(|it| it.get(key).is_some());
    assert!(has(&input));
    let (_, packed) = told(&input, SAFETENSORS, "compressed-tensors");
    assert!(!has(&packed));
    let found = weights(packed);
    let expected = weights(input);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, values) in found {
        assert_eq!(values, expected[&name], "{name}");
    }
}

/// The formats of a model's weights in GGUF, which have the same values.
fn blocks(input: &Input) -> zt::Result<Vec<String>> {
    let gguf = open_bytes(&converted(input, GGUF, Some("gguf"))?);
    let format = |tensor: zt::Tensor<'_>| tensor.format().to_owned();
    let formats = gguf.file().tensors().map(|tensor| format(tensor.unwrap()));
    let formats = formats.filter(|format| format != "dense").collect();
    let (found, mut expected) = (weights(gguf), weights(input.clone()));
    // A scale of activations may be a number, which GGUF does not have.
    expected.retain(|name, _| found.contains_key(name));
    assert_same(&found, &expected);
    Ok(formats)
}

#[test]
fn integers_are_blocks_of_gguf_with_the_same_values() {
    for (model, format) in [
        ("04-ct-w4a16", "gguf.q4_0/1"),
        ("09-gptq", "gguf.q4_0/1"),
        ("27-gptq-no-order", "gguf.q4_0/1"),
        ("29-torchao-int2-in-bytes", "gguf.q8_0/1"),
        ("29-torchao-int4-in-bytes", "gguf.q8_0/1"),
    ] {
        let formats = blocks(&open(&data().join(model).join("model"))).unwrap();
        assert!(
            !formats.is_empty() && formats.iter().all(|it| it == format),
            "{model} {formats:?}"
        );
    }
}

/// AWQ of 64 outputs and 64 inputs, in groups of 32, with this zero point and this scale.
fn awq(zero: u32, scale: f32) -> Input {
    let words: Vec<i32> = (0..64 * 8).map(|at: i32| at.wrapping_mul(-0x61c8_8647)).collect();
    let zeros = vec![(zero * 0x1111_1111).cast_signed(); 2 * 8];
    let scale = zt::formats::f16::from_f32(scale);
    let scales: Vec<_> = (0..2 * 64u16)
        .map(|at| scale * zt::formats::f16::from_f32(f32::from(1 + at % 2)))
        .collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.add("a.qweight", &Dense::from_slice(&[64, 8], &words).unwrap()).unwrap();
    writer.add("a.qzeros", &Dense::from_slice(&[2, 8], &zeros).unwrap()).unwrap();
    writer.add("a.scales", &Dense::from_slice(&[2, 64], &scales).unwrap()).unwrap();
    writer.finish().unwrap();
    open_bytes(&bytes)
}

#[test]
fn zero_points_are_blocks_with_a_minimum_if_it_is_exact() {
    assert_eq!(blocks(&awq(8, 0.013)).unwrap(), ["gguf.q4_0/1"]);
    assert_eq!(blocks(&awq(4, 0.013)).unwrap(), ["gguf.q4_1/1"]);
    assert_eq!(blocks(&awq(7, 0.125)).unwrap(), ["gguf.q4_1/1"]);
    let error = blocks(&awq(7, 0.01371)).unwrap_err();
    assert_eq!((error.code(), error.object()), ("unsupported", Some("a.weight")), "{error}");
}

/// int8 in groups of 32 columns, with scales of f32.
#[test]
fn bytes_with_scales_of_f16_are_q8_0() {
    let model = |scale: f32| {
        let codes: Vec<i8> = (0..2 * 64u8).map(|at| at.wrapping_mul(37).cast_signed()).collect();
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.add("a.weight", &Dense::from_slice(&[2, 64], &codes).unwrap()).unwrap();
        let scales = [scale, -scale, 0.0, 2.0 * scale];
        writer.add("a.weight_scale", &Dense::from_slice(&[2, 2], &scales).unwrap()).unwrap();
        writer.finish().unwrap();
        open_bytes(&bytes)
    };
    assert_eq!(blocks(&model(0.375)).unwrap(), ["gguf.q8_0/1"]);
    assert_eq!(blocks(&model(0.1)).unwrap_err().code(), "unsupported");
}
