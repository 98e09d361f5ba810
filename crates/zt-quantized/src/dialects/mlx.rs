//! MLX: `X.weight`, U32, with `X.scales` and, in the affine mode, `X.biases`.
//!
//! Source: `mlx.core.dequantize` of mlx 0.32. Codes are a stream of bits along the columns, the lowest first. Bits,
//! group size and mode are in `config.json` only, where single layers may have their own.

use serde_json::Value;
use zt::{DType, FloatType, Result};

use crate::dialects::scaled::scale_codes;
use crate::dialects::{Dialect, E2M1, integers};
use crate::fault::Fault;
use crate::find::byte_values;
use crate::model::{Model, Shape};
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Mlx;

const NAME: &str = "mlx";

impl Dialect for Mlx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let is_mlx = model.header("format") == Some("mlx");
        let mut weights = Vec::new();
        for layer in model.ending("weight") {
            let of = |part: &str| format!("{layer}{part}");
            let codes = model.get(&of("weight")).filter(|it| it.is(DType::U32));
            let rows = |shape: &[u64]| shape.split_last().map(|(_, rows)| rows.to_vec());
            let is_scaled = |codes: &Shape<'_>| {
                model.get(&of("scales")).is_some_and(|it| rows(it.shape) == rows(codes.shape))
            };
            if codes.is_some_and(|codes| codes.shape.len() > 1 && (is_mlx || is_scaled(codes))) {
                let parts = ["weight", "scales", "biases"].map(of).into_iter();
                let parts = parts.filter(|part| model.get(part).is_some());
                let (float, formula) = (float(model, layer), formula(model, layer));
                weights.push(Weight::new(of("weight"), NAME, parts, float, formula));
            }
        }
        Ok(weights)
    }
}

fn float(model: &Model<'_>, layer: &str) -> FloatType {
    model.float_of(&format!("{layer}scales"))
}

/// A key of the settings of a layer, or else of all layers. A layer with settings of its own has none of the others, as
/// `nn.quantize` has it.
fn setting<'s>(model: &'s Model<'_>, layer: &str, key: &str) -> Option<&'s Value> {
    let settings = model.settings();
    match settings.get(layer.trim_end_matches('.')).filter(|it| it.is_object()) {
        Some(own) => own.get(key),
        None => settings.get(key),
    }
}

fn formula(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}{part}");
    let rule = |what: String| zt::Error::from(Fault::Rule { dialect: NAME, what });
    let number = |key: &str| setting(model, layer, key).and_then(Value::as_u64);
    let mode = setting(model, layer, "mode").and_then(Value::as_str);
    let (bits, group) = (number("bits"), number("group_size"));
    if (mode, bits, group) == (None, None, None) {
        return Err(rule("no settings beside the file give bits and group_size".to_owned()));
    }
    // `_defaults_for_mode` of mlx.
    let mode = mode.unwrap_or("affine");
    let usual = match mode {
        "mxfp4" => [32, 4],
        "mxfp8" => [32, 8],
        "nvfp4" => [16, 4],
        _ => [64, 4],
    };
    let (group, bits) = (group.unwrap_or(usual[0]), bits.unwrap_or(usual[1]));
    let known = match mode {
        "affine" => [2, 3, 4, 5, 6, 8].contains(&bits),
        "mxfp4" | "nvfp4" => bits == 4,
        "mxfp8" => bits == 8,
        _ => false,
    };
    let bits = u32::try_from(bits).unwrap_or(0);
    if !known || !(1..=1 << 20).contains(&group) {
        return Err(Fault::Unknown { dialect: NAME, what: format!("{mode} of {bits} bits") }.into());
    }
    let words = model.need(NAME, &of("weight"))?.clone();
    let scales = model.need(NAME, &of("scales"))?.clone();
    let [count, rows, word_columns] = words.matrices().ok_or(Fault::TooLong)?;
    let groups = scales.shape.last().copied().unwrap_or(0);
    let columns = groups.checked_mul(group).ok_or(Fault::TooLong)?;
    let of_words = word_columns.checked_mul(32).ok_or(Fault::TooLong)?;
    if columns.checked_mul(bits.into()) != Some(of_words) {
        return Err(rule(format!(
            "{} has {word_columns} words a row, and {groups} groups of {group} codes of {bits} bits need {}",
            of("weight"),
            columns.saturating_mul(bits.into()).div_ceil(32)
        )));
    }
    let matrix = [count, rows, columns];
    let values = match mode {
        "affine" => integers(bits, 0.0),
        "mxfp8" => byte_values("f8_e4m3fn")?,
        _ => E2M1.to_vec(),
    };
    let tensor = model.tensor(NAME, &of("weight"))?;
    let codes = Codes::packed(tensor, Packing::bits(bits), values, matrix)?;
    let mut shape = words.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, codes)?.block(1, group);
    let grid = formula.grid();
    if mode == "affine" {
        let scale = Codes::numbers(model.tensor(NAME, &of("scales"))?, grid)?;
        let bias = Codes::numbers(model.tensor(NAME, &of("biases"))?, grid)?;
        return formula.scale(scale)?.bias(bias);
    }
    if mode == "nvfp4" {
        let tensor = model.tensor(NAME, &of("scales"))?;
        let values = byte_values("f8_e4m3fn")?;
        return formula.scale(Codes::packed(tensor, Packing::bytes(), values, grid)?);
    }
    formula.scale(scale_codes(model, NAME, &of("scales"), true, grid)?)
}
