//! Four bits of ModelOpt: `X.weight`, U8, with `X.weight_scale`; stacked experts are `X` with `X_weight_scale`.
//!
//! | codes | scales |
//! | --- | --- |
//! | NVFP4 | FP8 for 16 columns, and `X.weight_scale_2`; both multiply |
//! | MXFP4 | U8, exponents for 32 columns |
//! | INT4, two rows a byte | floats for groups of columns |
//!
//! Sources: `NVFP4QTensor`, `MXFP4QTensor` and `pack_int4_in_uint8` of modelopt 0.47. FP8 and int8 of ModelOpt are in
//! `scaled`. Experts may be transposed, as `maybe_transpose_expert_weight_dimensions` does.

use std::collections::BTreeSet;

use zt::{DType, Result};

use crate::dialects::{Dialect, E2M1, exponents, ratio, scaled};
use crate::fault::Fault;
use crate::model::{Model, Shape};
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Modelopt;

const NAME: &str = "nvfp4";
const MXFP4: &str = "mxfp4";
const INT4: &str = "modelopt-int4";

impl Dialect for Modelopt {
    fn name(&self) -> &'static str {
        "modelopt"
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let settings = model.settings();
        let algorithm =
            settings.text("quant_algo").filter(|_| settings.method() == Some("modelopt"));
        let is_nvfp4 = algorithm.is_some_and(|it| it.contains("NVFP4"));
        let is_4_bits = algorithm.is_some_and(|it| {
            ["NVFP4", "MXFP4", "INT4", "W4A", "MIXED_PRECISION"]
                .iter()
                .any(|name| it.contains(name))
        });
        let mut weights = Vec::new();
        let layers =
            model.ending("weight").into_iter().map(|layer| (layer, format!("{layer}weight")));
        let experts = ["_weight_scale", "_weight_scale_2"].map(|end| model.ending(end));
        let experts: BTreeSet<&str> = experts.into_iter().flatten().collect();
        let experts = experts.into_iter().map(|name| (name, name.to_owned()));
        for (layer, name) in layers.chain(experts) {
            let stem = if name == layer { format!("{name}_weight") } else { name.clone() };
            let scales = [format!("{stem}_scale"), format!("{stem}_scale_2")];
            let [first, second] = &scales;
            let Some(scale) = model.get(first) else {
                if (is_4_bits || model.get(second).is_some())
                    && model.get(&name).is_some_and(|it| it.is(DType::U8) && it.shape.len() >= 2)
                {
                    let fault = Fault::Missing { dialect: NAME, part: first.clone() };
                    let parts =
                        [name.clone()].into_iter().chain(model.get(second).map(|_| second.clone()));
                    weights.push(Weight::new(name, NAME, parts, model.float(), Err(fault.into())));
                }
                continue;
            };
            if !model.get(&name).is_some_and(|it| it.is(DType::U8) && it.shape.len() >= 2) {
                continue;
            }
            let (dialect, formula) = if scale.is_fp8() || (is_nvfp4 && !scale.is(DType::U8)) {
                (NAME, nvfp4(model, &name, &scales))
            } else if scale.is(DType::U8) {
                (MXFP4, mxfp4(model, &name, first))
            } else {
                (INT4, int4(model, &name, &scales))
            };
            let formula = formula.and_then(|formula| scaled::plain(model, layer, formula));
            let parts = [name.clone()].into_iter().chain(scales);
            let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
            let weight = Weight::new(name, dialect, parts, model.float(), formula);
            weights.push(scaled::with_inputs(model, layer, weight));
        }
        Ok(weights)
    }
}

