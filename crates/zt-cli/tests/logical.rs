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
