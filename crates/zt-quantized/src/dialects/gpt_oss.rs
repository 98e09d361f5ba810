//! MXFP4 of gpt-oss: `NAME_blocks` and `NAME_scales` of stacked experts.
//!
//! Source: `_convert_moe_packed_tensors` of transformers 5.23. The weight `NAME` is transposed, because the model
//! multiplies from the other side, and so are the bf16 checkpoints.

use zt::{DType, FloatType, Result};

use crate::dialects::{Dialect, E2M1, exponents};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct GptOss;

const NAME: &str = "gpt-oss-mxfp4";

impl Dialect for GptOss {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let is_gpt_oss = model.settings().method() == Some("mxfp4");
        let is_u8 = |name: &String, rank| {
            model.get(name).is_some_and(|it| it.is(DType::U8) && it.shape.len() == rank)
        };
        let mut weights = Vec::new();
        for stem in model.ending("_blocks") {
            let parts = [format!("{stem}_blocks"), format!("{stem}_scales")];
            let [blocks, scales] = &parts;
            if is_u8(blocks, 4) && (is_gpt_oss || is_u8(scales, 3)) {
                let parts = parts.iter().filter(|part| model.get(part).is_some()).cloned();
                let parts: Vec<String> = parts.collect();
                weights.push(Weight::new(stem, NAME, parts, FloatType::BF16, formula(model, stem)));
            }
        }
        for stem in model.ending("_scales") {
            let (blocks, scales) = (format!("{stem}_blocks"), format!("{stem}_scales"));
            if is_gpt_oss && is_u8(&scales, 3) && model.get(&blocks).is_none() {
                let fault = Fault::Missing { dialect: NAME, part: blocks };
                weights.push(Weight::new(stem, NAME, [scales], FloatType::BF16, Err(fault.into())));
            }
        }
        Ok(weights)
    }
}

fn formula(model: &Model<'_>, stem: &str) -> Result<Formula> {
    let (blocks, scales) = (format!("{stem}_blocks"), format!("{stem}_scales"));
    let [experts, rows, groups, bytes] = *model.need(NAME, &blocks)?.shape else {
        return Err(Fault::TooLong.into());
    };
    if bytes != 16 {
        let what = format!("{blocks} has blocks of {bytes} bytes, not 16");
        return Err(Fault::Rule { dialect: NAME, what }.into());
    }
    let columns = groups.checked_mul(32).ok_or(Fault::TooLong)?;
    let found = model.need(NAME, &scales)?.shape;
    if found != [experts, rows, groups] {
        let (name, shape) = (scales, found.to_vec());
        return Err(Fault::Shape { name, shape, count: experts, rows, columns: groups }.into());
    }
    let matrix = [experts, rows, columns];
    let tensor = model.tensor(NAME, &blocks)?;
    let codes = Codes::packed(tensor, Packing::bits(4), E2M1.to_vec(), matrix)?;
    let formula = Formula::new([experts, columns, rows], codes)?.transposed().block(1, 32);
    let grid = formula.grid();
    let tensor = model.tensor(NAME, &scales)?;
    formula.scale(Codes::packed(tensor, Packing::bytes(), exponents()?, grid)?)
}