fn nvfp4(model: &Model<'_>, name: &str, [first, second]: &[String; 2]) -> Result<Formula> {
    let codes = model.need(NAME, name)?.clone();
    let scale = model.need(NAME, first)?;
    let [count, rows, bytes] = codes.matrices().ok_or(Fault::TooLong)?;
    let is_of = |rows: u64, columns: u64| scale.shape.ends_with(&[rows, columns]);
    let down = rows.checked_mul(2).ok_or(Fault::TooLong)?;
    let columns = bytes.checked_mul(2).ok_or(Fault::TooLong)?;
    // Along the rows, in experts that were transposed when they were packed.
    let is_down = codes.shape.len() > 2 && is_of(down.div_ceil(16), bytes);
    if is_down && is_of(rows, columns.div_ceil(16)) {
        let what = format!("{name}: it is not known which way its codes follow each other");
        return Err(Fault::Rule { dialect: NAME, what }.into());
    }
    let (packing, matrix, block) = match is_down {
        true => (Packing::bits(4).down_columns(1), [count, down, bytes], [16, 1]),
        false => (Packing::bits(4), [count, rows, columns], [1, 16]),
    };
    let all = Codes::packed(model.tensor(NAME, name)?, packing, E2M1.to_vec(), matrix)?;
    let formula = Formula::new(unpacked(&codes, matrix), all)?;
    let formula = match is_down {
        true => formula.block(block[0], block[1]),
        false => formula.groups_of(16)?,
    };
    let grid = formula.grid();
    let scale = Codes::numbers(model.tensor(NAME, first)?, grid)?;
    formula.scale(scale)?.global(model.tensor(NAME, second)?, false)
}

fn mxfp4(model: &Model<'_>, name: &str, scale: &str) -> Result<Formula> {
    let codes = model.need(MXFP4, name)?.clone();
    let [count, rows, bytes] = codes.matrices().ok_or(Fault::TooLong)?;
    let matrix = [count, rows, bytes.checked_mul(2).ok_or(Fault::TooLong)?];
    let all = Codes::packed(model.tensor(MXFP4, name)?, Packing::bits(4), E2M1.to_vec(), matrix)?;
    let formula = Formula::new(unpacked(&codes, matrix), all)?.groups_of(32)?;
    let grid = formula.grid();
    let scale = model.tensor(MXFP4, scale)?;
    formula.scale(Codes::packed(scale, Packing::bytes(), exponents()?, grid)?)
}

/// Signed codes of two rows a byte, the first in the low half.
fn int4(model: &Model<'_>, name: &str, [first, second]: &[String; 2]) -> Result<Formula> {
    if let Some(method) = model.settings().method().filter(|method| *method != "modelopt") {
        return Err(Fault::Unknown { dialect: INT4, what: format!("codes of {method}") }.into());
    }
    if model.get(second).is_some() {
        let what = format!("{second}, a second scale of integers,");
        return Err(Fault::Unknown { dialect: INT4, what }.into());
    }
    let codes = model.need(INT4, name)?.clone();
    let [count, half, columns] = codes.matrices().ok_or(Fault::TooLong)?;
    let matrix = [count, half.checked_mul(2).ok_or(Fault::TooLong)?, columns];
    let scale = model.need(INT4, first)?.clone();
    let groups = scale.shape.last().and_then(|groups| ratio(columns, *groups));
    let group = groups.ok_or_else(|| Fault::Shape {
        name: first.clone(),
        shape: scale.shape.to_vec(),
        count,
        rows: matrix[1],
        columns,
    })?;
    let values =
        (0..16).map(|code: i8| f32::from(if code < 8 { code } else { code.strict_sub(16) }));
    let packing = Packing::bits(4).down_columns(1);
    let all = Codes::packed(model.tensor(INT4, name)?, packing, values.collect(), matrix)?;
    let formula = Formula::new(unpacked(&codes, matrix), all)?.block(1, group);
    let grid = formula.grid();
    formula.scale(Codes::numbers(model.tensor(INT4, first)?, grid)?)
}

/// The shape of codes whose matrices are unpacked.
fn unpacked(codes: &Shape<'_>, [_, rows, columns]: [u64; 3]) -> Vec<u64> {
    let outer = codes.shape.len().saturating_sub(2);
    codes.shape.iter().copied().take(outer).chain([rows, columns]).collect()
}
