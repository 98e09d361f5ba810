//! Codes of a byte with a scale under a name beside them. Every scale multiplies.
//!
//! | codes | scale | who writes it |
//! | --- | --- | --- |
//! | `X.weight`, FP8 | `X.weight_scale_inv`: blocks | DeepSeek-V3, `weight_dequant` of its `inference/kernel.py` |
//! | `X.weight`, FP8 or int8 | `X.weight_scale`: all, a row or a block; `X.weight_zero_point`, `X.weight_g_idx` | compressed-tensors, `NaiveQuantizationCompressor`; ModelOpt |
//! | `X.weight`, FP8 | `X.weight_scale`, E8M0 in U8: 32 columns | MXFP8 of compressed-tensors and ModelOpt |
//! | `X.weight`, FP8 | `X.qscale_weight`: all | Mistral's own checkpoints |
//! | `X.weight`, FP8 or FP4 in int8 | `X.scale`, E8M0: blocks, or 32 columns | DeepSeek-V4 |

use std::collections::HashSet;

use serde_json::Value;
use zt::{DType, Result};

use crate::dialects::{Dialect, E2M1, exponents, ratio};
use crate::fault::Fault;
use crate::find::byte_values;
use crate::model::{Model, Shape};
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Scaled;

const NAME: &str = "scaled-fp8";
const INT8: &str = "scaled-int8";
const FP4: &str = "deepseek-fp4";

/// The names of scales, the most special first.
const SCALES: [&str; 5] =
    ["weight_scale_inv", "weight_scale", "scale_weight", "qscale_weight", "scale"];

impl Dialect for Scaled {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for end in ["weight", ""] {
            let stems = if end.is_empty() { experts(model) } else { layers(model) };
            for (stem, scales) in stems {
                let name = format!("{stem}{end}");
                let Some(codes) = model.get(&name) else { continue };
                let is_int8 = codes.is(DType::I8);
                if !codes.is_fp8() && !is_int8 {
                    continue;
                }
                let scale = scales.into_iter().find(|scale| model.get(scale).is_some());
                let Some(scale) = scale else {
                    weights.extend(without_scale(model, &name, codes));
                    continue;
                };
                let is_fp4 =
                    is_int8 && model.get(&scale).is_some_and(|it| *it.value_type == *"f8_e8m0fnu");
                let dialect = match (is_fp4, is_int8) {
                    (true, _) => FP4,
                    (_, true) => INT8,
                    _ => NAME,
                };
                let formula = if is_fp4 {
                    fp4(model, &name, &scale)
                } else {
                    bytes(model, dialect, &name, &scale)
                };
                let float = model.float_of(&scale);
                let parts = [name.clone(), scale.clone()].into_iter();
                let parts =
                    parts.chain(beside(&scale).into_iter().filter(|it| model.get(it).is_some()));
                let formula = formula.and_then(|formula| plain(model, stem, formula));
                let weight = Weight::new(name, dialect, parts, float, formula);
                weights.push(with_inputs(model, stem, weight));
            }
        }
        // Stacked experts whose scale is gone.
        let known: HashSet<String> = weights.iter().map(|weight| weight.name.clone()).collect();
        for name in model.ending("").into_iter().filter(|name| !name.ends_with("weight")) {
            let codes = model.get(name).filter(|it| it.is_fp8() && it.shape.len() > 2);
            if let Some(codes) = codes.filter(|_| !known.contains(name)) {
                weights.extend(without_scale(model, name, codes));
            }
        }
        Ok(weights)
    }
}

/// The layers that have a weight, and the names that its scale may have.
fn layers<'m>(model: &'m Model<'_>) -> Vec<(&'m str, Vec<String>)> {
    let layers = model.ending("weight").into_iter();
    let scales = |stem: &str| SCALES.map(|scale| format!("{stem}{scale}")).to_vec();
    layers.map(|stem| (stem, scales(stem))).collect()
}

