//! What is odd beside the weights that were found. None of it changes a value.

use std::collections::HashMap;

use zt::Warning;

use crate::model::Model;
use crate::weight::Weight;

/// The names of scales of activations, each for a whole layer.
const INPUTS: [&str; 4] = ["input_scale", "scale_input", "input_global_scale", "output_scale"];

/// The methods of settings whose weights a dialect finds, if there are any.
const METHODS: [&str; 13] = [
    "awq",
    "auto-round",
    "bitsandbytes",
    "compressed-tensors",
    "fbgemm_fp8",
    "fp8",
    "gptq",
    "hqq",
    "modelopt",
    "mxfp4",
    "quanto",
    "quark",
    "torchao",
];

/// Warnings of code `quantized-scale`, and `quantized` where nothing was found.
pub(crate) fn suspects(model: &Model<'_>, weights: &[Weight]) -> Vec<Warning> {
    let mut warnings = unused_scales(model);
    if let ([], Some(method)) = (weights, model.settings().method())
        && !METHODS.contains(&method)
    {
        let message = format!(
            "the settings say that the weights are quantized ({method}), and no dialect knows them: they are taken as they are"
        );
        warnings.push(Warning::new("quantized", message));
    }
    warnings.extend(without_codes(model));
    warnings.extend(without_scales(model, weights));
    warnings.extend(weights.iter().flat_map(|weight| inputs(model, weight)));
    warnings
}

fn warning(name: &str, message: String) -> Warning {
    Warning::new("quantized-scale", message).with_object(name)
}

/// Scales without a quantized weight: the tensor beside them has plain values.
fn unused_scales(model: &Model<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for end in ["weight_scale", "weight_scale_inv"] {
        for stem in model.ending(end) {
            let name = format!("{stem}weight");
            let Some(weight) = model.get(&name) else { continue };
            let message = format!(
                "{stem}{end} is a scale, and {name} is of the type {}: it is taken as it is, and not multiplied",
                weight.value_type
            );
            warnings.push(warning(&name, message));
        }
    }
    warnings
}

/// The end of a name of a scale or the like, and the ends that its codes may have.
const CODES: [(&str, &[&str]); 9] = [
    (".weight_scale", &[".weight", ".weight_packed"]),
    (".weight_scale_inv", &[".weight"]),
    (".weight_shape", &[".weight_packed", ".weight"]),
    (".scale_weight", &[".weight"]),
    (".qzeros", &[".qweight"]),
    (".SCB", &[".weight"]),
    (".nbits", &[".W_q"]),
    (".quant_map", &[""]),
    (".biases", &[".weight"]),
];

/// Scales whose codes are gone, with everything that was a weight.
fn without_codes(model: &Model<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (end, codes) in CODES {
        for stem in model.ending(end) {
            let has = |end: &str| model.stored(&format!("{stem}{end}")).is_some();
            // These names have other meanings alone.
            let is_alone = match end {
                ".biases" => !has(".scales"),
                ".nbits" => !has(".scale") && !has(".zero"),
                _ => false,
            };
            if is_alone || codes.iter().any(|end| has(end)) {
                continue;
            }
            let name = format!("{stem}{end}");
            let codes = codes.first().copied().unwrap_or_default();
            let message = format!("{name} describes codes, and {stem}{codes} is missing");
            warnings.push(warning(&name, message));
        }
    }
    warnings
}

/// Matrices of the type that codes of other layers have, without a scale.
fn without_scales(model: &Model<'_>, weights: &[Weight]) -> Vec<Warning> {
    let mut types = HashMap::new();
    for weight in weights.iter().filter(|weight| weight.parts.len() > 1) {
        let codes = weight.parts.first().and_then(|name| model.stored(name));
        // Words of 32 bits are codes of dialects that miss their scales themselves.
        if let Some(codes) = codes.filter(|codes| codes.dtype.byte_len() == 1) {
            types.entry(codes.value_type.to_string()).or_insert(&weight.name);
        }
    }
    let mut warnings = Vec::new();
    for stem in if types.is_empty() { Vec::new() } else { model.ending("weight") } {
        let name = format!("{stem}weight");
        let Some(tensor) = model.get(&name).filter(|it| it.shape.len() > 1) else { continue };
        if let Some(other) = types.get(&*tensor.value_type) {
            let message = format!(
                "{name} is of the type {}, as the codes of {other} are, and has no scale: it is taken as it is",
                tensor.value_type
            );
            warnings.push(warning(&name, message));
        }
    }
    warnings
}

/// Scales of the activations of a layer that are neither one nor one for each of stacked matrices.
fn inputs(model: &Model<'_>, weight: &Weight) -> Vec<Warning> {
    let (name, mut warnings) = (&weight.name, Vec::new());
    let stem = name.strip_suffix("weight").map_or_else(|| format!("{name}_"), str::to_owned);
    let Ok(formula) = &weight.formula else { return warnings };
    let outer = formula.shape().len().saturating_sub(2);
    let matrices: u64 = formula.shape().iter().take(outer).fold(1, |a, b| a.saturating_mul(*b));
    for part in INPUTS {
        let scale = format!("{stem}{part}");
        let Some(found) = model.get(&scale) else { continue };
        if found.count() != 1 && found.count() != matrices {
            let one = match matrices {
                1 => "one number".to_owned(),
                _ => format!("one number, or one for each of {matrices} matrices"),
            };
            let message = format!("{scale} has the shape {:?}, and a layer has {one}", found.shape);
            warnings.push(warning(name, message));
        }
    }
    warnings
}
