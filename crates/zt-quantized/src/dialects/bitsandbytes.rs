//! bitsandbytes 0.50: four bits in blocks of the flattened weight, and int8 with the greatest magnitude of each row.
//!
//! Sources: `QuantState.from_dict`, `dequantize_4bit` and `int8_vectorwise_dequant` of that release. Shape, type and
//! block size of four bits are in the JSON of `X.weight.quant_state.bitsandbytes__nf4` (or `__fp4`). The values come
//! from the `quant_map` of the file.

use std::collections::HashSet;

use serde::Deserialize;
use zt::{DType, FloatType, Result};

use crate::dialects::Dialect;
use crate::fault::Fault;
use crate::find::byte_values;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Bitsandbytes;

const NF4: &str = "bitsandbytes-nf4";
const FP4: &str = "bitsandbytes-fp4";
const INT8: &str = "bitsandbytes-int8";

/// What the JSON of a weight says.
#[derive(Deserialize)]
struct State {
    blocksize: u64,
    shape: Vec<u64>,
    dtype: Option<String>,
    nested_blocksize: Option<u64>,
    nested_offset: Option<f32>,
}

impl Dialect for Bitsandbytes {
    fn name(&self) -> &'static str {
        NF4
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        let is_4bit =
            model.settings().get("load_in_4bit").and_then(|it| it.as_bool()) == Some(true);
        for (dialect, end) in [(NF4, "nf4"), (FP4, "fp4"), (NF4, "")] {
            let state = format!(".quant_state.bitsandbytes__{end}");
            let names = match end {
                "" => model.ending(".absmax"),
                _ => model.ending(&state),
            };
            for name in names {
                if end.is_empty() && model.get(&format!("{name}.quant_map")).is_none() {
                    continue;
                }
                weights.push(four_bits(model, name, dialect, &state));
            }
        }
        let mut known: HashSet<String> = weights.iter().map(|weight| weight.name.clone()).collect();
        let is_int8 =
            model.settings().get("load_in_8bit").and_then(|it| it.as_bool()) == Some(true);
        for layer in model.ending("weight") {
            let (name, scb) = (format!("{layer}weight"), format!("{layer}SCB"));
            let format = format!("{layer}weight_format");
            let is_codes =
                model.get(&name).is_some_and(|it| it.is(DType::I8) && it.shape.len() == 2);
            let is_int8 = is_int8 || [&scb, &format].iter().any(|it| model.get(it).is_some());
            if is_codes && is_int8 {
                let parts = [name.clone(), scb, format].into_iter();
                let parts = parts.filter(|part| model.get(part).is_some());
                weights.push(Weight::new(
                    name.clone(),
                    INT8,
                    parts,
                    model.float(),
                    int8(model, layer),
                ));
            }
            // Codes whose state is gone with everything else beside them.
            let is_column =
                model.get(&name).is_some_and(|it| it.is(DType::U8) && matches!(it.shape, [_, 1]));
            if is_4bit && is_column && known.insert(name.clone()) {
                weights.push(four_bits(model, &name, NF4, ".quant_state.bitsandbytes__nf4"));
            }
        }
        Ok(weights)
    }
}

/// The weight `name`. A weight without its state is one whose state is missing.
fn four_bits(model: &Model<'_>, name: &str, dialect: &'static str, state: &str) -> Weight {
    let ends = ["", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", state];
    let parts = ends.iter().map(|end| format!("{name}{end}"));
    let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
    let mut float = model.float();
    let mut formula = || {
        let state = model.text(dialect, &format!("{name}{state}"))?;
        let what = |error: serde_json::Error| {
            format!("the state of {name} is no JSON of its own: {error}")
        };
        let state: State = serde_json::from_slice(&state)
            .map_err(|error| Fault::Rule { dialect, what: what(error) })?;
        float = match state.dtype.as_deref().map(|it| it.trim_start_matches("torch.")) {
            Some("float16") => FloatType::F16,
            Some("float32") => FloatType::F32,
            Some("bfloat16") => FloatType::BF16,
            _ => float,
        };
        of_state(model, name, dialect, &state)
    };
    let formula = formula();
    Weight::new(name, dialect, parts, float, formula)
}

fn of_state(
    model: &Model<'_>,
    name: &str,
    dialect: &'static str,
    state: &State,
) -> Result<Formula> {
    let rule = |what: String| zt::Error::from(Fault::Rule { dialect, what });
    let of = |part: &str| format!("{name}.{part}");
    let count = zt::formats::element_count(&state.shape).ok_or(Fault::TooLong)?;
    let block = state.blocksize;
    if !(1..=1 << 20).contains(&block) || !block.is_multiple_of(2) {
        return Err(rule(format!("blocks of {block} values")));
    }
    let codes = model.need(dialect, name)?;
    if codes.count().checked_mul(codes.dtype.byte_len() as u64) != Some(count.div_ceil(2)) {
        let (shape, found) = (state.shape.clone(), codes.shape.to_vec());
        return Err(rule(format!("the state says {shape:?}, and the codes are {found:?}")));
    }
    let map = model.numbers(dialect, &of("quant_map"))?;
    if map.len() != 16 {
        return Err(rule(format!("{} has {} values, not 16", of("quant_map"), map.len())));
    }
    let blocks = count.div_ceil(block);
    // The first of two values has the high half.
    let tensor = model.tensor(dialect, name)?;
    let codes = Codes::packed(tensor, Packing::high_first(), map, [1, blocks, block])?;
    let formula = Formula::new(&*state.shape, codes)?.block(1, block);
    let grid = formula.grid();
    let absmax = model.tensor(dialect, &of("absmax"))?;
    if absmax.tensor().dtype() != Some(DType::U8) {
        return formula.scale(Codes::numbers(absmax, grid)?);
    }
    let table = model.numbers(dialect, &of("nested_quant_map"))?;
    let nested = model.tensor(dialect, &of("nested_absmax"))?;
    let offset =
        state.nested_offset.ok_or_else(|| rule("the state has no nested_offset".to_owned()))?;
    let absmax = Codes::packed(absmax, Packing::bytes(), table, grid)?;
    formula.nested_scale(absmax, nested, state.nested_blocksize.unwrap_or(256), offset)
}

/// `code * SCB / 127`.
fn int8(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let (name, format) = (format!("{layer}weight"), format!("{layer}weight_format"));
    let [rows, columns] = *model.need(INT8, &name)?.shape else {
        return Err(Fault::TooLong.into());
    };
    if model.get(&format).is_some() && model.integers(INT8, &format)? != [0] {
        let what = "an order of codes other than by rows (weight_format)".to_owned();
        return Err(Fault::Unknown { dialect: INT8, what }.into());
    }
    let tensor = model.tensor(INT8, &name)?;
    let codes = Codes::packed(tensor, Packing::bytes(), byte_values("i8")?, [1, rows, columns])?;
    let formula = Formula::new([rows, columns], codes)?.block(1, columns.max(1)).divided_by(127.0);
    let grid = formula.grid();
    formula.scale(Codes::numbers(model.tensor(INT8, &format!("{layer}SCB"))?, grid)?)
}
