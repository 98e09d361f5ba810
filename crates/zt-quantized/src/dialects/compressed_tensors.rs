//! Packed codes of compressed-tensors 0.20: `X.weight_packed` with `X.weight_scale`.
//!
//! Sources: `compressors/pack_quantized`, `nvfp4`, `mxfp4` and `mxfp6` of that release.
//! `weight_g_idx` was written until 2026, and checkpoints with it are on the Hub.

use serde_json::Value;
use zt::{DType, Result};

use crate::dialects::scaled::{self, scale_codes};
use crate::dialects::{Dialect, E2M1, integers};
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
const MXFP6: &str = "mxfp6";

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
        (true, true) if is_fp6(model, layer) => (MXFP6, fp6(model, layer)),
        (true, true) => (MXFP4, fp4(model, layer, MXFP4, 32)),
        (true, false) => (NVFP4, fp4(model, layer, NVFP4, 16)),
    };
    let parts = ["packed", "scale", "shape", "zero_point", "g_idx", "global_scale"];
    let parts = parts.iter().map(|part| of(&format!("weight_{part}")));
    let parts = parts.filter(|part| model.get(part).is_some());
    let float = if is_fp4 { model.float() } else { model.float_of(&scale) };
    Weight::new(of("weight"), dialect, parts, float, formula)
}

/// Whether the settings say so, or else a scale is of 24 bytes, as 32 codes of six bits have.
fn is_fp6(model: &Model<'_>, layer: &str) -> bool {
    if let Some(groups) = model.settings().groups(layer.trim_end_matches('.')) {
        let mut bits = groups.iter().filter_map(|weights| weights.get("num_bits")?.as_u64());
        return bits.any(|bits| bits == 6);
    }
    let last = |part: &str| {
        model.get(&format!("{layer}weight_{part}")).and_then(|it| it.shape.last().copied())
    };
    matches!((last("packed"), last("scale")), (Some(bytes), Some(scales))
        if bytes > 0 && scales.checked_mul(24) == Some(bytes))
}

