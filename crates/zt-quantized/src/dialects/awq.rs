//! AWQ, version gemm: `X.qweight`, `X.qzeros` and `X.scales`.
//!
//! Source: `dequantize_gemm` of autoawq 0.2.9. Eight outputs lie in a word, in the order 0 2 4 6 1 3 5 7. The weight is
//! the transpose of what is stored.

use zt::{DType, FloatType, Result};

use crate::dialects::{Dialect, integers, ratio};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Awq;

const NAME: &str = "awq";

/// The nibble of a word that has each of eight outputs.
const PLACES: [u32; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

impl Dialect for Awq {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let method = model.settings().method();
        let mut weights = Vec::new();
        for layer in model.ending("qweight") {
            let of = |part: &str| format!("{layer}{part}");
            let has = |part: &str| model.get(&of(part)).is_some();
            if method == Some("awq") || (has("scales") && has("qzeros")) {
                let parts = ["qweight", "qzeros", "scales"].map(of).into_iter();
                let parts = parts.filter(|part| model.get(part).is_some());
                let float =
                    if has("scales") { model.float_of(&of("scales")) } else { FloatType::F16 };
                weights.push(Weight::new(of("weight"), NAME, parts, float, formula(model, layer)));
            }
        }
        Ok(weights)
    }
}

fn formula(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}{part}");
    let rule = |what: String| Fault::Rule { dialect: NAME, what };
    let settings = model.settings();
    let version = settings.text("version").or(settings.text("checkpoint_format"));
    if let Some(version) = version.filter(|it| !it.eq_ignore_ascii_case("gemm")) {
        return Err(Fault::Unknown { dialect: NAME, what: format!("the version {version}") }.into());
    }
    if let Some(bits) =
        settings.number("bits").or(settings.number("w_bit")).filter(|bits| *bits != 4)
    {
        return Err(Fault::Unknown { dialect: NAME, what: format!("codes of {bits} bits") }.into());
    }
    let matrix = |part: &str| match *model.need(NAME, &of(part))?.shape {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(zt::Error::from(rule(format!("{} is no matrix", of(part))))),
    };
    let [inputs, words] = matrix("qweight")?;
    let [groups, outputs] = matrix("scales")?;
    let zeros = matrix("qzeros")?;
    let is_words = |part: &str| model.get(&of(part)).is_some_and(|it| it.dtype == DType::I32);
    if words.checked_mul(8) != Some(outputs)
        || zeros != [groups, words]
        || !is_words("qweight")
        || !is_words("qzeros")
    {
        return Err(rule(format!(
            "{} does not fit {} and {}",
            of("qweight"),
            of("scales"),
            of("qzeros")
        ))
        .into());
    }
    let size = settings.number("group_size").or(settings.number("q_group_size"));
    let size = size.or_else(|| ratio(inputs, groups)).unwrap_or(inputs).max(1);
    if groups.checked_mul(size) != Some(inputs) {
        let what = format!(
            "{} has {groups} groups, and {inputs} inputs are not {groups} of {size}",
            of("scales")
        );
        return Err(rule(what).into());
    }
    let packing = Packing::ordered(4, 4, &PLACES);
    let codes = |part: &str, grid| {
        Codes::packed(model.tensor(NAME, &of(part))?, packing.clone(), integers(4, 0.0), grid)
    };
    let formula = Formula::new([outputs, inputs], codes("qweight", [1, inputs, outputs])?)?;
    let formula = formula.transposed().block(size, 1);
    let grid = formula.grid();
    let scale = Codes::numbers(model.tensor(NAME, &of("scales"))?, grid)?;
    formula.scale(scale)?.zero(codes("qzeros", grid)?, 0.0)
}
