//! Decides which tensor goes to which shard.

use std::collections::HashMap;
use std::hash::Hash;

/// A tensor that goes to a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item<S> {
    pub(super) byte_len: u64,
    /// The same value for tensors that share their bytes; `None` for bytes of its own.
    pub(super) storage: Option<S>,
}

/// How large a shard becomes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) byte_len: u64,
    pub(super) tensors: u64,
    /// Whether the shards in a row have all tensors in order.
    pub(super) in_order: bool,
}

/// The positions of the items of each shard, ascending, and the bytes of all items; `None` beyond 2^64.
///
/// The rule is `huggingface_hub`'s. Tensors are taken in order, and a shard ends before the tensor
/// that would make it larger than a limit. A larger tensor is a shard by itself, before the current
/// shard; or after it, if the order is kept. Tensors of one storage are together and count once.
pub(super) fn shards<S: Eq + Hash>(
    items: impl IntoIterator<Item = Item<S>>,
    limits: Limits,
) -> (Vec<Vec<usize>>, Option<u64>) {
    let mut shards: Vec<Vec<usize>> = Vec::new();
    let (mut current, mut current_len) = (Vec::new(), 0u64);
    let mut total = Some(0u64);
    let mut firsts: HashMap<S, usize> = HashMap::new();
    // The other items of a storage, by its first.
    let mut others: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, item) in items.into_iter().enumerate() {
        if let Some(storage) = item.storage {
            let first = *firsts.entry(storage).or_insert(at);
            if first != at {
                others.entry(first).or_default().push(at);
                continue;
            }
        }
        total = total.and_then(|total| total.checked_add(item.byte_len));
        if item.byte_len > limits.byte_len && !limits.in_order {
            shards.push(vec![at]);
            continue;
        }
        let is_full = current.len() as u64 >= limits.tensors;
        let byte_len = current_len.checked_add(item.byte_len);
        let byte_len = byte_len.filter(|len| *len <= limits.byte_len && !is_full);
        current_len = byte_len.unwrap_or_else(|| {
            if !current.is_empty() {
                shards.push(std::mem::take(&mut current));
            }
            item.byte_len
        });
        current.push(at);
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
    #![allow(clippy::indexing_slicing, reason = "tests")]
    use super::{Item, Limits, shards};

    /// The limits of the Hub.
    fn of_bytes(byte_len: u64) -> Limits {
        Limits { byte_len, tensors: u64::MAX, in_order: false }
    }

    fn within(sizes: &[u64], limits: Limits) -> Vec<Vec<usize>> {
        let items = sizes.iter().map(|byte_len| Item { byte_len: *byte_len, storage: None::<u8> });
        let (shards, total) = shards(items, limits);
        assert_eq!(total, Some(sizes.iter().sum::<u64>()));
        shards
    }

    fn plan(sizes: &[u64], limit: u64) -> Vec<Vec<usize>> {
        within(sizes, of_bytes(limit))
    }

    /// As `gguf-split` cuts, which refuses a tensor above the limit at the beginning.
    #[test]
    fn a_large_tensor_keeps_its_place_in_a_numbered_set() {
        let in_order = |sizes: &[u64], byte_len| {
            let limits = Limits { in_order: true, ..of_bytes(byte_len) };
            within(sizes, limits)
        };
        assert_eq!(in_order(&[3, 11, 3, 5], 10), [vec![0], vec![1], vec![2, 3]]);
        assert_eq!(in_order(&[11, 12], 10), [[0], [1]]);
        assert_eq!(in_order(&[6, 6, 2], 10), [vec![0], vec![1, 2]]);
        assert_eq!(in_order(&[0, 1], 0), [[0], [1]]);
        assert_eq!(in_order(&[], 10), [[0; 0]]);
    }

    #[test]
    fn a_shard_has_at_most_so_many_tensors() {
        for in_order in [false, true] {
            let plan = |sizes: &[u64], tensors| {
                let limits = Limits { byte_len: 10, tensors, in_order };
                within(sizes, limits)
            };
            assert_eq!(plan(&[1; 5], 2), [vec![0, 1], vec![2, 3], vec![4]]);
            assert_eq!(plan(&[6, 6, 1, 1], 2), [vec![0], vec![1, 2], vec![3]]);
            // At least one tensor is in each.
            assert_eq!(plan(&[1, 0], 0), [[0], [1]]);
        }
    }

    /// As `huggingface_hub.split_state_dict_into_shards_factory` of 0.36.0 returns them.
    #[test]
    fn plans_equal_those_of_the_hub() {
        // Its own example.
        let example = plan(&[6, 6, 2, 6, 2, 2], 10);
        assert_eq!(example, [vec![0], vec![1, 2], vec![3, 4, 5]]);
        // A tensor that is too large does not end the current shard, and precedes it.
        assert_eq!(plan(&[3, 11, 3, 5], 10), [vec![1], vec![0, 2], vec![3]]);
        assert_eq!(plan(&[11, 12], 10), [[0], [1]]);
        assert_eq!(plan(&[5, 5, 0, 5], 10), [vec![0, 1, 2], vec![3]]);
        assert_eq!(plan(&[0, 0], 0), [[0, 1]]);
        assert_eq!(plan(&[1, 1], 0), [[0], [1]]);
        assert_eq!(plan(&[], 10), [[0; 0]]);
    }

    /// Some of the tensors share their storage.
    #[test]
    fn random_plans_equal_those_of_the_hub() {
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
            let limits = of_bytes(case["limit"].as_u64().unwrap());
            let (shards, total) = shards(items, limits);
            // Their names are in their order.
            let expected = case["shards"].as_object().unwrap().values();
            let expected: Vec<_> = expected.cloned().collect();
            assert_eq!(serde_json::json!(shards), serde_json::json!(expected), "{case}");
            assert_eq!(case["total_size"], total.unwrap(), "{case}");
        }
    }

    #[test]
    fn a_total_beyond_2_64_is_no_number() {
        let item = |byte_len| Item { byte_len, storage: None::<u8> };
        assert_eq!(shards([item(u64::MAX), item(1)], of_bytes(10)).1, None);
    }
}
