//! torchao 0.18, as `flatten_tensor_state_dict` saves it: `MODULE._weight_qdata` with `_weight_scale` and others.
//!
//! Source: `torchao/prototype/safetensors` of that release. The header has a JSON text under the name of each weight:
//! its class, the block that shares a scale, and the names of its parts.

use serde_json::Value;
use zt::{DType, FloatType, Result};

use crate::dialects::Dialect;
use crate::fault::Fault;
use crate::find::byte_values;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Torchao;

const NAME: &str = "torchao";

impl Dialect for Torchao {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights: Vec<Weight> = Vec::new();
        let mut names = Vec::new();
        if let Some(listed) = model.header("tensor_names") {
            names = serde_json::from_str(listed).unwrap_or_default();
        }
        let of_codes = ["qdata", "scale"].map(|part| format!("_{part}"));
        for end in &of_codes {
            for stem in model.ending(end) {
                // `layer._weight` is of `layer.weight`.
                if let Some((layer, tensor)) = stem.rsplit_once("._") {
                    names.push(format!("{layer}.{tensor}"));
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            weights.extend(weight(model, &name));
        }
        Ok(weights)
    }
}

fn weight(model: &Model<'_>, name: &str) -> Option<Weight> {
    let (layer, tensor) = name.rsplit_once('.')?;
    let of = |part: &str| format!("{layer}._{tensor}_{part}");
    let text = model.header(name);
    let json = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let class = json.as_ref().and_then(|json| json.get("_type")?.as_str());
    if class == Some("Tensor") || (class.is_none() && model.get(&of("qdata")).is_none()) {
        return None;
    }
    let listed = json.as_ref().and_then(|json| json.get("_tensor_data_names")?.as_array());
    let listed =
        listed.into_iter().flatten().filter_map(Value::as_str).filter(|part| *part != "qdata");
    let others: Vec<&str> = match class {
        Some(_) => listed.collect(),
        None => vec!["scale", "zero_point"],
    };
    let parts = ["qdata"].into_iter().chain(others).map(of);
    let parts: Vec<String> = parts.filter(|part| model.get(part).is_some()).collect();
    if parts.is_empty() {
        return None;
    }
    let formula = match (&json, class) {
        (Some(json), Some(class)) => formula(model, &of, class, json),
        _ => {
            let what =
                format!("the header has no entry for {name}, which says what its parts mean");
            Err(Fault::Rule { dialect: NAME, what }.into())
        }
    };
    let dtype =
        json.as_ref().and_then(|json| json.get("_data")?.get("dtype")?.get("_data")?.as_str());
    let float = match dtype {
        Some("float16") => FloatType::F16,
        Some("float32") => FloatType::F32,
        _ => FloatType::BF16,
    };
    let weight = Weight::new(name, NAME, parts, float, formula);
    Some(weight.with_header([name.to_owned(), "tensor_names".to_owned()]))
}

fn formula(
    model: &Model<'_>,
    of: &dyn Fn(&str) -> String,
    class: &str,
    json: &Value,
) -> Result<Formula> {
    if !["Int8Tensor", "Float8Tensor"].contains(&class) {
        return Err(Fault::Unknown {
            dialect: NAME,
            what: format!("a tensor of the class {class}"),
        }
        .into());
    }
    let rule = |what: String| zt::Error::from(Fault::Rule { dialect: NAME, what });
    let codes = model.need(NAME, &of("qdata"))?.clone();
    let [count, rows, columns] = codes.matrices().ok_or(Fault::TooLong)?;
    if !codes.is_fp8() && !codes.is(DType::I8) {
        return Err(rule(format!("{} is neither int8 nor FP8", of("qdata"))));
    }
    let block = json.get("_data").and_then(|it| it.get("block_size")?.as_array());
    let sizes: Option<Vec<u64>> = block.map(|it| it.iter().map_while(Value::as_u64).collect());
    let side = |size: u64| if size == 0 { 1 } else { size };
    let block = match sizes.as_deref() {
        Some([.., r, c]) => [side(*r), side(*c)],
        _ => return Err(rule(format!("the header gives no block_size for {}", of("qdata")))),
    };
    let values = byte_values(&codes.value_type)?;
    let tensor = model.tensor(NAME, &of("qdata"))?;
    let all = Codes::packed(tensor, Packing::bytes(), values, [count, rows, columns])?;
    let [r, c] = block;
    let formula = Formula::new(codes.shape, all)?.block(r, c);
    let grid = formula.grid();
    let formula = formula.scale(Codes::numbers(model.tensor(NAME, &of("scale"))?, grid)?)?;
    match model.get(&of("zero_point")) {
        Some(_) => formula.zero(Codes::numbers(model.tensor(NAME, &of("zero_point"))?, grid)?, 0.0),
        None => Ok(formula),
    }
}
