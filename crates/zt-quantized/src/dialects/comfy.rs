//! FP8, int8 and NVFP4 of ComfyUI, which names quantized layers in three ways.
//!
//! | names | where |
//! | --- | --- |
//! | a JSON text in the tensor `X.comfy_quant` | the newest |
//! | the JSON text `_quantization_metadata` of the header | before |
//! | a tensor `scaled_fp8` under the prefix of the model, with `X.scale_weight` | the oldest |
//!
//! Sources: `comfy/ops.py` of ComfyUI and comfy-kitchen 0.2.40. Every scale multiplies. Of NVFP4, the even column has
//! the high half of a byte. Scales of NVFP4 and MXFP8 lie in tiles of 128 rows and 4 columns. Weights that are rotated
//! (`convrot`) are named, and not computed.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use zt::{DType, FloatType, Result};

use crate::dialects::{Dialect, E2M1, exponents, scaled};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Comfy;

const FP8: &str = "comfy-fp8";
const NVFP4: &str = "comfy-nvfp4";

impl Dialect for Comfy {
    fn name(&self) -> &'static str {
        FP8
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for (layer, format) in layers(model)? {
            weights.push(weight(model, &layer, format));
        }
        let prefixes: HashSet<&str> = model.ending("scaled_fp8").into_iter().collect();
        if !prefixes.is_empty() {
            for layer in model.ending(".weight") {
                let ends = layer.match_indices('.').map(|(at, dot)| at.strict_add(dot.len()));
                let prefix = [0].into_iter().chain(ends).filter_map(|end| layer.get(..end));
                let prefix = prefix.into_iter().find(|prefix| prefixes.contains(prefix));
                let codes = model.get(&format!("{layer}.weight")).filter(|it| it.is_fp8());
                if let (Some(prefix), Some(_)) = (prefix, codes) {
                    weights.push(oldest(model, layer, &format!("{prefix}scaled_fp8")));
                }
            }
        }
        Ok(weights)
    }
}

/// The layers that are named, each with its format or what is wrong with its name.
fn layers(model: &Model<'_>) -> Result<BTreeMap<String, Result<String>>> {
    let mut layers = BTreeMap::new();
    for layer in model.ending(".comfy_quant") {
        let text = model.text(FP8, &format!("{layer}.comfy_quant"));
        let format = text.and_then(|text| {
            let json: Result<Value, _> = serde_json::from_slice(&text);
            let what =
                |error: serde_json::Error| format!("{layer}.comfy_quant is no JSON: {error}");
            let json = json.map_err(|error| Fault::Rule { dialect: FP8, what: what(error) })?;
            format_of(&json).ok_or_else(|| {
                let what = format!("{layer}.comfy_quant names no format");
                Fault::Rule { dialect: FP8, what }.into()
            })
        });
        layers.insert(layer.to_owned(), format);
    }
    let Some(text) = model.header("_quantization_metadata") else {
        return Ok(layers);
    };
    let rule = |what: String| Fault::Rule { dialect: FP8, what };
    let json: Value = serde_json::from_str(text)
        .map_err(|error| rule(format!("_quantization_metadata is no JSON: {error}")))?;
    for (layer, settings) in json.get("layers").and_then(Value::as_object).into_iter().flatten() {
        let format = format_of(settings);
        let format =
            format.ok_or_else(|| rule("_quantization_metadata names no format".to_owned()).into());
        layers.entry(layer.clone()).or_insert(format);
    }
    // Without its tensor, a layer cannot be listed.
    let is_missing = |layer: &&String| {
        let name = format!("{layer}.weight");
        model.get(&name).is_none() && !model.is_taken(&name)
    };
    let mut missing = layers.keys().filter(is_missing);
    match missing.next() {
        Some(layer) => {
            let part = format!("{layer}.weight");
            let error = zt::Error::from(Fault::Missing { dialect: FP8, part: part.clone() });
            Err(error.with_object(&part))
        }
        None => Ok(layers),
    }
}

fn format_of(json: &Value) -> Option<String> {
    let format = json.get("format")?.as_str()?;
    let is_rotated = json.get("convrot").and_then(Value::as_bool) == Some(true);
    Some(if is_rotated { format!("{format} with convrot") } else { format.to_owned() })
}

fn weight(model: &Model<'_>, layer: &str, format: Result<String>) -> Weight {
    let of = |part: &str| format!("{layer}.{part}");
    let parts = ["weight", "weight_scale", "weight_scale_2", "comfy_quant"].map(of).into_iter();
    let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
    let mut dialect = FP8;
    let formula = format.and_then(|format| match &*format {
        "mxfp8" => mxfp8(model, layer),
        "float8_e4m3fn" | "float8_e5m2" | "int8_tensorwise" => {
            model.need(FP8, &of("weight_scale"))?;
            scaled::bytes(model, FP8, &of("weight"), &of("weight_scale"))
        }
        "nvfp4" => {
            dialect = NVFP4;
            nvfp4(model, layer)
        }
        _ => Err(Fault::Unknown { dialect: FP8, what: format!("the format {format}") }.into()),
    });
    let weight = Weight::new(of("weight"), dialect, parts, FloatType::BF16, formula);
    weight.with_header(["_quantization_metadata".to_owned()])
}

fn nvfp4(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}.{part}");
    let [rows, half] = *model.need(NVFP4, &of("weight"))?.shape else {
        return Err(Fault::TooLong.into());
    };
    let columns = half.checked_mul(2).ok_or(Fault::TooLong)?;
    let tensor = model.tensor(NVFP4, &of("weight"))?;
    let matrix = [1, rows, columns];
    let codes = Codes::packed(tensor, Packing::high_first(), E2M1.to_vec(), matrix)?;
    let formula = Formula::new([rows, columns], codes)?.groups_of(16)?;
    let grid = formula.grid();
    let scale = Codes::tiled(model.tensor(NVFP4, &of("weight_scale"))?, grid)?;
    formula.scale(scale)?.global(model.tensor(NVFP4, &of("weight_scale_2"))?, false)
}

/// FP8 whose scales are exponents for 32 columns, in tiles.
fn mxfp8(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}.{part}");
    let formula = scaled::alone(model, FP8, &of("weight"))?.groups_of(32)?;
    let grid = formula.grid();
    let tensor = model.tensor(FP8, &of("weight_scale"))?;
    formula.scale(match model.need(FP8, &of("weight_scale"))?.is(DType::U8) {
        true => Codes::tiled_bytes(tensor, exponents()?, grid)?,
        false => Codes::tiled(tensor, grid)?,
    })
}

/// A layer of the oldest way. ComfyUI takes 1 for a scale that is missing.
fn oldest(model: &Model<'_>, layer: &str, mark: &str) -> Weight {
    let of = |part: &str| format!("{layer}.{part}");
    let (name, scale) = (of("weight"), of("scale_weight"));
    let parts = [name.clone(), scale.clone(), mark.to_owned()].into_iter();
    let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
    let has_scale = model.get(&scale).is_some_and(|it| !it.is(DType::U8));
    let formula = if has_scale {
        scaled::bytes(model, FP8, &name, &scale)
    } else {
        scaled::alone(model, FP8, &name)
    };
    let weight = Weight::new(name, FP8, parts, FloatType::BF16, formula);
    if has_scale {
        return weight;
    }
    let message = format!("{scale} is missing: 1 is taken for it, as ComfyUI does");
    weight.with_warning("quantized-scale", message)
}
