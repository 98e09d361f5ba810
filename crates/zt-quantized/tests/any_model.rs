//! Names, types, shapes and settings of every kind: an error or values, and never a panic.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use zt::{DType, Dense, Elements, File, FloatType, Writer};
use zt_quantized::{Dialects, Settings, TARGETS, find};

/// What the names of parts end with.
const ENDS: &[&str] = &[
    "weight",
    "weight_scale",
    "weight_scale_2",
    "weight_scale_inv",
    "weight_zero_point",
    "weight_g_idx",
    "weight_packed",
    "weight_shape",
    "weight_global_scale",
    "qweight",
    "qzeros",
    "scales",
    "g_idx",
    "biases",
    "weight.absmax",
    "weight.quant_map",
    "weight.nested_absmax",
    "weight.nested_quant_map",
    "weight.quant_state.bitsandbytes__nf4",
    "SCB",
    "W_q",
    "scale",
    "zero",
    "nbits",
    "group_size",
    "shape",
    "axis",
    "weight._data",
    "weight._scale",
    "w_blocks",
    "w_scales",
    "comfy_quant",
    "scaled_fp8",
    "scale_weight",
    "_weight_qdata",
    "_weight_scale",
    "pre_quant_scale",
    "codes",
    "codebooks",
];

/// Types, with the bytes of an element.
const TYPES: &[(DType, Option<&str>)] = &[
    (DType::U8, None),
    (DType::I8, None),
    (DType::I32, None),
    (DType::U32, None),
    (DType::I64, None),
    (DType::F16, None),
    (DType::BF16, None),
    (DType::F32, None),
    (DType::U8, Some("f8_e4m3fn")),
    (DType::U8, Some("f8_e5m2")),
    (DType::U8, Some("f8_e8m0fnu")),
];

const KEYS: &[&str] = &[
    "bits",
    "group_size",
    "quant_method",
    "quant_algo",
    "desc_act",
    "checkpoint_format",
    "weight_block_size",
    "load_in_4bit",
    "load_in_8bit",
    "config_groups",
    "mode",
    "version",
    "dynamic",
];

const VALUES: &[&str] = &[
    "0",
    "-1",
    "2",
    "3",
    "4",
    "8",
    "16",
    "32",
    "128",
    "9223372036854775808",
    "1e300",
    "-9223372036854775808",
    "true",
    "null",
    "\"gptq\"",
    "\"awq\"",
    "\"fp8\"",
    "\"modelopt\"",
    "\"NVFP4\"",
    "\"mxfp4\"",
    "\"affine\"",
    "\"0.17.1\"",
    "[0, 0]",
    "[128, 128]",
    "[9223372036854775807, 1]",
    "{}",
    "{\"g\": {\"weights\": {\"num_bits\": 4}}}",
    "{\"g\": {\"weights\": {\"num_bits\": 3, \"group_size\": 9223372036854775807, \"symmetric\": false}}}",
    "{\"g\": {\"weights\": {\"num_bits\": 8, \"block_structure\": [2, 18446744073709551615]}}}",
];

fn shapes() -> impl Strategy<Value = Vec<u64>> {
    let side = || select(&[0u64, 1, 2, 3, 4, 8, 16, 32, 64][..]);
    let huge = select(vec![vec![1 << 40, 0], vec![0, 1 << 62, 1 << 62], vec![1 << 40, 0, 1 << 40]]);
    prop_oneof![
        8 => vec(side(), 0..4),
        4 => (side(), side()).prop_map(|(a, b)| vec![a, b]),
        1 => huge,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn is_an_error_or_has_values(
        tensors in vec((select(ENDS), select(TYPES), shapes(), any::<u8>()), 1..9),
        settings in vec((select(KEYS), select(VALUES)), 0..5),
    ) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        for (at, (end, (dtype, logical), shape, byte)) in tensors.into_iter().enumerate() {
            // Most parts are of one layer.
            let layer = if at < 6 { "a" } else { "b" };
            let count = shape.iter().try_fold(1u64, |a, b| a.checked_mul(*b)).unwrap_or(0);
            let data = vec![byte; usize::try_from(count).unwrap() * dtype.byte_len()];
            let elements = Elements::new(dtype, &*data);
            let elements = match logical {
                Some(logical) => elements.with_logical_type(logical),
                None => elements,
            };
            let dense = Dense::from_elements(shape, elements);
            if let Ok(dense) = dense {
                // A name that is taken is an error of the writer.
                let _ = writer.add(&format!("{layer}.{end}"), &dense);
            }
        }
        writer.finish().unwrap();
        let file = File::from_bytes(bytes).unwrap();
        let pairs: Vec<String> = settings.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let json = format!("{{\"quantization_config\": {{{}}}}}", pairs.join(", "));
        let mut settings = Settings::default();
        settings.add("config.json", json.as_bytes()).ok();
        let Ok(found) = find(&file, &settings, &Dialects::builtin()) else { return Ok(()) };
        found.check_scales().ok();
        for weight in found.weights() {
            prop_assert!(found.bits(weight).is_none_or(|bits| bits >= 0.0));
        }
        for target in TARGETS {
            let found = find(&file, &Settings::default(), &Dialects::builtin());
            let Ok(other) = found.and_then(|found| found.in_dialect(target)) else { continue };
            for tensor in other.tensors().filter_map(Result::ok) {
                tensor.bytes("data").ok();
            }
        }
        let Ok(logical) = found.logical(Some(FloatType::F32)) else { return Ok(()) };
        for tensor in logical.tensors().filter_map(Result::ok) {
            if tensor.element_count().is_some_and(|count| count <= 1 << 20) {
                tensor.to_dense().ok();
            }
        }
    }
}