/// Codes of FP6, E2M3, four in three bytes, with a scale of E8M0 for 32 columns.
fn fp6(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let packed = format!("{layer}weight_packed");
    let shape = model.need(MXFP6, &packed)?.clone();
    let [count, rows, bytes] = shape.matrices().ok_or(Fault::TooLong)?;
    let columns = bytes.checked_mul(4).ok_or(Fault::TooLong)?.strict_div(3);
    // OCP Microscaling Formats 1.0, §5.3.2.
    let magnitude = |code: u8| match (code >> 3, f32::from(code & 7) / 8.0) {
        (0, fraction) => fraction,
        (exponent, fraction) => (1.0 + fraction) * f32::from(1u8 << exponent.strict_sub(1)),
    };
    let values = (0..64u8).map(|code| match code & 32 {
        0 => magnitude(code),
        _ => -magnitude(code & 31),
    });
    let tensor = model.tensor(MXFP6, &packed)?;
    let codes = Codes::packed(tensor, Packing::bits(6), values.collect(), [count, rows, columns])?;
    let mut shape = shape.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, codes)?.groups_of(32)?;
    let grid = formula.grid();
    formula.scale(scale_codes(model, MXFP6, &format!("{layer}weight_scale"), true, grid)?)
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
    let (outer, [rows, columns]) = match *shape {
        [rows, columns] => (1, [rows, columns]),
        [count, rows, columns] => (count, [rows, columns]),
        _ => return Err(rule(format!("{} has {} sizes, not 2 or 3", of("shape"), shape.len()))),
    };
    let scale = model.need(INT, &of("scale"))?.clone();
    let block = scaled::configured(model, layer).into_iter().flatten();
    let mut block = block.filter(|[r, c]| {
        scale.shape.ends_with(&[rows.div_ceil(*r), columns.div_ceil(*c)]) && *r > 1
    });
    let block = block.next();
    let groups = match *scale.shape {
        _ if scale.count() == 1 => 1,
        [_] => 1,
        [.., groups] => groups,
        [] => 1,
    };
    if groups == 0 {
        return Err(rule(format!("{} has no groups", of("scale"))));
    }
    let group = if groups == 1 { columns } else { columns.div_ceil(groups) };
    let (zero, order) = (of("zero_point"), of("g_idx"));
    let (has_zero, has_order) = (model.get(&zero).is_some(), model.get(&order).is_some());
    let words = model.need(INT, &of("packed"))?.shape.last().copied().unwrap_or(0);
    let schemes = schemes(model, layer);
    let known: Vec<(u32, u64)> = match &schemes {
        None => (1..=8).map(|bits| (bits, group)).collect(),
        Some(schemes) => {
            let fits = |scheme: &&Scheme| {
                let is_group = match scheme.group {
                    Some(size) => columns.div_ceil(size) == groups,
                    None => groups == 1 || block.is_some(),
                };
                let packings = packings(model, scheme.bits, columns, words);
                !packings.is_empty()
                    && is_group
                    && scheme.is_symmetric != has_zero
                    && (!scheme.is_ordered || has_order)
            };
            let found = schemes.iter().filter(fits);
            // A row of one group has the same values with a longer one.
            let size = |scheme: &Scheme| scheme.group.filter(|_| groups > 1).unwrap_or(group);
            found.map(|scheme| (scheme.bits, size(scheme))).collect()
        }
    };
    let mut found: Vec<(u32, u64, Packing)> = Vec::new();
    for (bits, group) in known {
        let packings = packings(model, bits, columns, words).into_iter();
        let new = packings.map(|packing| (bits, group, packing));
        found.extend(new);
    }
    // Without settings, only what nobody writes any more is padded.
    if schemes.is_none() && found.iter().any(|it| it.2 == dense(it.0)) {
        found.retain(|it| it.2 == dense(it.0));
    }
    found.dedup();
    let (with, also) =
        (if has_zero { "with" } else { "without" }, if has_order { "with" } else { "without" });
    let [(bits, group, packing)] = &*found else {
        let many = if found.is_empty() { "no group" } else { "more than one group" };
        return Err(rule(format!(
            "{many} of the settings has {words} words a row of {columns} columns, {groups} groups of {group} columns, \
             {with} zero points and {also} g_idx"
        )));
    };
    let middle = f32::from(1u8 << bits.strict_sub(1));
    let values = integers(*bits, -middle);
    let tensor = model.tensor(INT, &of("packed"))?;
    let codes = Codes::packed(tensor, packing.clone(), values.clone(), [outer, rows, columns])?;
    let formula = Formula::new(shape, codes)?;
    let is_one = scale.count() == 1 && (rows > 1 || outer > 1);
    let formula = match (block, is_one, has_order) {
        (Some([r, c]), ..) => formula.block(r, c),
        (_, true, _) => formula.block(u64::MAX, u64::MAX),
        // The length of a group says how many there are.
        (.., true) => formula.block(1, columns.div_ceil(groups)),
        _ => formula.block(1, *group),
    };
    let grid = formula.grid();
    let mut formula = formula.scale(Codes::numbers(model.tensor(INT, &of("scale"))?, grid)?)?;
    if has_zero {
        let tensor = model.tensor(INT, &zero)?;
        // Packed down the rows.
        let zero = match tensor.tensor().dtype() {
            Some(DType::I32) if [5, 7].contains(bits) => {
                let what = format!("zero points of {bits} bits that are packed");
                return Err(Fault::Unknown { dialect: INT, what }.into());
            }
            Some(DType::I32) => {
                Codes::packed(tensor, packing.clone().down_columns(4), values, grid)?
            }
            _ => Codes::numbers(tensor, grid)?,
        };
        formula = formula.zero(zero, 0.0)?;
    }
    if has_order {
        formula = formula.groups(model.tensor(INT, &order)?)?;
    }
    Ok(formula)
}

/// The ways in which `words` may hold the codes of a row. Since release 0.18 the codes are a stream without gaps;
/// earlier, a word has whole codes. The settings name the release.
fn packings(model: &Model<'_>, bits: u32, columns: u64, words: u64) -> Vec<Packing> {
    let of_word = 32u64.strict_div(u64::from(bits.clamp(1, 8)));
    let padded = columns.div_ceil(of_word) == words;
    let is_dense = columns.checked_mul(bits.into()).is_some_and(|it| it.div_ceil(32) == words);
    let is_same = 32u32.is_multiple_of(bits.max(1)) || columns <= of_word;
    let version = model.settings().text("version").and_then(|version| {
        let mut numbers = version.split('.').map(|it| it.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    let is_new = version.map(|version| version >= (0, 18));
    let mut found = Vec::new();
    if is_dense && (is_same || !padded || is_new != Some(false)) {
        found.push(dense(bits));
    }
    if padded && !is_same && (!is_dense || is_new != Some(true)) {
        found.push(Packing::words(bits));
    }
    found
}

/// A stream of codes in words of 32 bits.
fn dense(bits: u32) -> Packing {
    Packing::bits(bits).in_words(4)
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

/// The groups of the settings that a layer may be of; `None` if there are none.
fn schemes(model: &Model<'_>, layer: &str) -> Option<Vec<Scheme>> {
    let scheme = |weights: &Value| {
        if weights.get("type").and_then(Value::as_str).is_some_and(|it| it != "int") {
            return None;
        }
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
    let groups = model.settings().groups(layer.trim_end_matches('.'))?;
    Some(groups.into_iter().filter_map(scheme).collect())
}
