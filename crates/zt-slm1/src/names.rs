//! Finds the names of hashes, among the names of every model and the user's names.

use std::collections::HashMap;

use zt_foreign::{Names, fnv1a};

/// The tensors outside layers.
const MODEL: [&str; 3] = ["tok_embeddings", "norm", "output"];

/// The tensors of a layer.
#[rustfmt::skip]
const LAYER: [&str; 9] = [
    "attn_norm", "ffn_norm", "wq", "wk", "wv", "wo", "w1", "w2", "w3",
];

/// The names of tensors by their hashes.
pub(super) struct Resolver(HashMap<u64, String>);

impl Resolver {
    /// Finds names for the `hashes`: first among the names of a model with `layer_count` layers, then
    /// among the user's `names`.
    pub(super) fn new(
        hashes: impl ExactSizeIterator<Item = u64>,
        layer_count: u32,
        names: Option<&Names>,
    ) -> Self {
        // A layer has at least one tensor, so the header's number can be limited.
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

    /// Gives the name to the tensor with its hash, unless that tensor has a name.
    fn add(&mut self, name: String) {
        let place = self.0.get_mut(&fnv1a(name.bytes()));
        if let Some(place) = place.filter(|place| place.is_empty()) {
            *place = name;
        }
    }

    pub(super) fn name(&self, hash: u64) -> String {
        match self.0.get(&hash).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => format!("tensor_{hash:016x}"),
        }
    }
}