/// Parameters that are no `weight` of a layer, such as stacked experts: `NAME` with `NAME_scale_inv`, `NAME_scale` or
/// `NAME_weight_scale`.
fn experts<'m>(model: &'m Model<'_>) -> Vec<(&'m str, Vec<String>)> {
    let mut found = Vec::new();
    for end in ["_weight_scale", "_scale_inv", "_scale"] {
        for stem in model.ending(end).into_iter().filter(|stem| !stem.ends_with("weight")) {
            found.push((stem, vec![format!("{stem}{end}")]));
        }
    }
    found
}

/// A weight of FP8 that the settings call quantized, and whose scale is missing.
fn without_scale(model: &Model<'_>, name: &str, codes: &Shape<'_>) -> Option<Weight> {
    let settings = model.settings();
    let is_quantized = match settings.method()? {
        "fp8" | "compressed-tensors" | "fbgemm_fp8" => true,
        "modelopt" => settings.text("quant_algo").is_some_and(|it| {
            let name = if codes.is_fp8() { "FP8" } else { "W8A" };
            it.contains(name) || it == "MIXED_PRECISION"
        }),
        _ => false,
    };
    if !is_quantized || codes.shape.len() < 2 {
        return None;
    }
    let (dialect, scale) = match (codes.is_fp8(), settings.method()) {
        (true, Some("fp8")) => (NAME, "_scale_inv"),
        (true, _) => (NAME, "_scale"),
        (false, _) => (INT8, "_scale"),
    };
    let fault = Fault::Missing { dialect, part: format!("{name}{scale}") };
    let parts = [name.to_owned()];
    Some(Weight::new(name, dialect, parts, model.float(), Err(fault.into())))
}

/// Codes of FP8 or int8, one a byte, that stand for themselves.
pub(super) fn alone(model: &Model<'_>, dialect: &'static str, name: &str) -> Result<Formula> {
    let codes = model.need(dialect, name)?.clone();
    let values = byte_values(&codes.value_type)?;
    let tensor = model.tensor(dialect, name)?;
    let all = Codes::packed(tensor, Packing::bytes(), values, matrix(&codes)?)?;
    Formula::new(codes.shape, all)
}

fn matrix(codes: &Shape<'_>) -> Result<[u64; 3]> {
    match *codes.shape {
        [len] => Ok([1, 1, len]),
        _ => Ok(codes.matrices().ok_or(Fault::TooLong)?),
    }
}

/// Codes of FP8 or int8, one a byte, and their scale.
pub(super) fn bytes(
    model: &Model<'_>,
    dialect: &'static str,
    name: &str,
    scale: &str,
) -> Result<Formula> {
    let codes = model.need(dialect, name)?.clone();
    let scales = model.need(dialect, scale)?.clone();
    let is_e8m0 = scales.is(DType::U8);
    let settings = configured(model, layer_of(name));
    let is_sized = !settings.is_empty() && settings.iter().all(Option::is_some);
    let leading = leading(&codes, &scales).filter(|_| !is_e8m0 && !is_sized);
    let [count, rows, columns] = match leading {
        Some(matrix) => matrix,
        None => matrix(&codes)?,
    };
    let values = byte_values(&codes.value_type)?;
    let tensor = model.tensor(dialect, name)?;
    let all = Codes::packed(tensor, Packing::bytes(), values, [count, rows, columns])?;
    let formula = Formula::new(codes.shape, all)?;
    // Blocks of ModelOpt may have dimensions of one between theirs.
    let blocks = match *scales.shape {
        _ if leading.is_some() => Some([1, u64::MAX]),
        [r, 1, c, 1] if codes.shape.len() == 2 => {
            let shape = &[r, c][..];
            let scales = Shape { shape, ..scales.clone() };
            blocks(&settings, [count, rows, columns], &scales, is_e8m0)
        }
        _ => blocks(&settings, [count, rows, columns], &scales, is_e8m0),
    };
    let Some([block_rows, block_columns]) = blocks else {
        let (name, shape) = (scale.to_owned(), scales.shape.to_vec());
        return Err(Fault::Shape { name, shape, count, rows, columns }.into());
    };
    let formula = formula.block(block_rows, block_columns);
    let [zero, order] = beside(scale);
    let is_one = scales.count() == 1 && count > 1;
    let scale = match is_one {
        // One scale for all of several matrices.
        true => return one_scale(model, dialect, formula, scale, [&zero, &order]),
        false => scale_codes(model, dialect, scale, is_e8m0, formula.grid())?,
    };
    let mut formula = formula.scale(scale)?;
    let groups = model.settings().groups(layer_of(name)).unwrap_or_default();
    let is_asymmetric = |weights: &&Value| weights.get("symmetric") == Some(&Value::Bool(false));
    if model.get(&zero).is_none() && !groups.is_empty() && groups.iter().all(is_asymmetric) {
        return Err(Fault::Missing { dialect, part: zero }.into());
    }
    if model.get(&zero).is_some() {
        let grid = formula.grid();
        formula = formula.zero(Codes::numbers(model.tensor(dialect, &zero)?, grid)?, 0.0)?;
    }
    if model.get(&order).is_some() {
        formula = formula.groups(model.tensor(dialect, &order)?)?;
    }
    Ok(formula)
}

