//! What the tensors are called: by their places, or as the user says.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Result, Warning};

use super::contents::Contents;
use crate::fault::Fault;
use crate::fields::fnv1a;
use crate::name_list::Names;

/// The id that the tables have for a tensor, if the hash is the one that the project uses
/// elsewhere; the specification does not say.
pub(super) fn tensor_id(layer: u32, name: &str) -> u64 {
    let bytes = layer.to_le_bytes().into_iter().chain(name.bytes());
    fnv1a(bytes) & !(1 << 63)
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
            let prefix = format!("layers.{layer}.");
            let within = name.split_once(&prefix).map(|(_, within)| within);
            let candidates = [Some(name.as_str()), within];
            let mut ids = candidates
                .into_iter()
                .flatten()
                .map(|name| tensor_id(layer, name));
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
        let warnings = strangers.map(|name| Warning {
            object: Some(name),
            component: None,
            code: "name",
            message: "the name does not hash to the tensor's id, as others do".to_owned(),
        });
        warnings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::tensor_id;

    #[test]
    fn hashes_the_layer_and_the_name() {
        let id = tensor_id(0, "self_attn.q_proj.weight");
        assert_eq!(id, 0x7066_26E0_4079_B68A);
    }
}
