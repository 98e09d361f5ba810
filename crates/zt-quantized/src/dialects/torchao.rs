//! torchao 0.18, as `flatten_tensor_state_dict` saves it: `MODULE._weight_qdata` with `_weight_scale` and others.
//!
//! Source: `torchao/prototype/safetensors` of that release. The header has a JSON text under the name of each weight:
//! its class, the block that shares a scale, and the names of its parts.

use serde_json::Value;
use zt::{DType, FloatType, Result};

use crate::dialects::{Dialect, E2M1};
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
    // Scales of activations are kept.
    let is_other = |part: &&str| *part != "qdata" && !part.starts_with("act_");
    let listed = listed.into_iter().flatten().filter_map(Value::as_str).filter(is_other);
    let others: Vec<&str> = match class {
        Some(_) => listed.collect(),
        None => vec!["scale", "zero_point"],
    };
    let parts = || ["qdata"].into_iter().chain(others.iter().copied()).map(of);
    let missing = parts().find(|part| model.get(part).is_none());
    let parts: Vec<String> = parts().filter(|part| model.get(part).is_some()).collect();
    if parts.is_empty() {
        return None;
    }
    let formula = match (&json, class, missing) {
        (Some(_), Some(_), Some(part)) => Err(Fault::Missing { dialect: NAME, part }.into()),
        (Some(json), Some(class), None) => formula(model, &of, class, json),
        _ => {
            let what =
                format!("the header has no entry for {name}, which says what its parts mean");
            Err(Fault::Rule { dialect: NAME, what }.into())
        }
    };
    let dtype = json.as_ref().and_then(|json| {
        let data = json.get("_data")?;
        data.get("dtype").or(data.get("orig_dtype"))?.get("_data")?.as_str()
    });
    let float = match dtype {
        Some("float16") => FloatType::F16,
        Some("float32") => FloatType::F32,
        _ => FloatType::BF16,
    };
    let mut weight = Weight::new(name, NAME, parts, float, formula);
    let inputs = of("act_pre_scale");
    if model.get(&inputs).is_some() {
        let message =
            format!("{inputs} multiplies the inputs: it is kept, and is not in the weight");
        weight = weight.with_warning("quantized-scale", message);
    }
    Some(weight.with_header([name.to_owned(), "tensor_names".to_owned()]))
}

fn formula(
    model: &Model<'_>,
    of: &dyn Fn(&str) -> String,
    class: &str,
    json: &Value,
) -> Result<Formula> {
    let data = json.get("_data").unwrap_or(&Value::Null);
    match class {
        "Int8Tensor" | "Float8Tensor" | "IntxUnpackedToInt8Tensor" => bytes(model, of, data),
        "NVFP4Tensor" | "MXTensor" => small_blocks(model, of, data, class == "MXTensor"),
        _ => {
            let what = format!("a tensor of the class {class}");
            Err(Fault::Unknown { dialect: NAME, what }.into())
        }
    }
}

