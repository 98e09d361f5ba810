//! NVFP4 of ModelOpt: `X.weight`, U8, with `X.weight_scale` and `X.weight_scale_2`.
//!
//! Source: `NVFP4QTensor` of modelopt 0.47. Both scales multiply. FP8 of ModelOpt is in `scaled`.

use zt::{DType, Result};

use crate::dialects::{Dialect, E2M1};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Modelopt;

const NAME: &str = "nvfp4";

impl Dialect for Modelopt {
    fn name(&self) -> &'static str {
        "modelopt"
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let settings = model.settings();
        let is_nvfp4 = settings.method() == Some("modelopt")
            && settings.text("quant_algo").is_some_and(|it| it.contains("NVFP4"));
        let mut weights = Vec::new();
        for layer in model.ending("weight") {
            let of = |part: &str| format!("{layer}{part}");
            let scales = [of("weight_scale"), of("weight_scale_2")];
            let is_codes =
                model.get(&of("weight")).is_some_and(|it| it.is(DType::U8) && it.shape.len() >= 2);
            let has_scales = scales.iter().all(|scale| model.get(scale).is_some());
            let is_fp8 = model.get(&of("weight_scale")).is_some_and(|it| it.is_fp8());
            if !is_codes || !(has_scales || is_nvfp4 || is_fp8) {
                continue;
            }
            let parts = [of("weight")].into_iter().chain(scales);
            let parts = parts.filter(|part| model.get(part).is_some());
            weights.push(Weight::new(
                of("weight"),
                NAME,
                parts,
                model.float(),
                formula(model, layer),
            ));
        }
        Ok(weights)
    }
}

fn formula(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let name = format!("{layer}weight");
    let codes = model.need(NAME, &name)?.clone();
    let [count, rows, half] = codes.matrices().ok_or(Fault::TooLong)?;
    let columns = half.checked_mul(2).ok_or(Fault::TooLong)?;
    let matrix = [count, rows, columns];
    let all = Codes::packed(model.tensor(NAME, &name)?, Packing::bits(4), E2M1.to_vec(), matrix)?;
    let mut shape = codes.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, all)?.groups_of(16)?;
    let grid = formula.grid();
    let scale = Codes::numbers(model.tensor(NAME, &format!("{layer}weight_scale"))?, grid)?;
    formula.scale(scale)?.global(model.tensor(NAME, &format!("{layer}weight_scale_2"))?, false)
}