fn one_scale(
    model: &Model<'_>,
    dialect: &'static str,
    formula: Formula,
    scale: &str,
    others: [&String; 2],
) -> Result<Formula> {
    if let Some(other) = others.into_iter().find(|other| model.get(other).is_some()) {
        let what = format!("{other} beside one scale for several matrices");
        return Err(Fault::Unknown { dialect, what }.into());
    }
    formula.global(model.tensor(dialect, scale)?, false)
}

/// The zero points, and the groups of columns, that may lie beside a scale.
fn beside(scale: &str) -> [String; 2] {
    let stem = scale.strip_suffix("scale").unwrap_or(scale);
    ["zero_point", "g_idx"].map(|part| format!("{stem}{part}"))
}

/// The codes as one matrix, if each place of the leading dimensions has a scale, as the outputs of a convolution have.
fn leading(codes: &Shape<'_>, scales: &Shape<'_>) -> Option<[u64; 3]> {
    let shared = scales.shape.iter().zip(codes.shape).take_while(|(a, b)| a == b).count();
    let (outer, inner) = codes.shape.split_at_checked(shared)?;
    let is_leading = !outer.is_empty()
        && inner.len() > 1
        && scales.shape.get(shared..)?.iter().all(|len| *len == 1);
    let product = |dimensions: &[u64]| zt::formats::element_count(dimensions);
    is_leading.then_some([1, product(outer)?, product(inner)?])
}

/// The formula of a layer that nothing else is added to.
pub(super) fn plain(model: &Model<'_>, layer: &str, formula: Formula) -> Result<Formula> {
    match model.get(&format!("{layer}svdquant_lora_a")) {
        None => Ok(formula),
        Some(_) => {
            let what = format!("the product {layer}svdquant_lora_a, which is added to the weight,");
            Err(Fault::Unknown { dialect: NAME, what }.into())
        }
    }
}

/// The weight of a layer whose inputs may be multiplied, too.
pub(super) fn with_inputs(model: &Model<'_>, layer: &str, weight: Weight) -> Weight {
    let scale = format!("{layer}pre_quant_scale");
    if model.get(&scale).is_none() {
        return weight;
    }
    let message =
        format!("{scale} multiplies the inputs of the layer: it is kept, and is not in the weight");
    weight.with_warning("quantized-scale", message)
}

/// Scales that are numbers, or exponents of E8M0 in U8.
pub(super) fn scale_codes(
    model: &Model<'_>,
    dialect: &'static str,
    name: &str,
    is_e8m0: bool,
    grid: [u64; 3],
) -> Result<Codes> {
    let tensor = model.tensor(dialect, name)?;
    match is_e8m0 {
        true => Codes::packed(tensor, Packing::bytes(), exponents()?, grid),
        false => Codes::numbers(tensor, grid),
    }
}

