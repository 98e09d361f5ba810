//! What the tensors are called: by their places, or as the user says.

use zt::{Result, Warning};
use zt_foreign::{Fault, Names, fnv1a};

use crate::contents::Contents;
use crate::header::LAYERS_MAX;

/// The id that the tables have for a tensor, if the hash is the one that the project uses
/// elsewhere; the specification does not say.
pub(super) fn tensor_id(layer: u32, name: &str) -> u64 {
    let bytes = layer.to_le_bytes().into_iter().chain(name.bytes());
    fnv1a(bytes) & !(1 << 63)
}

/// Where a tensor goes that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) layer: u32,
    /// Its number within the layer, where its name is one that readers give.
    number: Option<u64>,
}

impl Place {
    /// The layer is the first part of the name that is a number below 512, the number that layers
    /// may have. What is of no layer has no place in the format, and goes to the first.
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

/// A name within a layer: what follows `layers.{layer}.`, if anything does.
pub(super) fn name_within(layer: u32, name: &str) -> &str {
    let prefix = format!("layers.{layer}.");
    name.split_once(&prefix).map_or(name, |(_, within)| within)
}

/// A number as it is written: without a sign or leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Names in the order of the tensors.
#[derive(Default)]
pub(super) struct Naming {
    /// Those that are left, the next one last; `None` where the user gave none.
    names: Option<Vec<String>>,
    /// Whether any name has hashed to its tensor's id: then the hash is known.
    is_known_hash: bool,
    /// Names that have not.
    strangers: Vec<String>,
    draft_is_named: bool,
}

impl Naming {
    /// # Errors
    ///
    /// Code `names` where there are neither as many names as tensors of the layers, nor as many as
    /// of layers and draft head.
    pub(super) fn new(names: Option<&Names>, contents: &Contents) -> Result<Self> {
        let Some(names) = names else {
            return Ok(Naming::default());
        };
        let layers = contents.layers.iter().map(|layer| layer.blocks.len());
        let main: usize = layers.fold(0, usize::saturating_add);
        let draft = contents
            .draft
            .as_ref()
            .map_or(0, |draft| draft.blocks.len());
        let all = main.saturating_add(draft);
        let given = names.iter().len();
        if given != main && given != all {
            let (names, tensors) = (given as u64, main as u64);
            return Err(Fault::NameCount { names, tensors }.into());
        }
        let mut names: Vec<String> = names.iter().map(str::to_owned).collect();
        names.reverse();
        Ok(Naming {
            names: Some(names),
            draft_is_named: given == all,
            ..Naming::default()
        })
    }

    /// The name of the next tensor of the layers. An id of its own is compared with the name's.
    pub(super) fn name(&mut self, default: String, layer: u32, id: Option<u64>) -> String {
        let Some(name) = self.names.as_mut().and_then(Vec::pop) else {
            return default;
        };
        if let Some(id) = id {
            let candidates = [name.as_str(), name_within(layer, &name)];
            let mut ids = candidates.iter().map(|name| tensor_id(layer, name));
            match ids.any(|candidate| candidate == id) {
                true => self.is_known_hash = true,
                false => self.strangers.push(name.clone()),
            }
        }
        name
    }

    /// The name of the next tensor of the draft head.
    pub(super) fn draft_name(&mut self, default: String) -> String {
        let names = self.names.as_mut().filter(|_| self.draft_is_named);
        names.and_then(Vec::pop).unwrap_or(default)
    }

    /// Names that may be another tensor's. Where no name at all hashes to its id, the hash is
    /// another one, and nothing is known.
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
    fn names_say_layers_and_numbers() {
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
