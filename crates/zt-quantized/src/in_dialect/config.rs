//! What `config.json` says of weights in a dialect.

use serde_json::{Value, json};

use crate::find::Quantized;
use crate::in_dialect::{DEEPSEEK, PACKED, fp8};
use crate::values::fp4::Scales;
use crate::values::weight::Formula;

impl Quantized {
    /// What `config.json` says of weights in the dialect `target`; `None` for a dialect that needs no such settings.
    pub fn settings_in(&self, target: &str) -> Option<Value> {
        if target == DEEPSEEK {
            let mut blocks = self.weights().iter().filter_map(|it| it.formula.as_ref().ok());
            let block = blocks.find(|it| fp8(it).is_some())?.block_len();
            return Some(json!({
                "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": block,
                "modules_to_not_convert": self.plain_modules(),
            }));
        }
        if target != PACKED {
            return None;
        }
        // A scheme each, with the modules that have it.
        let mut schemes: Vec<(&str, Value, Vec<&str>)> = Vec::new();
        for weight in self.weights() {
            let module = weight.name.strip_suffix(".weight").unwrap_or(&weight.name);
            let Some((format, scheme)) = weight.formula.as_ref().ok().and_then(scheme) else {
                continue;
            };
            match schemes.iter_mut().find(|(known, it, _)| *known == format && *it == scheme) {
                Some((.., modules)) => modules.push(module),
                None => schemes.push((format, scheme, vec![module])),
            }
        }
        let format = match &*schemes {
            [] => return None,
            [(format, ..)] => format,
            _ => "mixed-precision",
        };
        let groups = schemes.iter().enumerate().map(|(at, (format, weights, targets))| {
            let group = json!({ "format": format, "targets": targets, "weights": weights });
            (format!("group_{at}"), group)
        });
        let groups: serde_json::Map<String, Value> = groups.collect();
        Some(json!({
            "quant_method": PACKED, "quantization_status": "compressed", "format": format, "config_groups": groups,
            "ignore": self.plain_modules(),
        }))
    }

    /// The modules whose weight is a matrix that is not quantized.
    fn plain_modules(&self) -> Vec<&str> {
        let parts = self.parts();
        let tensors = self.file().tensors().filter_map(Result::ok);
        let plain = tensors.filter(|it| it.shape().len() == 2 && !parts.contains(it.name()));
        plain.filter_map(|it| it.name().strip_suffix(".weight")).collect()
    }
}

/// The format of compressed-tensors for a weight, and what it says of the codes.
fn scheme(formula: &Formula) -> Option<(&'static str, Value)> {
    let common = json!({ "type": "float", "symmetric": true, "dynamic": false });
    let (format, more) = match Scales::of(formula) {
        Some(Scales::Floats) => (
            "nvfp4-pack-quantized",
            json!({
                "num_bits": 4, "strategy": "tensor_group", "group_size": 16,
                "scale_dtype": "torch.float8_e4m3fn",
            }),
        ),
        Some(Scales::Exponents) => (
            "mxfp4-pack-quantized",
            json!({
                "num_bits": 4, "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8",
            }),
        ),
        None => {
            fp8(formula)?;
            let [_, rows, columns] = formula.grid();
            let of_codes = formula.shape();
            let strategy = match (rows, columns) {
                (1, 1) => json!({ "strategy": "tensor" }),
                (rows, 1) if of_codes.first() == Some(&rows) => json!({ "strategy": "channel" }),
                _ => json!({ "strategy": "block", "block_structure": formula.block_len() }),
            };
            ("float-quantized", with(json!({ "num_bits": 8 }), strategy))
        }
    };
    Some((format, with(common, more)))
}

/// Both objects as one.
fn with(mut all: Value, more: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}
