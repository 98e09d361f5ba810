//! The names of the tensors: from their places, or from the user.

use zt::{Result, Warning};
use zt_foreign::{Fault, Names, fnv1a};

use crate::contents::Contents;
use crate::header::LAYERS_MAX;

/// The id of a tensor in the tables, by the hash that the project uses elsewhere. The specification
/// does not name the hash.
pub(super) fn tensor_id(layer: u32, name: &str) -> u64 {
    let bytes = layer.to_le_bytes().into_iter().chain(name.bytes());
    fnv1a(bytes) & !(1 << 63)
}

/// The place of a tensor, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) layer: u32,
    /// The number within the layer, if the name has the form that readers give.
    number: Option<u64>,
}

impl Place {
    /// The layer is the first part of the name that is a number below `LAYERS_MAX`. A tensor without
    /// a layer goes to the first one, because the format has no other place.
    pub(super) fn of(name: &str) -> Self {
        let layer = name.split('.').find_map(|part| {
            let layer = decimal(part).and_then(|number| u32::try_from(number).ok());
            layer.filter(|layer| *layer < u32::from(LAYERS_MAX))
        });
        let layer = layer.unwrap_or(0);
        let number = match name.split('.').collect::<Vec<_>>().as_slice() {
            ["layers", of, number] if decimal(of) == Some(layer.into()) => decimal(number),
            _ => None,
        };
        Place { layer, number }
    }

    pub(super) fn sort_key(self) -> (u32, u64) {
        (self.layer, self.number.unwrap_or(u64::MAX))
    }
}

/// The part of a name after `layers.{layer}.`, or the whole name.
pub(super) fn name_within(layer: u32, name: &str) -> &str {
    let prefix = format!("layers.{layer}.");
    name.split_once(&prefix).map_or(name, |(_, within)| within)
}

/// A number without a sign or leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Names in the order of the tensors.
#[derive(Default)]
pub(super) struct Naming {
    /// The remaining names, the next one last; `None` if the user gave none.
    names: Option<Vec<String>>,
    /// Whether any name hashed to its tensor's id, so that the hash is known.
    is_known_hash: bool,
    /// Names that did not hash to their tensor's id.
    strangers: Vec<String>,
    draft_is_named: bool,
}

impl Naming {
    /// There must be a name for each tensor of the layers, with or without the draft head.
    pub(super) fn new(names: Option<&Names>, contents: &Contents) -> Result<Self> {
        let Some(names) = names else {
            return Ok(Naming::default());
        };
        let layers = contents.layers.iter().map(|layer| layer.blocks.len());
        let main: usize = layers.sum();
        let draft = contents.draft.as_ref().map_or(0, |draft| draft.blocks.len());
        let given = names.iter().len();
        let draft_is_named = given.checked_sub(main) == Some(draft);
        if given != main && !draft_is_named {
            let (names, tensors) = (given as u64, main as u64);
            return Err(Fault::NameCount { names, tensors }.into());
        }
        let mut names: Vec<String> = names.iter().map(str::to_owned).collect();
        names.reverse();
        Ok(Naming { names: Some(names), draft_is_named, ..Naming::default() })
    }

    /// The name of the next tensor of the layers. Compares the tensor's id with the name's.
    pub(super) fn name(&mut self, default: String, layer: u32, id: Option<u64>) -> String {
        let Some(name) = self.names.as_mut().and_then(Vec::pop) else {
            return default;
        };
        if let Some(id) = id {
            let candidates = [name.as_str(), name_within(layer, &name)];
            let mut ids = candidates.iter().map(|name| tensor_id(layer, name));
            if ids.any(|candidate| candidate == id) {
                self.is_known_hash = true;
            } else {
                self.strangers.push(name.clone());
            }
        }
        name
    }

    /// The name of the next tensor of the draft head.
    pub(super) fn draft_name(&mut self, default: String) -> String {
        let names = self.names.as_mut().filter(|_| self.draft_is_named);
        names.and_then(Vec::pop).unwrap_or(default)
    }

    /// Warnings about names that may be another tensor's. If no name hashes to its id, the hash is
    /// unknown and there is no warning.
    pub(super) fn take_warnings(&mut self) -> Vec<Warning> {
        let strangers = std::mem::take(&mut self.strangers).into_iter();
        let strangers = strangers.filter(|_| self.is_known_hash);
        let message = "the name does not hash to the tensor's id, although others do";
        let warnings = strangers.map(|name| Warning::new("name", message).with_object(name));
        warnings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_the_layer_and_the_name() {
        let id = tensor_id(0, "self_attn.q_proj.weight");
        assert_eq!(id, 0x7066_26E0_4079_B68A);
    }

    #[test]
    fn names_contain_layers_and_numbers() {
        let place = |name| Place::of(name).sort_key();
        assert_eq!(place("layers.7.12"), (7, 12));
        assert_eq!(place("layers.07.12"), (12, u64::MAX));
        assert_eq!(place("layers.512.3"), (3, u64::MAX));
        assert_eq!(place("model.layers.31.mlp.experts.5.w1"), (31, u64::MAX));
        assert_eq!(place("lm_head.weight"), (0, u64::MAX));
        assert_eq!(name_within(3, "model.layers.3.q"), "q");
        assert_eq!(name_within(3, "model.layers.31.q"), "model.layers.31.q");
    }
}
