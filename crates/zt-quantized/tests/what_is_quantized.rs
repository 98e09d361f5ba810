//! What is taken for quantized, what is not, and what is odd beside it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use zt::{DType, Dense, Elements, File, Writer};
use zt_quantized::{Dialects, Quantized, Settings, find};

/// The name, the type and the shape of a tensor.
type Tensor<'a> = (&'a str, &'a str, &'a [u64]);

/// A model of tensors of zeros.
fn model(tensors: &[Tensor<'_>], settings: &Settings) -> Quantized {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    for (name, value_type, shape) in tensors {
        let dtype = DType::from_name(value_type).unwrap_or(DType::U8);
        let count: u64 = shape.iter().product();
        let zeros = vec![0u8; usize::try_from(count).unwrap() * dtype.byte_len()];
        let mut elements = Elements::new(dtype, zeros);
        if dtype.as_str() != *value_type {
            elements = elements.with_logical_type((*value_type).to_owned());
        }
        writer.add(name, &Dense::from_elements(*shape, elements).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    find(&File::from_bytes(bytes).unwrap(), settings, &Dialects::builtin()).unwrap()
}

#[test]
fn plain_models_are_not_quantized() {
    let plain: &[(&str, &[Tensor<'_>])] = &[
        (
            "names of scales",
            &[
                ("layer.weight", "bf16", &[8, 8]),
                ("layer.scale", "f32", &[8]),
                ("layer.scales", "f32", &[8]),
                ("layer.bias", "bf16", &[8]),
                ("logit_scale", "f32", &[1]),
                ("norm.scale", "f32", &[8]),
                ("attention.k_scale", "f32", &[1]),
                ("attention.v_scale", "f32", &[1]),
                ("mlp.input_scale", "f32", &[1]),
                ("layer.zeros", "f32", &[8]),
                ("layer.zero_point", "i64", &[8]),
            ],
        ),
        (
            "integers",
            &[
                ("tokens.weight", "u8", &[8, 4]),
                ("positions.weight", "i32", &[8, 4]),
                ("tables.weight", "u32", &[8, 4]),
                ("tables.scales", "f32", &[3]),
                ("counts.weight", "u32", &[8]),
                ("counts.scales", "f32", &[8]),
                ("ids.weight", "i8", &[8, 4]),
                ("index.codes", "i64", &[8]),
                ("index.scales", "f32", &[8]),
                ("packed.shape", "i64", &[2]),
                ("box.nbits", "i64", &[1]),
            ],
        ),
        (
            "other meanings of names",
            &[
                ("attention.W_q", "f32", &[8, 8]),
                ("attention.scale", "f32", &[1]),
                ("audio.codes", "f32", &[8, 8]),
                ("audio.codebooks", "f32", &[2, 4, 8]),
                ("buffer._data", "f32", &[8]),
                ("buffer._scale", "f32", &[1]),
                ("mean.qweight", "f32", &[8, 8]),
                ("mean.scales", "f32", &[1, 8]),
                ("mean.g_index", "i32", &[8]),
                ("chain_blocks", "f32", &[1, 2, 3, 16]),
                ("chain_scales", "f32", &[1, 2, 3]),
                ("trellis", "f32", &[8, 8]),
                ("signal.absmax", "f32", &[1]),
                ("layer._weight_scale", "f32", &[1]),
                ("attention.logit_scale", "f32", &[8, 1, 1]),
                ("graph.g_idx", "i32", &[8]),
                ("train_blocks", "u8", &[2, 3, 16, 16]),
                ("validation_scales", "u8", &[2, 3, 16]),
                ("pyramid.scales", "f32", &[4, 2]),
                ("mixer.biases", "f32", &[4, 2]),
            ],
        ),
        (
            "a training checkpoint",
            &[
                ("model.layer.weight", "f32", &[8, 8]),
                ("optimizer.state.0.exp_avg", "f32", &[8, 8]),
                ("optimizer.state.0.state1", "u8", &[8, 8]),
                ("optimizer.state.0.absmax1", "f32", &[1]),
                ("optimizer.state.0.qmap1", "f32", &[256]),
                ("scaler._scale", "f32", &[1]),
                ("scaler._growth_tracker", "i32", &[1]),
                ("model.layer.weight_fake_quant.scale", "f32", &[8]),
                ("model.layer.weight_fake_quant.zero_point", "i64", &[8]),
                ("random.state", "u8", &[5056]),
            ],
        ),
        (
            "an adapter",
            &[
                ("base.q_proj.lora_A.weight", "f32", &[4, 8]),
                ("base.q_proj.lora_B.weight", "f32", &[8, 4]),
                ("base.q_proj.alpha", "f32", &[1]),
                ("base.q_proj.scale", "f32", &[1]),
                ("base.q_proj.lora_magnitude_vector.weight", "f32", &[8]),
                ("unet.down.dora_scale", "f32", &[8, 1]),
            ],
        ),
        (
            "FP8 that stands for itself",
            &[
                ("layer.weight", "f8_e4m3fn", &[8, 8]),
                ("other.weight", "f8_e4m3fn", &[8, 8]),
                ("layer.bias", "bf16", &[8]),
            ],
        ),
    ];
    for (what, tensors) in plain {
        let found = model(tensors, &Settings::default());
        let names: Vec<&str> = found.weights().iter().map(|weight| &*weight.name).collect();
        assert_eq!(names, [""; 0], "{what}");
        let logical = found.logical(None).unwrap();
        assert_eq!(logical.warnings(), [], "{what}");
        assert_eq!(logical.names().count(), tensors.len(), "{what}");
    }
}

/// The names of what the warnings are about.
fn warned(tensors: &[Tensor<'_>]) -> Vec<String> {
    let logical = model(tensors, &Settings::default()).logical(None).unwrap();
    let warnings = logical.warnings().into_iter();
    warnings.map(|it| format!("{} {}", it.code, it.object.unwrap_or_default())).collect()
}

#[test]
fn a_scale_of_activations_is_one_number_or_one_for_each_matrix() {
    let weight: [Tensor<'static>; 2] =
        [("a.weight", "f8_e4m3fn", &[8, 8]), ("a.weight_scale", "f32", &[1])];
    let experts: [Tensor<'static>; 2] =
        [("a.down", "f8_e4m3fn", &[3, 8, 4]), ("a.down_scale", "f32", &[3, 8, 1])];
    let with = |tensors: &[Tensor<'static>], name, shape| {
        warned(&[tensors, &[(name, "f32", shape)]].concat())
    };
    assert_eq!(with(&weight, "a.input_scale", &[]), [""; 0]);
    assert_eq!(with(&weight, "a.input_scale", &[1]), [""; 0]);
    assert_eq!(with(&weight, "a.input_scale", &[7]), ["quantized-scale a.weight"]);
    assert_eq!(with(&weight, "a.scale_input", &[8, 1]), ["quantized-scale a.weight"]);
    assert_eq!(with(&experts, "a.down_input_scale", &[3]), [""; 0]);
    assert_eq!(with(&experts, "a.down_input_scale", &[2]), ["quantized-scale a.down"]);
}

#[test]
fn a_scale_whose_codes_are_gone_is_named() {
    let parts: [&[Tensor<'_>]; 18] = [
        &[("a.weight_scale", "f32", &[8, 1])],
        &[("a.weight_scale_2", "f32", &[1])],
        &[("a.weight_global_scale", "f32", &[1])],
        &[("a.weight_zero_point", "i8", &[8, 1])],
        &[("a.weight_format", "u8", &[])],
        &[("a.scale", "f8_e8m0fnu", &[8, 1])],
        &[("a.g_idx", "i32", &[8]), ("a.scales", "f16", &[1, 32])],
        &[("a.scales", "u8", &[8, 1])],
        &[("a.weight._scale", "f32", &[8, 1])],
        &[("experts.down_scales", "u8", &[2, 8, 1])],
        &[("experts.down_weight_scale", "f32", &[2]), ("experts.down_weight_scale_2", "f32", &[2])],
        &[("experts.down_scale_inv", "f32", &[2, 1, 1])],
        &[("a.weight_scale_inv", "f32", &[1, 1])],
        &[("a.qzeros", "i32", &[1, 4]), ("a.scales", "f16", &[1, 32])],
        &[("a.SCB", "f32", &[8])],
        &[("a.nbits", "i64", &[1]), ("a.scale", "f16", &[8, 1]), ("a.zero", "f16", &[8, 1])],
        &[("a.biases", "bf16", &[8, 1]), ("a.scales", "bf16", &[8, 1])],
        &[("a.weight.quant_map", "f32", &[16])],
    ];
    for tensors in parts {
        let expected = format!("quantized-scale {}", tensors.first().unwrap().0);
        assert_eq!(warned(tensors), [expected]);
    }
}

#[test]
fn codes_whose_scales_are_gone_are_named() {
    let codes: [Tensor<'_>; 4] = [
        ("a.qweight", "i32", &[4, 32]),
        ("a.weight._data", "i8", &[4, 32]),
        ("a.weight._data", "f8_e4m3fn", &[4, 32]),
        ("experts.down_blocks", "u8", &[2, 4, 1, 16]),
    ];
    for tensor in codes {
        assert_eq!(warned(&[tensor]), [format!("quantized-scale {}", tensor.0)]);
    }
}

#[test]
fn a_layer_without_the_mark_of_comfy_is_named() {
    let found = warned(&[
        ("a.weight", "f8_e4m3fn", &[8, 8]),
        ("a.weight_scale", "f32", &[]),
        ("a.comfy_quant", "u8", &[2]),
        ("b.weight", "f8_e4m3fn", &[8, 8]),
        ("b.weight_scale", "f32", &[]),
    ]);
    assert_eq!(found, ["quantized-scale b.weight"]);
}

/// The first releases of auto-round named themselves so, and packed with auto-gptq.
#[test]
fn the_first_auto_round_is_gptq() {
    let tensors: [Tensor<'_>; 3] = [
        ("a.qweight", "i32", &[4, 32]),
        ("a.qzeros", "i32", &[1, 4]),
        ("a.scales", "f16", &[1, 32]),
    ];
    for (backend, is_known) in [
        ("gptq:exllamav2", true),
        ("auto_round:gptq:exllamav2", true),
        ("auto_round:exllamav2", false),
    ] {
        let json = serde_json::json!({
            "quant_method": "intel/auto-round", "bits": 4, "group_size": 32, "sym": true, "backend": backend,
        });
        let found = model(&tensors, &settings(json));
        let [weight] = found.weights() else { panic!("{backend}") };
        assert_eq!((&*weight.name, &*weight.dialect), ("a.weight", "gptq"));
        assert_eq!(weight.formula.is_ok(), is_known, "{backend}");
    }
}

#[test]
fn a_matrix_without_a_scale_beside_others_with_one_is_named() {
    let found = warned(&[
        ("q.weight", "f8_e4m3fn", &[8, 8]),
        ("q.weight_scale", "f32", &[8, 1]),
        ("v.weight", "f8_e4m3fn", &[8, 8]),
        ("norm.weight", "f8_e4m3fn", &[8]),
        ("other.weight", "f8_e5m2", &[8, 8]),
    ]);
    assert_eq!(found, ["quantized-scale v.weight"]);
}

#[test]
fn a_fused_matrix_with_the_scales_of_its_half_has_no_values() {
    for (shape, scales) in [
        (&[16u64, 8][..], &[8u64, 1][..]),
        (&[16, 8], &[8]),
        (&[512, 256], &[2, 2]),
        (&[256, 256], &[1, 2]),
        (&[2, 16, 8], &[2, 8, 1]),
    ] {
        let tensors: [Tensor<'_>; 2] =
            [("a.weight", "f8_e4m3fn", shape), ("a.weight_scale", "f32", scales)];
        let found = model(&tensors, &Settings::default());
        let error = found.weights().first().unwrap().formula.as_ref().unwrap_err();
        assert_eq!(error.code(), "quantization", "{shape:?} {scales:?}");
        assert_eq!(error.object(), Some("a.weight"));
    }
}

fn settings(quantization: serde_json::Value) -> Settings {
    let mut settings = Settings::default();
    let json = serde_json::json!({ "quantization_config": quantization });
    settings.add("config.json", json.to_string().as_bytes()).unwrap();
    settings
}

#[test]
fn what_is_known_by_name_alone_is_unsupported() {
    let named: &[(serde_json::Value, &[Tensor<'_>], &str)] = &[
        (
            serde_json::json!({}),
            &[
                ("a.weight._data._data", "u8", &[16, 128]),
                ("a.weight._scale", "f32", &[32, 1]),
                ("a.weight._shift", "f32", &[32, 1]),
            ],
            "quanto",
        ),
        (
            serde_json::json!({"quant_method": "bitnet"}),
            &[("a.weight", "u8", &[4, 16]), ("a.weight_scale", "bf16", &[1])],
            "modelopt-int4",
        ),
        (
            serde_json::json!({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}),
            &[
                ("a.weight", "u8", &[4, 16]),
                ("a.weight_scale", "f32", &[8, 1]),
                ("a.weight_scale_2", "f32", &[1]),
            ],
            "modelopt-int4",
        ),
        (
            serde_json::json!({"quant_method": "gptq", "bits": 5, "checkpoint_format": "gptq_p"}),
            &[
                ("a.qweight", "i32", &[5, 32]),
                ("a.qzeros", "i32", &[1, 5]),
                ("a.scales", "f16", &[1, 32]),
            ],
            "gptq",
        ),
        (
            serde_json::json!({"quant_method": "awq", "bits": 4, "version": "gemv"}),
            &[
                ("a.qweight", "i32", &[32, 4]),
                ("a.qzeros", "i32", &[32, 1]),
                ("a.scales", "f16", &[32, 8]),
            ],
            "awq",
        ),
        (
            serde_json::json!({"quant_method": "aqlm"}),
            &[
                ("a.codes", "i16", &[4, 2, 1]),
                ("a.codebooks", "f16", &[1, 16, 1, 8]),
                ("a.scales", "f16", &[4, 1, 1, 1]),
            ],
            "aqlm",
        ),
    ];
    for (json, tensors, dialect) in named {
        let found = model(tensors, &settings(json.clone()));
        let [weight] = found.weights() else { panic!("{dialect}") };
        assert_eq!((&*weight.name, &*weight.dialect), ("a.weight", *dialect));
        assert_eq!(weight.formula.as_ref().unwrap_err().code(), "unsupported", "{dialect}");
        assert_eq!(weight.parts.len(), tensors.len(), "{dialect}");
    }
}

#[test]
fn a_method_that_no_dialect_knows_is_a_warning() {
    let tensors: [Tensor<'_>; 2] =
        [("a.weight", "i8", &[4, 16]), ("a.weight_scales", "f16", &[16])];
    let codes = |method: &str| -> Vec<_> {
        let found = model(&tensors, &settings(serde_json::json!({ "quant_method": method })));
        found.logical(None).unwrap().warnings().iter().map(|it| it.code).collect()
    };
    assert_eq!(codes("eetq"), ["quantized"]);
    assert_eq!(codes("compressed-tensors"), [""; 0]);
}
