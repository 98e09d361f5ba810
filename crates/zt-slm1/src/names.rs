//! Names out of hashes: those that every model has, and those that the user knows.

use std::collections::HashMap;

use zt_foreign::{Names, fnv1a};

/// The tensors that are not of a layer.
const MODEL: [&str; 3] = ["tok_embeddings", "norm", "output"];

/// The tensors of a layer.
const LAYER: [&str; 9] = [
    "attn_norm",
    "ffn_norm",
    "wq",
    "wk",
    "wv",
    "wo",
    "w1",
    "w2",
    "w3",
];

/// The names of tensors by their hashes.
pub(super) struct Resolver(HashMap<u64, String>);

impl Resolver {
    /// Knows the names of a model of so many layers, as far as they have one of the `hashes`, and
    /// after them those that the user gives.
    pub(super) fn new(
        hashes: impl ExactSizeIterator<Item = u64>,
        layer_count: u32,
        names: Option<&Names>,
    ) -> Self {
        // A layer has a tensor at least: the header's number may be any.
        let layers = u64::from(layer_count).min(hashes.len() as u64);
        let mut resolver = Resolver(hashes.map(|hash| (hash, String::new())).collect());
        for name in MODEL {
            resolver.add(format!("{name}.weight"));
        }
        for layer in 0..layers {
            for name in LAYER {
                resolver.add(format!("layers.{layer}.{name}.weight"));
            }
        }
        for name in names.iter().flat_map(|names| names.iter()) {
            resolver.add(name.to_owned());
        }
        resolver
    }

    /// Takes the name for the tensor that has its hash, if one does and has no name yet.
    fn add(&mut self, name: String) {
        let place = self.0.get_mut(&fnv1a(name.bytes()));
        if let Some(place) = place.filter(|place| place.is_empty()) {
            *place = name;
        }
    }

    /// What the tensor of this hash is called.
    pub(super) fn name(&self, hash: u64) -> String {
        match self.0.get(&hash).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => format!("tensor_{hash:016x}"),
        }
    }
}
