//! GPTQ: `X.qweight`, `X.qzeros`, `X.scales` and `X.g_idx`.
//!
//! Sources: `qlinear_cuda` of auto-gptq 0.7.1 and `convert_gptq_file` of GPTQModel. Codes lie along the inputs, zero
//! points along the outputs, the lowest bits first. Of version 1, which most checkpoints are of, a stored zero point is
//! one less than the true one. The weight is the transpose of what is stored.

use zt::{DType, FloatType, Result};

use crate::dialects::{Dialect, integers};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Gptq;

const NAME: &str = "gptq";

impl Dialect for Gptq {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let settings = model.settings();
        let method = settings.method();
        let mut weights = Vec::new();
        for layer in model.ending("qweight") {
            let of = |part: &str| format!("{layer}{part}");
            let shape = |part: &str| model.get(&of(part)).map(|it| it.shape);
            // AWQ packs the outputs, so its scales have more columns.
            let is_auto_awq = settings.packing_format().is_some_and(|it| it.contains("awq"));
            let is_gptq = match (shape("qweight"), shape("scales")) {
                (Some([_, outputs]), Some([_, scales])) => {
                    outputs == scales
                        && model.get(&of("qweight")).is_some_and(|it| it.is(DType::I32))
                }
                _ => false,
            };
            if method == Some("gptq")
                || (method != Some("awq") && !is_auto_awq && (is_gptq || shape("g_idx").is_some()))
            {
                let parts = ["qweight", "qzeros", "scales", "g_idx"].map(of).into_iter();
                let parts = parts.filter(|part| model.get(part).is_some());
                let float = match model.get(&of("scales")) {
                    Some(_) => model.float_of(&of("scales")),
                    None => FloatType::F16,
                };
                weights.push(Weight::new(of("weight"), NAME, parts, float, formula(model, layer)));
            }
        }
        Ok(weights)
    }
}

fn formula(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}{part}");
    let rule = |what: String| Fault::Rule { dialect: NAME, what };
    let unknown = |format: &str| {
        let what = format!("the format {format} of codes");
        zt::Error::from(Fault::Unknown { dialect: NAME, what })
    };
    let settings = model.settings();
    if let Some(method) = settings.method().filter(|it| !["gptq", "auto-round"].contains(it)) {
        return Err(unknown(method));
    }
    let matrix = |part: &str, dtype: Option<DType>| {
        let found = model.need(NAME, &of(part))?;
        match *found.shape {
            [rows, columns] if dtype.is_none_or(|dtype| found.dtype == dtype) => {
                Ok([rows, columns])
            }
            _ => Err(zt::Error::from(rule(format!("{} is no matrix of its type", of(part))))),
        }
    };
    let [word_rows, outputs] = matrix("qweight", Some(DType::I32))?;
    let [groups, scale_columns] = matrix("scales", None)?;
    let [zero_rows, zero_words] = matrix("qzeros", Some(DType::I32))?;
    if scale_columns != outputs || zero_rows != groups {
        return Err(rule(format!("{} does not fit {}", of("scales"), of("qweight"))).into());
    }
    let words =
        |count: u64, bits: u32| count.checked_mul(bits.into()).map(|bits| bits.div_ceil(32));
    // Single layers may have settings of their own, by patterns of their names.
    let is_mixed =
        settings.get("dynamic").and_then(|it| it.as_object()).is_some_and(|it| !it.is_empty());
    let fits = |bits: &u64| {
        u32::try_from(*bits).is_ok_and(|bits| words(outputs, bits) == Some(zero_words))
    };
    let bits = match settings.number("bits").filter(|bits| !is_mixed || fits(bits)) {
        Some(bits) => u32::try_from(bits).ok(),
        None => [2, 3, 4, 8].into_iter().find(|bits| words(outputs, *bits) == Some(zero_words)),
    };
    if let Some(bits @ 5..=7) = bits {
        // GPTQModel keeps planes of bits of these.
        return Err(unknown(&format!("{bits} bits")));
    }
    let bits = bits.filter(|bits| [2, 3, 4, 8].contains(bits));
    let bits = bits.ok_or_else(|| rule("codes have 2, 3, 4 or 8 bits".to_owned()))?;
    let all_bits = word_rows.checked_mul(32).ok_or(Fault::TooLong)?;
    let order = of("g_idx");
    let has_order = model.get(&order).is_some();
    let inputs = all_bits.strict_div(bits.into());
    if words(outputs, bits) != Some(zero_words) || !all_bits.is_multiple_of(bits.into()) {
        let what =
            format!("{} and {} do not fit codes of {bits} bits", of("qweight"), of("qzeros"));
        return Err(rule(what).into());
    }
    let is_ordered = settings.get("desc_act").and_then(|it| it.as_bool()) == Some(true);
    if is_ordered && !has_order {
        return Err(Fault::Missing { dialect: NAME, part: order }.into());
    }
    let size = match settings.get("group_size").and_then(|it| it.as_i64()) {
        Some(size) if !is_mixed => {
            u64::try_from(size).ok().filter(|size| *size > 0).unwrap_or(inputs)
        }
        _ => inputs.div_ceil(groups.max(1)),
    };
    if inputs.div_ceil(size.max(1)) != groups {
        let what = format!(
            "{} has {groups} groups, and {inputs} inputs have {} of {size}",
            of("scales"),
            inputs.div_ceil(size.max(1))
        );
        return Err(rule(what).into());
    }
    let values = integers(bits, 0.0);
    let codes = Codes::packed(
        model.tensor(NAME, &of("qweight"))?,
        Packing::bits(bits).down_columns(4),
        values.clone(),
        [1, inputs, outputs],
    )?;
    let formula = Formula::new([outputs, inputs], codes)?.transposed().block(size.max(1), 1);
    let grid = formula.grid();
    let scale = Codes::numbers(model.tensor(NAME, &of("scales"))?, grid)?;
    let zeros = Codes::packed(
        model.tensor(NAME, &of("qzeros"))?,
        Packing::bits(bits).in_words(4),
        values,
        grid,
    )?;
    let format = settings.text("checkpoint_format").or(settings.text("format"));
    let is_marlin = settings.get("is_marlin_format").and_then(|it| it.as_bool()) == Some(true);
    let shift = match format.or(settings.packing_format()) {
        _ if is_marlin => return Err(unknown("marlin")),
        Some("gptq_v2") => 0.0,
        None | Some("gptq" | "auto_round:auto_gptq" | "auto_round:gptq") => 1.0,
        // auto-round once named the kernel, too, and packed with auto-gptq.
        Some(format) if format.starts_with("gptq:") || format.starts_with("auto_round:gptq:") => {
            1.0
        }
        Some(format) => return Err(unknown(format)),
    };
    let formula = formula.scale(scale)?.zero(zeros, shift)?;
    match has_order {
        true => formula.groups(model.tensor(NAME, &order)?),
        false => Ok(formula),
    }
}
