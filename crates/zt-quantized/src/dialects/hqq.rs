//! HQQ 0.2.8: `X.W_q` with `X.scale`, `X.zero` and the settings of the weight as tensors beside them.
//!
//! Source: `Quantizer.dequantize` and `BitPack` of that release. `(code - zero) * scale`, where a zero point need not be
//! whole. The weight is regrouped: rows of one group (axis 1) or columns of one (axis 0). A byte has codes of as many
//! parts of the rows as it holds, the first part in its high bits.

use zt::{DType, Result};

use crate::dialects::{Dialect, integers};
use crate::fault::Fault;
use crate::model::Model;
use crate::values::codes::Codes;
use crate::values::packing::Packing;
use crate::values::weight::Formula;
use crate::weight::Weight;

pub(super) struct Hqq;

const NAME: &str = "hqq";

/// What lies beside the codes.
const PARTS: [&str; 19] = [
    "W_q",
    "scale",
    "zero",
    "nbits",
    "group_size",
    "shape",
    "axis",
    "packing",
    "unpack_view_dtype",
    "view_as_float",
    "quant_scale",
    "quant_zero",
    "compute_dtype",
    "offload_meta",
    "encoded_state_dict",
    "stores_quant_config",
    "channel_wise",
    "optimize",
    "round_zero",
];

impl Dialect for Hqq {
    fn name(&self) -> &'static str {
        NAME
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let weight = |layer: &str| {
            let of = |part: &str| format!("{layer}{part}");
            let parts = PARTS.map(of).into_iter().filter(|part| model.get(part).is_some());
            let float = model.float_of(&of("scale"));
            Weight::new(of("weight"), NAME, parts, float, formula(model, layer))
        };
        // A model may call its queries so.
        let is_hqq = |layer: &&str| {
            let has = |part: &str| model.get(&format!("{layer}{part}")).is_some();
            let codes = model.get(&format!("{layer}W_q"));
            has("nbits")
                || codes.is_some_and(|it| it.is(DType::U8) || it.is(DType::I32))
                    && (has("scale") || has("zero"))
        };
        Ok(model.ending("W_q").into_iter().filter(is_hqq).map(weight).collect())
    }
}

fn formula(model: &Model<'_>, layer: &str) -> Result<Formula> {
    let of = |part: &str| format!("{layer}{part}");
    let rule = |what: String| zt::Error::from(Fault::Rule { dialect: NAME, what });
    let unknown =
        |what: &str| zt::Error::from(Fault::Unknown { dialect: NAME, what: what.to_owned() });
    let one = |part: &str| -> Result<u64> {
        match *model.integers(NAME, &of(part))? {
            [value] => Ok(value),
            _ => Err(rule(format!("{} is not one number", of(part)))),
        }
    };
    let is_off = |part: &str| Ok::<_, zt::Error>(model.get(&of(part)).is_none() || one(part)? == 0);
    if !is_off("quant_scale")? || !is_off("quant_zero")? || !is_off("view_as_float")? {
        return Err(unknown("quantized scales, or codes that are viewed as floats"));
    }
    let shape = model.integers(NAME, &of("shape"))?;
    let bits = u32::try_from(one("nbits")?).unwrap_or(0);
    let count = zt::formats::element_count(&shape).ok_or(Fault::TooLong)?;
    let axis = one("axis")?;
    // Without a size, the other dimensions are one group.
    let group = match (model.get(&of("group_size")), axis) {
        (Some(_), _) => one("group_size")?,
        (None, 0) => shape.first().copied().unwrap_or(0),
        (None, _) => count.checked_div(shape.first().copied().unwrap_or(0)).unwrap_or(0),
    };
    let word = if bits == 3 { DType::I32 } else { DType::U8 };
    if model.get(&of("W_q")).is_some_and(|it| it.dtype != word) || ![1, 2, 3, 4, 8].contains(&bits)
    {
        return Err(unknown(&format!("codes of {bits} bits in other words than bytes")));
    }
    let others = count.checked_div(group).filter(|others| others.checked_mul(group) == Some(count));
    let others =
        others.ok_or_else(|| rule(format!("groups of {group} values do not fit {shape:?}")))?;
    let ([rows, columns], block) = match axis {
        1 => ([others, group], [1, u64::MAX]),
        0 => ([group, others], [u64::MAX, 1]),
        axis => return Err(rule(format!("the axis {axis}"))),
    };
    let tensor = model.tensor(NAME, &of("W_q"))?;
    let codes =
        Codes::packed(tensor, Packing::parts(bits), integers(bits, 0.0), [1, rows, columns])?;
    let formula = Formula::new(shape, codes)?.block(block[0], block[1]);
    let grid = formula.grid();
    let numbers = |part: &str| Codes::numbers(model.tensor(NAME, &of(part))?, grid);
    formula.scale(numbers("scale")?)?.zero(numbers("zero")?, 0.0)
}