/// The rows and columns that share one of `scales`.
fn blocks(
    configured: &[Option<[u64; 2]>],
    [count, rows, columns]: [u64; 3],
    scales: &Shape<'_>,
    is_e8m0: bool,
) -> Option<[u64; 2]> {
    const ALL: u64 = u64::MAX;
    let found = scales.count();
    if let ([_, _, ..], false) = (scales.shape, is_e8m0) {
        let fits =
            |[r, c]: &[u64; 2]| scales.shape.ends_with(&[rows.div_ceil(*r), columns.div_ceil(*c)]);
        if let Some(block) = configured.iter().flatten().find(|block| fits(block)) {
            return Some(*block);
        }
        if !configured.is_empty() && configured.iter().all(Option::is_some) {
            return None;
        }
    }
    if is_e8m0 {
        // A block of 32 columns, always.
        let grid = [rows, columns.div_ceil(32)];
        return scales.shape.ends_with(&grid).then_some([1, 32]);
    }
    if found == 1 || (found == count && (count > 1 || scales.shape.len() < 2)) {
        return Some([ALL, ALL]);
    }
    let rows_of_all = count.checked_mul(rows)?;
    let [grid_rows, grid_columns] = match scales.shape {
        [_] => [rows, 1],
        [.., r, c] if found == count.checked_mul(*r)?.checked_mul(*c)? => [*r, *c],
        // The experts by the rows of each.
        [.., r] if found == rows_of_all && *r == rows => [rows, 1],
        // Or by their columns, of experts that ModelOpt multiplies from the other side.
        [.., c] if Some(found) == count.checked_mul(columns) && *c == columns => {
            return Some([ALL, 1]);
        }
        _ => return None,
    };
    if grid_columns == 1 && grid_rows == rows {
        return (found == rows_of_all).then_some([1, ALL]);
    }
    if grid_rows == rows
        && let Some(group) = ratio(columns, grid_columns)
    {
        return Some([1, group]);
    }
    let side = side([rows, columns], [grid_rows, grid_columns])?;
    Some([side, side])
}

/// The module that has a weight of this name, or is one.
fn layer_of(name: &str) -> &str {
    name.strip_suffix(".weight").unwrap_or(name)
}

/// The blocks and groups of columns that the settings give a layer. `None` for what needs no size.
pub(super) fn configured(model: &Model<'_>, layer: &str) -> Vec<Option<[u64; 2]>> {
    let settings = model.settings();
    let size = |it: &Value| it.as_u64().filter(|it| *it > 0);
    let block = |sizes: &Value| match &**sizes.as_array()? {
        [rows, columns] => Some([size(rows)?, size(columns)?]),
        _ => None,
    };
    if let Some(sizes) = settings.get("weight_block_size") {
        return vec![block(sizes)];
    }
    let groups = settings.groups(layer.trim_end_matches('.')).unwrap_or_default().into_iter();
    let sizes = groups.map(|weights| match weights.get("strategy")?.as_str()? {
        "block" => block(weights.get("block_structure")?),
        "group" => Some([1, size(weights.get("group_size")?)?]),
        _ => None,
    });
    sizes.collect()
}

/// The side of square blocks that settings do not give: 128, as everyone has it, or the only power of two that fits.
fn side(shape: [u64; 2], grid: [u64; 2]) -> Option<u64> {
    let fits = |side: &u64| shape.map(|len| len.div_ceil(*side)) == grid;
    let mut sides = (0..20).map(|power| 1u64 << power).filter(fits);
    [128].into_iter().find(fits).or_else(|| sides.next().filter(|_| sides.next().is_none()))
}

/// FP4 in int8, two codes a byte, the even column in the low half; a scale of E8M0 for 32 columns.
fn fp4(model: &Model<'_>, name: &str, scale: &str) -> Result<Formula> {
    let codes = model.need(FP4, name)?.clone();
    let [count, rows, half] = codes.matrices().ok_or(Fault::TooLong)?;
    let columns = half.checked_mul(2).ok_or(Fault::TooLong)?;
    let tensor = model.tensor(FP4, name)?;
    let all = Codes::packed(tensor, Packing::bits(4), E2M1.to_vec(), [count, rows, columns])?;
    let mut shape = codes.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, all)?.groups_of(32)?;
    let grid = formula.grid();
    formula.scale(Codes::numbers(model.tensor(FP4, scale)?, grid)?)
}
