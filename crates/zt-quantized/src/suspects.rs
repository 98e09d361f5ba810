//! What is odd beside the weights that were found. None of it changes a value.

use std::collections::{HashMap, HashSet};

use zt::{DType, Warning};

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
    warnings.extend(without_scales(model, weights));
    // Parts that a shard lacks may be in another one.
    if !model.settings().is_shard() {
        warnings.extend(without_codes(model));
        warnings.extend(without_description(model));
        warnings.extend(without_mark(weights));
        warnings.extend(unlisted(model, weights));
    }
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
const CODES: [(&str, &[&str]); 20] = [
    (".weight_scale", &[".weight", ".weight_packed"]),
    (".weight_scale_inv", &[".weight"]),
    (".weight_scale_2", &[".weight"]),
    (".weight_global_scale", &[".weight_packed"]),
    (".weight_shape", &[".weight_packed", ".weight"]),
    (".weight_zero_point", &[".weight_packed", ".weight"]),
    (".weight_g_idx", &[".weight_packed", ".weight"]),
    (".weight_format", &[".weight"]),
    (".scale_weight", &[".weight"]),
    (".scale", &[".weight"]),
    (".qzeros", &[".qweight"]),
    (".g_idx", &[".qweight"]),
    (".biases", &[".weight"]),
    (".scales", &[".weight", ".qweight"]),
    (".SCB", &[".weight"]),
    (".nbits", &[".W_q"]),
    (".unpack_view_dtype", &[".W_q"]),
    (".quant_map", &[""]),
    (".weight._scale", &[".weight._data", ".weight"]),
    // Stacked experts.
    ("_scales", &["_blocks"]),
];

/// The ends of the names of scales of stacked experts: what is in front of them is the name of the codes.
const OF_EXPERTS: [&str; 4] = ["_weight_scale", "_weight_scale_2", "_scale_inv", "_scale"];

/// Scales whose codes are gone, with everything that was a weight. One warning for each weight.
fn without_codes(model: &Model<'_>) -> Vec<Warning> {
    let (mut warnings, mut known) = (Vec::new(), HashSet::new());
    let of_experts = OF_EXPERTS.map(|end| (end, &[""][..]));
    for (end, codes) in CODES.into_iter().chain(of_experts) {
        for stem in model.ending(end) {
            let has = |end: &str| model.stored(&format!("{stem}{end}")).is_some();
            if codes.iter().any(|end| has(end)) || !describes_codes(model, stem, end) {
                continue;
            }
            if known.insert(stem) {
                let name = format!("{stem}{end}");
                let codes = codes.first().copied().unwrap_or_default();
                let message = format!("{name} describes codes, and {stem}{codes} is missing");
                warnings.push(warning(&name, message));
            }
        }
    }
    warnings
}

/// Whether a tensor of this name is a part of a quantized weight. Some names have other meanings, too.
fn describes_codes(model: &Model<'_>, stem: &str, end: &str) -> bool {
    let name = format!("{stem}{end}");
    let Some(tensor) = model.get(&name) else { return false };
    let has = |end: &str| model.stored(&format!("{stem}{end}")).is_some();
    let settings = model.settings();
    let rank = tensor.shape.len();
    // A module ends in front of a point. `layer._scale` is of torchao, whose header says more.
    let is_expert = !stem.ends_with("weight") && !stem.ends_with('.') && !stem.is_empty();
    let is_mlx = model.header("format") == Some("mlx")
        || settings.method().is_none() && settings.number("group_size").is_some();
    match end {
        ".biases" => has(".scales") || (is_mlx && rank > 1),
        ".nbits" => has(".scale") || has(".zero"),
        ".scale" => *tensor.value_type == *"f8_e8m0fnu",
        ".g_idx" => has(".scales") || has(".qzeros"),
        ".scales" => {
            let is_packed = matches!(settings.method(), Some("gptq" | "awq" | "auto-round"));
            rank > 1 && (is_mlx || is_packed || tensor.is(DType::U8))
        }
        "_scales" => tensor.is(DType::U8) && rank == 3 && stem.contains("experts"),
        "_scale" => {
            is_expert && rank == 3 && settings.method().is_some() && stem.contains("experts")
        }
        "_weight_scale" | "_weight_scale_2" | "_scale_inv" => is_expert,
        _ => true,
    }
}

/// The ends of names of codes, their type, their rank, and the end of what is missing beside them.
const PARTS: [(&str, DType, usize, &str); 3] = [
    (".qweight", DType::I32, 2, ".scales"),
    (".weight._data", DType::I8, 2, ".weight._scale"),
    ("_blocks", DType::U8, 4, "_scales"),
];

/// Codes that no dialect has taken, because what describes them is gone.
fn without_description(model: &Model<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (end, dtype, rank, other) in PARTS {
        for stem in model.ending(end) {
            let name = format!("{stem}{end}");
            let is_codes = model.get(&name).is_some_and(|it| {
                it.shape.len() >= rank && (it.is(dtype) || dtype == DType::I8 && it.is_fp8())
            });
            let is_codes = is_codes && (end != "_blocks" || stem.contains("experts"));
            let part = match model.stored(&format!("{stem}{other}")) {
                Some(_) => "a tensor beside them".to_owned(),
                None => format!("{stem}{other}"),
            };
            if is_codes {
                let message = format!("{name} has codes, and {part} is missing");
                warnings.push(warning(&name, message));
            }
        }
    }
    warnings
}

/// Weights of other dialects in a file whose quantized layers ComfyUI marks: it takes their codes for values.
fn without_mark(weights: &[Weight]) -> Vec<Warning> {
    let marks = |weight: &&Weight| weight.parts.iter().any(|part| part.ends_with(".comfy_quant"));
    if !weights.iter().any(|weight| marks(&weight)) {
        return Vec::new();
    }
    let unmarked = weights.iter().filter(|weight| !marks(weight));
    let warned = unmarked.map(|weight| {
        let layer = weight.name.strip_suffix(".weight").unwrap_or(&weight.name);
        let message = format!(
            "{layer}.comfy_quant is missing, which other layers have: ComfyUI takes the codes for values"
        );
        warning(&weight.name, message)
    });
    warned.collect()
}

/// Weights that the header of torchao lists, and that are nowhere.
fn unlisted(model: &Model<'_>, weights: &[Weight]) -> Vec<Warning> {
    let listed = model.header("tensor_names").and_then(|it| serde_json::from_str(it).ok());
    let listed: Vec<String> = listed.unwrap_or_default();
    let known: HashSet<&str> = weights.iter().map(|weight| &*weight.name).collect();
    let gone =
        listed.iter().filter(|name| !known.contains(&***name) && model.stored(name).is_none());
    let message = |name: &String| format!("the header lists {name}, which is missing");
    gone.map(|name| warning(name, message(name))).collect()
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
            let here = match model.settings().is_shard() {
                true => " in this shard of a set",
                false => "",
            };
            let message = format!(
                "{name} is of the type {}, as the codes of {other} are, and has no scale{here}: it is taken as it is",
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
