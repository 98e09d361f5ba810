//! `--logical`, and what commands do with the codes of quantized checkpoints without it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::tempdir;

fn data(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/data/quantized").join(path)
}

#[test]
fn ls_says_dialect_and_bits() {
    let listed = zt!["ls", "--logical", "--json", data("09-gptq/model")].exits(0).json();
    let objects = listed["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 7);
    let of = |name: &str| objects.iter().find(|it| it["name"] == name).unwrap();
    let weight = of("model.layers.0.self_attn.q_proj.weight");
    assert_eq!(weight["dialect"], "gptq");
    assert_eq!(weight["bits_per_weight"], 5.625);
    assert_eq!(weight["shape"], json!([32, 64]));
    assert!(of("model.norm.weight").get("dialect").is_none());
}

#[test]
fn codes_are_refused_by_arithmetic_and_named_by_what_shows_values() {
    let dir = tempdir().unwrap();
    let (model, out) = (data("01-deepseek-fp8/model"), dir.path().join("out.safetensors"));
    let average = zt!["average", "--json", model, model, out].exits(5);
    assert_eq!(average.error_code(), "unsupported");
    let quantize = zt!["quantize", "--json", model, dir.path().join("q.zt")].exits(5);
    assert_eq!(quantize.error_code(), "unsupported");
    assert!(!out.exists());
    for run in
        [zt!["stats", model].exits(0), zt!["convert", model, out, "--dtype", "bf16"].exits(0)]
    {
        assert!(run.err.contains("warning[quantized]"), "{}", run.err);
    }
    let run = zt!["stats", "--logical", model].exits(0);
    assert!(!run.err.contains("quantized"), "{}", run.err);
    zt!["average", "--logical", model, model, dir.path().join("mean.safetensors")].exits(0);
}

#[test]
fn a_missing_scale_leaves_no_file() {
    let dir = tempdir().unwrap();
    let (fault, out) =
        (data("01-deepseek-fp8/faults/scale-missing"), dir.path().join("out.safetensors"));
    let verify = zt!["verify", "--logical", fault].exits(1);
    assert!(verify.err.contains("weight_scale_inv is missing"), "{}", verify.err);
    zt!["convert", "--logical", fault, out].exits(1);
    assert!(!out.exists());
    let zero = data("01-deepseek-fp8/faults/scale-half-zero");
    let verify = zt!["verify", "--logical", zero].exits(0);
    assert!(verify.err.contains("warning[quantized-scale]"), "{}", verify.err);
}

#[test]
fn a_set_of_weights_has_a_config_without_the_quantization() {
    let dir = tempdir().unwrap();
    let set = dir.path().join("plain");
    zt!["split", "--logical", data("01-deepseek-fp8/model"), "--max-shard-size", "1GB", "-o", set]
        .exits(0);
    let config = fs::read(set.join("config.json")).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(config["model_type"], "deepseek_v3");
    assert!(config.get("quantization_config").is_none());
}

#[test]
fn a_set_in_another_dialect_has_its_settings() {
    let dir = tempdir().unwrap();
    let (packed, back) = (dir.path().join("packed"), dir.path().join("back"));
    let model = data("01-deepseek-fp8/model");
    zt!["split", model, "-o", packed, "--dialect", "compressed-tensors"].exits(0);
    let config = |folder: &PathBuf| {
        let config = fs::read(folder.join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        config["quantization_config"].clone()
    };
    let settings = config(&packed);
    assert_eq!(settings["format"], "float-quantized");
    let group = &settings["config_groups"]["group_0"];
    assert_eq!(group["weights"]["block_structure"], json!([128, 128]));
    assert_eq!(
        group["targets"],
        json!(["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"])
    );
    zt!["split", packed, "-o", back, "--dialect", "deepseek"].exits(0);
    assert_eq!(config(&back)["weight_block_size"], json!([128, 128]));
    zt!["diff", "--logical", model, back].exits(0);

    let objects = dir.path().join("model.zt");
    zt!["convert", model, objects, "--dialect", "zt"].exits(0);
    let listed = zt!["ls", "--json", objects].exits(0).json();
    let formats = listed["objects"].as_array().unwrap().iter();
    assert_eq!(formats.filter(|it| it["format"] == "zt.quantized/1").count(), 2);
    zt!["diff", "--logical", model, objects].exits(0);
    let shown = zt!["show", objects, "model.layers.1.mlp.down_proj.weight"].exits(5);
    assert!(shown.err.contains("--logical"), "{}", shown.err);
    let refused = zt!["convert", model, dir.path().join("x.gguf"), "--dialect", "gguf"].exits(5);
    assert!(refused.err.contains("gguf has no place"), "{}", refused.err);
}
