//! optimum-quanto 0.2.7: `X.weight._data` and `X.weight._scale`.
//!
//! Source: `WeightQBytesTensor` and `WeightQBitsTensor` of that release. `quanto_qmap.json` names the quantized modules.
//! Codes of 2 and 4 bits, `X.weight._data._data`, are named. They have the shape of groups. No file has the shape of the weight.

use std::collections::HashSet;

use zt::{DType, Result};

use crate::dialects::{Dialect, scaled};
use crate::fault::Fault;
use crate::model::Model;
use crate::weight::Weight;

pub(super) struct Quanto;

const NAME: &str = "quanto";

impl Dialect for Quanto {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for name in model.ending("._data") {
            let of = |part: &str| format!("{name}.{part}");
            let module = name.rsplit_once('.').map_or("", |(module, _)| module);
            let kind = model.settings().quanto(module).and_then(|it| it.get("weights")?.as_str());
            let codes = model.get(&of("_data"));
            let is_bytes = codes.is_some_and(|it| it.is_fp8() || it.is(DType::I8));
            if kind.is_none() && (model.get(&of("_scale")).is_none() || !is_bytes) {
                continue;
            }
            let parts = ["_data", "_scale", "_shift"].map(of).into_iter();
            let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
            let formula = match is_bytes && model.get(&of("_shift")).is_none() {
                true => scaled::bytes(model, NAME, &of("_data"), &of("_scale")),
                false => {
                    let what = format!("a weight of {}", kind.unwrap_or("packed codes"));
                    Err(Fault::Unknown { dialect: NAME, what }.into())
                }
            };
            weights.push(Weight::new(name, NAME, parts, model.float_of(&of("_scale")), formula));
        }
        for name in model.ending("._data._data") {
            let parts = ["_data._data", "_scale", "_shift"].map(|part| format!("{name}.{part}"));
            let [codes, scale, _] = &parts;
            if model.get(codes).is_some_and(|it| it.is(DType::U8)) && model.get(scale).is_some() {
                let float = model.float_of(scale);
                let what = "a weight of packed codes, whose shape is in no file,".to_owned();
                let fault = Fault::Unknown { dialect: NAME, what };
                let parts = parts.into_iter().filter(|part| model.get(part).is_some());
                weights.push(Weight::new(name, NAME, parts, float, Err(fault.into())));
            }
        }
        let known: HashSet<String> =
            weights.iter().map(|weight: &Weight| weight.name.clone()).collect();
        for (module, _) in model.settings().quanto_modules() {
            let name = format!("{module}.weight");
            let scale = format!("{name}._scale");
            if model.get(&name).is_none() && !known.contains(&name) && model.get(&scale).is_some() {
                let fault = Fault::Missing { dialect: NAME, part: format!("{name}._data") };
                weights.push(Weight::new(name, NAME, [scale], model.float(), Err(fault.into())));
            }
        }
        Ok(weights)
    }
}
