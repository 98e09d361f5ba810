//! Which tensor goes to which shard.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::hash::Hash;

/// A tensor on its way to a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item<S> {
    pub(super) byte_len: u64,
    /// What says that its bytes are another's too; `None` for bytes of its own.
    pub(super) storage: Option<S>,
}

/// The positions of the items of each shard, ascending, and the bytes of all of them.
///
/// This is the rule of `huggingface_hub`, so that a set is cut where the Hub's own are: tensors are
/// taken as they come, and a shard ends before the tensor that would make it larger than `limit`.
/// One that is larger by itself is a shard by itself, before the one that is being filled. Tensors
/// of one storage are together and count once.
pub(super) fn shards<S: Eq + Hash>(
    items: impl IntoIterator<Item = Item<S>>,
    limit: u64,
) -> (Vec<Vec<usize>>, u64) {
    let mut shards: Vec<Vec<usize>> = Vec::new();
    let (mut current, mut current_len) = (Vec::new(), 0u64);
    let mut total = 0u64;
    let mut firsts: HashMap<S, usize> = HashMap::new();
    // By the first of a storage, the others.
    let mut others: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, item) in items.into_iter().enumerate() {
        if let Some(storage) = item.storage {
            let first = *firsts.entry(storage).or_insert(at);
            if first != at {
                others.entry(first).or_default().push(at);
                continue;
            }
        }
        total = total.saturating_add(item.byte_len);
        if item.byte_len > limit {
            shards.push(vec![at]);
            continue;
        }
        let byte_len = current_len.saturating_add(item.byte_len);
        if byte_len > limit {
            shards.push(std::mem::take(&mut current));
            current_len = 0;
        }
        current.push(at);
        current_len = current_len.saturating_add(item.byte_len);
    }
    if !current.is_empty() || shards.is_empty() {
        shards.push(current);
    }
    for shard in &mut shards {
        let added = shard.iter().filter_map(|at| others.remove(at)).flatten();
        let added: Vec<usize> = added.collect();
        shard.extend(added);
        shard.sort_unstable();
    }
    (shards, total)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests")]
    use super::{Item, shards};

    fn plan(sizes: &[u64], limit: u64) -> Vec<Vec<usize>> {
        let items = sizes.iter().map(|byte_len| Item {
            byte_len: *byte_len,
            storage: None::<u8>,
        });
        let (shards, total) = shards(items, limit);
        assert_eq!(total, sizes.iter().sum::<u64>());
        shards
    }

    /// As `huggingface_hub.split_state_dict_into_shards_factory` of 0.36.0 gives them.
    #[test]
    fn shards_are_those_of_the_hub() {
        // Its own example.
        let example = plan(&[6, 6, 2, 6, 2, 2], 10);
        assert_eq!(example, [vec![0], vec![1, 2], vec![3, 4, 5]]);
        // One that is too large does not end the shard before it, and precedes it.
        assert_eq!(plan(&[3, 11, 3, 5], 10), [vec![1], vec![0, 2], vec![3]]);
        assert_eq!(plan(&[11, 12], 10), [[0], [1]]);
        assert_eq!(plan(&[5, 5, 0, 5], 10), [vec![0, 1, 2], vec![3]]);
        assert_eq!(plan(&[0, 0], 0), [[0, 1]]);
        assert_eq!(plan(&[1, 1], 0), [[0], [1]]);
        assert_eq!(plan(&[], 10), [[0; 0]]);
    }

    #[test]
    fn random_plans_are_those_of_the_hub() {
        let hub = include_str!("../../tests/data/hub_shards.json");
        let hub: serde_json::Value = serde_json::from_str(hub).unwrap();
        let cases = hub["cases"].as_array().unwrap();
        assert!(cases.len() > 100);
        for case in cases {
            let sizes = case["sizes"].as_array().unwrap().iter();
            let storages = case["storages"].as_array().unwrap().iter();
            let items = sizes.zip(storages).map(|(size, storage)| Item {
                byte_len: size.as_u64().unwrap(),
                storage: storage.as_u64(),
            });
            let (shards, total) = shards(items, case["limit"].as_u64().unwrap());
            // Their names are in their order.
            let expected = case["shards"].as_object().unwrap().values();
            let expected: Vec<_> = expected.cloned().collect();
            assert_eq!(
                serde_json::json!(shards),
                serde_json::json!(expected),
                "{case}"
            );
            assert_eq!(case["total_size"], total, "{case}");
        }
    }

    #[test]
    fn tensors_of_one_storage_are_together_and_count_once() {
        let items = [
            (6, Some('a')),
            (6, None),
            (6, Some('a')),
            (4, Some('b')),
            (4, Some('b')),
        ];
        let items = items.map(|(byte_len, storage)| Item { byte_len, storage });
        let expected = (vec![vec![0, 2], vec![1, 3, 4]], 16);
        assert_eq!(shards(items, 10), expected);
    }
}
