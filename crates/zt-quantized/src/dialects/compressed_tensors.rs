//! Packed codes of compressed-tensors 0.20: `X.weight_packed` with `X.weight_scale`.
//!
//! Sources: `compressors/pack_quantized`, `compressors/nvfp4` and `compressors/mxfp4` of that release.
//! `weight_g_idx` was written until 2026, and checkpoints with it are on the Hub.

use serde_json::Value;
use zt::{DType, Result};

use crate::dialects::scaled::scale_codes;
use crate::dialects::{Dialect, E2M1, integers, ratio};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct CompressedTensors;

const INT: &str = "compressed-tensors";
const NVFP4: &str = "nvfp4";
const MXFP4: &str = "mxfp4";

impl Dialect for CompressedTensors {
    fn name(&self) -> &'static str {
        INT
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let layers = model.ending("weight_packed").into_iter();
        Ok(layers.map(|layer| weight(model, layer)).collect())
    }
}

fn weight(model: &Model<'_>, layer: &str) -> Weight {
    let of = |part: &str| format!("{layer}{part}");
    let (packed, scale) = (of("weight_packed"), of("weight_scale"));
    let is_fp4 = model.get(&packed).is_some_and(|it| it.dtype == DType::U8);
    let is_e8m0 =
        model.get(&scale).is_some_and(|it| it.is(DType::U8) || *it.value_type == *"f8_e8m0fnu");
    let (dialect, formula) = match (is_fp4, is_e8m0) {
        (false, _) => (INT, packed_integers(model, layer)),
        (true, true) => (MXFP4, fp4(model, layer, MXFP4, 32)),
        (true, false) => (NVFP4, fp4(model, layer, NVFP4, 16)),
    };
    let parts = ["packed", "scale", "shape", "zero_point", "g_idx", "global_scale"];
    let parts = parts.iter().map(|part| of(&format!("weight_{part}")));
    let parts = parts.filter(|part| model.get(part).is_some());
    let float = if is_fp4 { model.float() } else { model.float_of(&scale) };
    Weight::new(of("weight"), dialect, parts, float, formula)
}

/// Codes of FP4 with a scale for each group of columns. Of NVFP4, the global scale divides.
fn fp4(model: &Model<'_>, layer: &str, dialect: &'static str, group: u64) -> Result<Formula> {
    let packed = format!("{layer}weight_packed");
    let shape = model.need(dialect, &packed)?.clone();
    let [count, rows, half] = shape.matrices().ok_or(Fault::TooLong)?;
    let columns = half.checked_mul(2).ok_or(Fault::TooLong)?;
    let codes = Codes::packed(
        model.tensor(dialect, &packed)?,
        Packing::bits(4),
        E2M1.to_vec(),
        [count, rows, columns],
    )?;
    let mut shape = shape.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, codes)?.groups_of(group)?;
    let grid = formula.grid();
    let is_e8m0 = dialect == MXFP4;
    let scale = scale_codes(model, dialect, &format!("{layer}weight_scale"), is_e8m0, grid)?;
    let formula = formula.scale(scale)?;
    if is_e8m0 {
        return Ok(formula);
    }
    formula.global(model.tensor(dialect, &format!("{layer}weight_global_scale"))?, true)
}

/// Integers in words of 32 bits along the columns, the lowest bits first, and above zero: `code - 2^(bits - 1)`.
fn packed_integers(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}weight_{part}");
    let shape = model.integers(INT, &of("shape"))?;
    let [rows, columns] = *shape else {
        return Err(rule(format!("{} has {} sizes, not 2", of("shape"), shape.len())));
    };
    let scale = model.need(INT, &of("scale"))?.clone();
    let groups = match *scale.shape {
        [_] | [_, 1] => 1,
        [_, groups] => groups,
        _ => return Err(rule(format!("{} has {} dimensions", of("scale"), scale.shape.len()))),
    };
    let group = if groups == 1 { columns } else { columns.div_ceil(groups) };
    let zero = of("zero_point");
    let has_zero = model.get(&zero).is_some();
    let order = of("g_idx");
    let has_order = model.get(&order).is_some();
    let packed = model.need(INT, &of("packed"))?.clone();
    let words = packed.shape.last().copied().unwrap_or(0);
    let fits = |bits: &u32| columns.div_ceil(32u64.strict_div(u64::from(*bits))) == words;
    let bits = match schemes(model) {
        None => [4, 8, 2, 3].into_iter().find(fits),
        Some(schemes) => {
            let found = schemes.iter().find(|scheme| {
                let is_group = match scheme.group {
                    Some(size) => {
                        size == group && ratio(columns, size).is_none_or(|it| it == groups)
                    }
                    None => groups == 1,
                };
                fits(&scheme.bits)
                    && is_group
                    && scheme.is_symmetric != has_zero
                    && (!scheme.is_ordered || has_order)
            });
            let found = found.ok_or_else(|| {
                let (with, order) = (if has_zero { "with" } else { "without" }, if has_order { "with" } else { "without" });
                rule(format!(
                    "no group of the settings has {words} words a row, {groups} groups of {group} columns, \
                     {with} zero points and {order} g_idx"
                ))
            })?;
            Some(found.bits)
        }
    };
    let bits = bits
        .ok_or_else(|| rule(format!("{words} words do not hold the {columns} columns of a row")))?;
    let middle = f32::from(1u8 << bits.strict_sub(1));
    let packing = Packing::words(bits);
    let values = integers(bits, -middle);
    let tensor = model.tensor(INT, &of("packed"))?;
    let codes = Codes::packed(tensor, packing.clone(), values.clone(), [1, rows, columns])?;
    let mut formula = Formula::new([rows, columns], codes)?;
    formula = match has_order {
        // The length of a group says how many there are.
        true => formula.block(1, columns.div_ceil(groups)),
        false => formula.block(1, group),
    };
    let grid = formula.grid();
    formula = formula.scale(Codes::numbers(model.tensor(INT, &of("scale"))?, grid)?)?;
    if has_zero {
        let tensor = model.tensor(INT, &zero)?;
        // Packed down the rows.
        let zero = match tensor.tensor().dtype() {
            Some(DType::I32) => Codes::packed(tensor, packing.down_columns(4), values, grid)?,
            _ => Codes::numbers(tensor, grid)?,
        };
        formula = formula.zero(zero, 0.0)?;
    }
    if has_order {
        formula = formula.groups(model.tensor(INT, &order)?)?;
    }
    Ok(formula)
}

fn rule(what: String) -> zt::Error {
    Fault::Rule { dialect: INT, what }.into()
}

/// What the settings say of the weights of one group of layers.
struct Scheme {
    bits: u32,
    group: Option<u64>,
    is_symmetric: bool,
    /// Whether the columns have groups of their own.
    is_ordered: bool,
}

/// The groups of the settings; `None` if there are none.
fn schemes(model: &Model<'_>) -> Option<Vec<Scheme>> {
    let groups = model.settings().get("config_groups")?.as_object()?;
    let scheme = |group: &Value| {
        let weights = group.get("weights")?;
        let size = weights.get("group_size").and_then(Value::as_u64);
        Some(Scheme {
            bits: u32::try_from(weights.get("num_bits")?.as_u64()?)
                .ok()
                .filter(|bits| (1..=8).contains(bits))?,
            group: size.filter(|size| *size > 0),
            is_symmetric: weights.get("symmetric").and_then(Value::as_bool).unwrap_or(true),
            is_ordered: weights.get("actorder").and_then(Value::as_str) == Some("group"),
        })
    };
    Some(groups.values().filter_map(scheme).collect())
}
