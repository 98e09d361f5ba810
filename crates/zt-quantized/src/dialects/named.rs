//! What is known by name, and has no values here: AQLM, QuIP#, EXL2 and EXL3.
//!
//! Their codes are indices of trained code books, or need a rotation of the weights.

use zt::Result;

use crate::dialects::Dialect;
use crate::fault::Fault;
use crate::model::Model;
use crate::weight::Weight;

pub(super) struct Named;

/// The codes that only this dialect has, its name, and its other parts.
const DIALECTS: [(&str, &str, &[&str]); 4] = [
    ("aqlm", "codes", &["codebooks", "scales"]),
    ("quip-sharp", "Qidxs", &["SU", "SV", "Wscale", "codebook_id"]),
    (
        "exl2",
        "q_weight",
        &["q_scale", "q_scale_max", "q_groups", "q_perm", "q_invperm", "q_group_map"],
    ),
    ("exl3", "trellis", &["suh", "svh", "su", "sv", "mcg", "mul1"]),
];

impl Dialect for Named {
    fn name(&self) -> &'static str {
        "named"
    }

    fn weights(&self, model: &Model<'_>) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for (dialect, codes, others) in DIALECTS {
            for layer in model.ending(&format!(".{codes}")) {
                let of = |part: &&str| format!("{layer}.{part}");
                let others = others.iter().map(of).filter(|part| model.get(part).is_some());
                let others: Vec<String> = others.collect();
                let tensor = model.get(&of(&codes));
                let is_codes = tensor.is_some_and(|it| !it.dtype.is_float() && it.shape.len() > 1);
                if others.is_empty() || !is_codes {
                    continue;
                }
                let fault = Fault::Unknown { dialect, what: "a weight of code books".to_owned() };
                let parts = [of(&codes)].into_iter().chain(others);
                let name = of(&"weight");
                weights.push(Weight::new(name, dialect, parts, model.float(), Err(fault.into())));
            }
        }
        Ok(weights)
    }
}
