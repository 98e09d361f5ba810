//! `zt quantize`: floating-point objects become `quantized_group`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};

use common::{keys, names_in};
use serde_json::json;
use tempfile::tempdir;
use zt::formats::{Packing, Quantization, f16};
use zt::ggml::BlockType;
use zt::{Attributes, DType, Dense, File, QuantizedGroup, WriteOptions};

const SHAPE: [u64; 2] = [300, 1000];

fn values() -> Vec<f32> {
    (0..300 * 1000).map(|at| ((at * 37 % 1009) as f32 - 500.0) / 64.0).collect()
}

/// Two tied matrices, a matrix of f16, a vector, indices, and attributes.
fn model(dir: &Path) -> PathBuf {
    let path = dir.join("model.zt");
    let options = WriteOptions::new().deduplicate(true).zstd(3);
    let mut writer = options.create(&path).unwrap();
    writer.set_attributes(Attributes::from([("license", "MIT")])).unwrap();
    let embed = values();
    let embed = Dense::from_slice(&SHAPE, &embed).unwrap();
    writer.add("embed", &embed).unwrap();
    writer.add("head", &embed).unwrap();
    let halves = [1.0, -2.0, 0.5].map(f16::from_f32);
    writer.add("half", &Dense::from_slice(&[1, 3], &halves).unwrap()).unwrap();
    writer.add("norm", &Dense::from_slice(&[4], &[1.0f32; 4]).unwrap()).unwrap();
    writer.add("ids", &Dense::from_slice(&[2, 2], &[1i32, 2, 3, 4]).unwrap()).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn matrices_are_quantized_and_the_rest_is_kept() {
    let dir = tempdir().unwrap();
    let (path, out) = (model(dir.path()), dir.path().join("out.zt"));
    let document = zt!["quantize", path, out, "--json"].exits(0).json();
    assert_eq!(
        keys(&document),
        [
            "bits",
            "bytes",
            "casts",
            "damaged",
            "duplicates",
            "excluded",
            "file",
            "file_size",
            "group_size",
            "inputs",
            "kept",
            "kind",
            "left_out",
            "objects",
            "output",
            "quantized",
            "shared_bytes",
            "signed",
            "type",
            "warnings"
        ]
    );
    assert_eq!(document["kept"], serde_json::json!(["norm", "ids"]));
    let packing = Packing { per_word: 8, dtype: DType::I32 };
    let expected = QuantizedGroup::quantize(SHAPE, &values(), Quantization::new(4, 128, packing));
    let expected = expected.unwrap();
    let restored = expected.to_dense().unwrap();
    let restored = restored.as_slice::<f32>().unwrap();
    let errors = values().into_iter().zip(restored.iter());
    let errors: Vec<f64> =
        errors.map(|(value, restored)| (f64::from(value) - f64::from(*restored)).abs()).collect();
    let max = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let share = {
        let root = |squares: f64| (squares / errors.len() as f64).sqrt();
        let values: Vec<f64> = values().into_iter().map(f64::from).collect();
        let middle = values.iter().sum::<f64>() / values.len() as f64;
        let std = root(values.iter().map(|it| (it - middle).powi(2)).sum());
        root(errors.iter().map(|error| error * error).sum()) / std
    };
    for name in ["embed", "head"] {
        let mut all = document["quantized"].as_array().unwrap().iter();
        let quantized = all.find(|object| object["name"] == name).unwrap();
        assert_eq!(
            keys(quantized),
            ["error_of_std", "max_error", "mean_error", "name", "shape", "type"]
        );
        assert_eq!(quantized["type"], "f32");
        assert_eq!(quantized["max_error"], max);
        assert!((quantized["mean_error"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9);
        let of_std = quantized["error_of_std"].as_f64().unwrap();
        assert!((of_std / share - 1.0).abs() < 1e-9, "{of_std}");
    }
    let file = File::open(&out).unwrap();
    for name in ["embed", "head"] {
        let found = file.tensor(name).unwrap().view::<QuantizedGroup<'_>>().unwrap();
        assert_eq!(found.packed().bytes, expected.packed().bytes, "{name}");
        assert_eq!(found.scales().bytes, expected.scales().bytes, "{name}");
        assert_eq!(found.zeros().unwrap().bytes, expected.zeros().unwrap().bytes, "{name}");
    }
    let span = |name: &str| {
        let tensor = file.tensor(name).unwrap();
        tensor.component("packed_weight").unwrap().blob.span
    };
    assert_eq!(span("embed"), span("head"), "tied weights stay tied");
    assert_eq!(file.tensor("half").unwrap().format(), "quantized_group");
    let before = File::open(&path).unwrap();
    for name in ["norm", "ids"] {
        let [new, old] = [&file, &before].map(|file| file.tensor(name).unwrap());
        assert_eq!(new.bytes("data").unwrap(), old.bytes("data").unwrap());
        let encoding = |tensor: zt::Tensor<'_>| tensor.component("data").unwrap().blob.encoding;
        assert_eq!(encoding(new), encoding(old));
    }
    assert_eq!(file.attributes().unwrap(), before.attributes().unwrap());
    zt!["verify", "--strict", out].exits(0);
    // Planes are another storage of the same values.
    let (planes, from_planes) = (dir.path().join("planes.zt"), dir.path().join("p.zt"));
    zt!["convert", path, planes, "--planes"].exits(0);
    zt!["quantize", planes, from_planes].exits(0);
    zt!["diff", out, from_planes, "--include=e*"].exits(0);
    let text = zt!["quantize", path, out, "--force"].exits(0).text();
    assert!(text.contains("out.zt: 3 objects quantized, 2 kept; "), "{text}");
}

#[test]
fn what_is_quantized_already_is_named_and_norms_are_not_taken_for_it() {
    let dir = tempdir().unwrap();
    let (path, out) = (dir.path().join("model.zt"), dir.path().join("out.zt"));
    let mut writer = WriteOptions::new().create(&path).unwrap();
    let weights = [0.5f32; 256];
    for (name, shape) in [("embed", [4, 64]), ("head", [8, 32]), ("half", [256, 1])] {
        writer.add(name, &Dense::from_slice(&shape, &weights).unwrap()).unwrap();
    }
    writer.add("norm", &Dense::from_slice(&[256], &weights).unwrap()).unwrap();
    writer.finish().unwrap();
    zt!["quantize", path, out, "--type=q8_0"].exits(0);
    let new = dir.path().join("new.zt");
    let refused = |path: &Path, count: &str| {
        for include in ["--include=*", "--signed"] {
            let error = zt!["quantize", path, new, include].exits(5).err;
            assert!(error.contains(count) && error.contains("--dense --dtype bf16"), "{error}");
            assert!(!new.exists());
        }
    };
    // The rows of `half` are no whole blocks. It is a matrix that is left.
    zt!["quantize", out, new].exits(0);
    std::fs::remove_file(&new).unwrap();
    let (blocks, narrow) = (dir.path().join("blocks.zt"), dir.path().join("narrow.zt"));
    zt!["convert", out, blocks, "--exclude=half"].exits(0);
    refused(&blocks, "2 of the chosen objects are quantized already, such as \"embed\"");
    zt!["convert", path, narrow, "--dtype=f8_e4m3fn", "--exclude=norm"].exits(0);
    refused(&narrow, "3 of the chosen objects are quantized already");
    zt!["quantize", blocks, new, "--include=norm"].exits(0);
}

#[test]
fn names_choose_what_is_quantized() {
    let dir = tempdir().unwrap();
    let (path, out) = (model(dir.path()), dir.path().join("out.zt"));
    let arguments =
        ["--include=*r*", "--include=*h*", "--exclude=half", "--signed", "--bits=8", "-f"];
    let mut command = common::command();
    command.arg("quantize").args([&path, &out]).args(arguments).arg("--json");
    let document = common::run(&mut command).exits(0).json();
    assert_eq!(document["signed"], true);
    let names = |key: &str| -> Vec<String> {
        let list = document[key].as_array().unwrap().iter();
        let name =
            |item: &serde_json::Value| item["name"].as_str().or(item.as_str()).map(str::to_owned);
        list.filter_map(name).collect()
    };
    assert_eq!(names("quantized"), ["head", "norm"]);
    assert_eq!(names("kept"), ["embed", "half", "ids"]);
    let file = File::open(&out).unwrap();
    let head = file.tensor("head").unwrap();
    assert_eq!(head.value_type().as_deref(), Some("8-bit"));
    assert!(head.component("zeros").is_err());
}

#[test]
fn what_cannot_be_quantized_leaves_no_file() {
    let dir = tempdir().unwrap();
    let path = model(dir.path());
    let file = path.to_str().unwrap();
    let out = dir.path().join("out.zt");
    let out = out.to_str().unwrap();
    for (arguments, code) in [
        (&["quantize", file, file][..], "overwrite"),
        (&["quantize", file, "out.safetensors"], "misuse"),
        (&["quantize", file, "-"], "misuse"),
        (&["quantize", file, out, "--bits=1", "--signed"], "misuse"),
        (&["quantize", file, out, "--bits=17"], "misuse"),
        (&["quantize", file, out, "--include=nope"], "not-found"),
    ] {
        let run = common::zt(arguments.iter().chain(&["--json"])).exits(2);
        assert_eq!(run.json()["error"]["code"], code, "{arguments:?}");
    }
    let bad = dir.path().join("nan.zt");
    let mut writer = WriteOptions::new().create(&bad).unwrap();
    let dense = Dense::from_slice(&[1, 2], &[1.0f32, f32::NAN]).unwrap();
    writer.add("w", &dense).unwrap();
    writer.finish().unwrap();
    let run = zt!["quantize", bad, out].exits(2);
    assert!(
        run.err.contains("w/packed_weight at 0..4: the value at position 1 is not finite"),
        "{}",
        run.err
    );
    assert!(run.err.contains("note: --exclude "), "{}", run.err);
    assert_eq!(names_in(dir.path()), ["model.zt", "nan.zt"]);
}

#[test]
fn blocks_of_ggml_are_written_to_zt_and_gguf() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let model = path("model.safetensors");
    let values: Vec<f32> = values().into_iter().take(9 * 64).collect();
    let mut writer = WriteOptions::new().create(path("model.zt")).unwrap();
    for (name, shape) in [("a", vec![9, 64]), ("b", vec![64, 9]), ("c", vec![576])] {
        let dense = Dense::from_slice(&shape, &values).unwrap();
        writer.add(name, &dense).unwrap();
    }
    writer.finish().unwrap();
    zt!["convert", path("model.zt"), model].exits(0);
    for name in ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"] {
        let (ours, theirs) = (path("out.zt"), path("out.gguf"));
        for out in [&ours, &theirs] {
            let run = zt!["quantize", model, out, "--type", name, "--force", "--json"];
            let document = run.exits(0).json();
            assert_eq!((&document["type"], &document["bits"]), (&json!(name), &json!(null)));
            // Only rows of whole blocks can be quantized.
            assert_eq!(document["kept"], json!(["b", "c"]));
            let share = document["quantized"][0]["error_of_std"].as_f64().unwrap();
            assert!((1e-4..0.1).contains(&share), "{name}: {share}");
        }
        zt!["diff", ours, theirs].exits(0);
        zt!["verify", ours].exits(0);
        let file = File::open(&ours).unwrap();
        let tensor = file.tensor("a").unwrap();
        assert_eq!(tensor.format(), format!("gguf.{name}/1"));
        let mut blocks = Vec::new();
        let block_type = BlockType::from_format(tensor.format()).unwrap();
        block_type.quantize(&values, &mut blocks);
        assert_eq!(*tensor.bytes("data").unwrap(), blocks[..]);
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 4, "no other file is left");
    let refused = |arguments: &[&str]| {
        let mut all = vec!["quantize".into(), model.clone(), path("new.gguf")];
        all.extend(arguments.iter().map(PathBuf::from));
        common::zt(all).code
    };
    assert_eq!(refused(&[]), Some(2));
    assert_eq!(refused(&["--type", "q8_0", "--bits", "4"]), Some(2));
    assert_eq!(refused(&["--type", "q4_k"]), Some(2));
    zt!["quantize", model, path("out.gguf"), "--type", "q8_0"].exits(2);
}

/// `general.file_type` of GGUF says which type most values have. It follows the values.
#[test]
fn the_file_type_of_gguf_follows_its_values() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let mut writer = WriteOptions::new().create(path("model.zt")).unwrap();
    writer.add("a", &Dense::from_slice(&[9, 64], &values()[..576]).unwrap()).unwrap();
    writer.add("norm", &Dense::from_slice(&[64], &values()[..64]).unwrap()).unwrap();
    writer.finish().unwrap();
    let (plain, blocks) = (path("plain.gguf"), path("q.gguf"));
    zt!["convert", path("model.zt"), plain].exits(0);
    zt!["meta", "set", plain, "general.file_type", "0", "--type", "uint32"].exits(0);
    let file_type = |path: &std::path::Path| {
        zt!["meta", "get", path, "general.file_type"].exits(0).text().trim().to_owned()
    };
    zt!["quantize", plain, blocks, "--type", "q8_0"].exits(0);
    assert_eq!(file_type(&blocks), "7");
    for (dtype, expected) in [("f16", "1"), ("bf16", "32"), ("f32", "0")] {
        zt!["convert", blocks, path("dense.gguf"), "--dense", "--dtype", dtype, "--force"].exits(0);
        assert_eq!(file_type(&path("dense.gguf")), expected, "{dtype}");
    }
    // What does not change stays, also where it is wrong.
    zt!["meta", "set", plain, "general.file_type", "9"].exits(0);
    zt!["convert", plain, path("copy.gguf")].exits(0);
    assert_eq!(std::fs::read(&plain).unwrap(), std::fs::read(path("copy.gguf")).unwrap());
}