/// A code each byte, and blocks of any size: `dequantize_affine` and `_dequantize_affine_float8`.
fn bytes(model: &Model<'_>, of: &dyn Fn(&str) -> String, data: &Value) -> Result<Formula> {
    let rule = |what: String| zt::Error::from(Fault::Rule { dialect: NAME, what });
    let codes = model.need(NAME, &of("qdata"))?.clone();
    let [mut count, mut rows, columns] = codes.matrices().ok_or(Fault::TooLong)?;
    if !codes.is_fp8() && !codes.is(DType::I8) {
        return Err(rule(format!("{} is neither int8 nor FP8", of("qdata"))));
    }
    // FP8 without a size has one scale.
    let sizes: Option<Vec<u64>> = match data.get("block_size").filter(|it| !it.is_null()) {
        Some(sizes) => sizes.as_array().map(|it| it.iter().map_while(Value::as_u64).collect()),
        None if codes.is_fp8() => Some(codes.shape.to_vec()),
        None => None,
    };
    // Blocks are whole.
    let is_whole = |(len, size): (&u64, &u64)| len.is_multiple_of((*size).max(1));
    let sizes = sizes.filter(|sizes| {
        sizes.len() == codes.shape.len() && codes.shape.iter().zip(sizes).all(is_whole)
    });
    let Some([outer @ .., r, c]) = sizes.as_deref() else {
        return Err(rule(format!("the header gives no block_size that fits {}", of("qdata"))));
    };
    let (mut r, c) = ((*r).max(1), (*c).max(1));
    if outer.iter().any(|size| *size > 1) {
        // Matrices that share scales, and each of them whole.
        if !codes.shape.starts_with(outer) || r < rows {
            let what = format!("blocks of {sizes:?} values");
            return Err(Fault::Unknown { dialect: NAME, what }.into());
        }
        rows = count.checked_mul(rows).ok_or(Fault::TooLong)?;
        (count, r) = (1, rows.max(1));
    }
    let values = byte_values(&codes.value_type)?;
    let tensor = model.tensor(NAME, &of("qdata"))?;
    let all = Codes::packed(tensor, Packing::bytes(), values, [count, rows, columns])?;
    let formula = Formula::new(codes.shape, all)?.block(r, c);
    let grid = formula.grid();
    let formula = formula.scale(Codes::numbers(model.tensor(NAME, &of("scale"))?, grid)?)?;
    match model.get(&of("zero_point")) {
        Some(_) => formula.zero(Codes::numbers(model.tensor(NAME, &of("zero_point"))?, grid)?, 0.0),
        None => Ok(formula),
    }
}

/// MXFP8, MXFP4 and NVFP4: scales of groups of columns, which may lie in tiles.
fn small_blocks(
    model: &Model<'_>,
    of: &dyn Fn(&str) -> String,
    data: &Value,
    is_mx: bool,
) -> Result<Formula> {
    let unknown = |what: String| zt::Error::from(Fault::Unknown { dialect: NAME, what });
    let codes = model.need(NAME, &of("qdata"))?.clone();
    let [count, rows, bytes] = codes.matrices().ok_or(Fault::TooLong)?;
    let kind = data.get("elem_dtype").map(|it| it.get("_data").unwrap_or(it).as_str());
    let is_fp4 = match kind {
        None => !is_mx,
        Some(kind) => kind.is_some_and(|it| it.starts_with("float4")),
    };
    if !is_fp4 && !codes.is_fp8() {
        return Err(unknown(format!("codes of the type {}", codes.value_type)));
    }
    let columns = if is_fp4 { bytes.checked_mul(2).ok_or(Fault::TooLong)? } else { bytes };
    let (packing, values) = match is_fp4 {
        true => (Packing::bits(4), E2M1.to_vec()),
        false => (Packing::bytes(), byte_values(&codes.value_type)?),
    };
    let Some(group) = data.get("block_size").and_then(Value::as_u64) else {
        let what = format!("the header gives no block_size for {}", of("qdata"));
        return Err(Fault::Rule { dialect: NAME, what }.into());
    };
    let is_tiled = data.get("is_swizzled_scales").and_then(Value::as_bool) == Some(true);
    // The tiles go through all matrices.
    let matrices = match is_tiled {
        true => [1, count.checked_mul(rows).ok_or(Fault::TooLong)?, columns],
        false => [count, rows, columns],
    };
    let all = Codes::packed(model.tensor(NAME, &of("qdata"))?, packing, values, matrices)?;
    let mut shape = codes.shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = columns;
    }
    let formula = Formula::new(shape, all)?.groups_of(group)?;
    let grid = formula.grid();
    let tensor = model.tensor(NAME, &of("scale"))?;
    let scale = if is_tiled { Codes::tiled(tensor, grid)? } else { Codes::numbers(tensor, grid)? };
    let formula = formula.scale(scale)?;
    match model.get(&of("per_tensor_scale")) {
        Some(_) => formula.global(model.tensor(NAME, &of("per_tensor_scale"))?, false),
        None => Ok(formula),
    }
}
