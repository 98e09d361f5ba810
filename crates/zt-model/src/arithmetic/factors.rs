//! The factors of an adapter, by the names that peft gives them.
//!
//! ```text
//! base_model.model.layers.0.q_proj.lora_A.weight           r × in
//! base_model.model.layers.0.q_proj.lora_B.default.weight   out × r
//! base_model.model.embed.lora_embedding_A                  r × rows, for the transposed weight
//! ```

use std::collections::BTreeMap;

use zt::{Error, File, Result};

use crate::arithmetic::fault::Fault;

/// What peft puts before the names of modules.
const PREFIX: &str = "base_model.model.";

/// The names of the two factors of one weight.
pub(super) struct Pair<'f> {
    pub(super) a: &'f str,
    pub(super) b: &'f str,
    /// Whether the factors are those of the transposed weight, because it is an embedding.
    pub(super) is_embedding: bool,
}

/// What an adapter has.
pub(super) struct Parts<'f> {
    /// The factors, by the names of their weights.
    pub(super) pairs: BTreeMap<String, Pair<'f>>,
    /// Tensors of the adapter that replace tensors of the base, by their names in the base.
    pub(super) saved: BTreeMap<&'f str, &'f str>,
}

/// The pairs of an adapter, and the tensors of modules that it `saves`.
///
/// # Errors
///
/// Code `unsupported` for a name that is none of a factor, and for two adapters in one file; `misuse` for a
/// factor without its counterpart; `not-found` without factors.
pub(super) fn parts(adapter: &File, saves: impl Fn(&str) -> bool) -> Result<Parts<'_>> {
    let mut saved = BTreeMap::new();
    let mut weights: BTreeMap<String, [Option<Factor<'_>>; 2]> = BTreeMap::new();
    for name in adapter.names() {
        let of_name = |fault: Fault| Error::from(fault).with_object(name);
        let Some(factor) = Factor::of(name) else {
            let of_base = name.strip_prefix(PREFIX).unwrap_or(name);
            if !saves(of_base) {
                return Err(of_name(Fault::NoFactor));
            }
            saved.insert(of_base, name);
            continue;
        };
        let weight = format!("{}.weight", factor.module);
        let [a, b] = weights.entry(weight).or_default();
        let half = if factor.is_b { b } else { a };
        if let Some(first) = half {
            let first = first.name.to_owned();
            return Err(of_name(Fault::SecondAdapter { first }));
        }
        *half = Some(factor);
    }
    if weights.is_empty() && saved.is_empty() {
        return Err(Fault::NoFactors.into());
    }
    let mut pairs = BTreeMap::new();
    for (weight, factors) in weights {
        let pair = match factors {
            [Some(a), Some(b)] if a.is_embedding == b.is_embedding => {
                Pair { a: a.name, b: b.name, is_embedding: a.is_embedding }
            }
            [a, b] => {
                let name = a.or(b).map_or("", |factor| factor.name);
                return Err(Error::from(Fault::Unpaired).with_object(name));
            }
        };
        pairs.insert(weight, pair);
    }
    Ok(Parts { pairs, saved })
}

/// The parts of the name of a factor.
pub(crate) struct Factor<'n> {
    name: &'n str,
    /// The module without the prefix of peft.
    pub(crate) module: &'n str,
    pub(crate) is_b: bool,
    is_embedding: bool,
}

impl<'n> Factor<'n> {
    /// `None` for another name.
    pub(crate) fn of(name: &'n str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX).unwrap_or(name);
        let (module, is_b, end) = split(rest, [".lora_embedding_A", ".lora_embedding_B"])
            .or_else(|| split(rest.strip_suffix(".weight")?, [".lora_A", ".lora_B"]))?;
        // The name of the adapter may stand at the end.
        let is_adapter = |end: &str| end.starts_with('.') && !end[1..].contains('.');
        (end.is_empty() || is_adapter(end)).then_some(Factor {
            name,
            module,
            is_b,
            is_embedding: rest.contains(".lora_embedding_"),
        })
    }
}

/// What is before one of two marks, whether that is the second one, and what is after it.
fn split<'n>(name: &'n str, [a, b]: [&str; 2]) -> Option<(&'n str, bool, &'n str)> {
    let of = |mark, is_b| {
        let (module, end) = name.rsplit_once(mark)?;
        Some((module, is_b, end))
    };
    of(a, false).or_else(|| of(b, true))
}

#[cfg(test)]
mod tests {
    use super::Factor;

    #[test]
    fn names_of_peft_are_factors() {
        for (name, expected) in [
            ("base_model.model.l.0.q.lora_A.weight", Some(("l.0.q", false, false))),
            ("base_model.model.l.0.q.lora_B.default.weight", Some(("l.0.q", true, false))),
            ("l.0.q.lora_B.weight", Some(("l.0.q", true, false))),
            ("base_model.model.wte.lora_embedding_A", Some(("wte", false, true))),
            ("wte.lora_embedding_B.default", Some(("wte", true, true))),
            ("l.0.q.weight", None),
            ("l.0.q.lora_B.bias", None),
            ("l.0.q.lora_magnitude_vector", None),
            ("l.0.q.lora_A.a.b.weight", None),
            ("lora_A.weight", None),
        ] {
            let factor = Factor::of(name);
            let found = factor.map(|it| (it.module, it.is_b, it.is_embedding));
            assert_eq!(found, expected, "{name}");
        }
    }
}
