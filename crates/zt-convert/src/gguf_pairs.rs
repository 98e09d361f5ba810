//! The pairs of several GGUF files as those of one, and of `.zt` files that were made of GGUF files.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashSet;

use zt::{Attributes, Value};

/// The attribute with the order and the types of the pairs.
pub(crate) const TYPES: &str = "gguf.types";

/// Of how many files the set is that a file is part of, which of them it is, from 0 on, and how many
/// tensors they have together: as `gguf-split` of llama.cpp writes it.
pub(crate) const SPLIT_COUNT: &str = "split.count";
const SPLIT_NO: &str = "split.no";
const SPLIT_TENSORS: &str = "split.tensors.count";

/// Takes what only says which file of a set each is out of the attributes of all of them: what is
/// made of all is no part of a set. `false`, and nothing done, where one is missing.
pub(crate) fn forgets_set(files: &mut [Attributes]) -> bool {
    let number = |file: &Attributes, key| file.get(key).and_then(Value::as_u64);
    let mut parts: Vec<&mut Attributes> = files
        .iter_mut()
        .filter(|file| file.get(SPLIT_COUNT).is_some())
        .collect();
    let count = parts.len() as u64;
    let numbers: HashSet<u64> = parts
        .iter()
        .filter(|file| number(file, SPLIT_COUNT) == Some(count))
        .filter_map(|file| number(file, SPLIT_NO).filter(|no| *no < count))
        .collect();
    if count < 2 || numbers.len() as u64 != count {
        return false;
    }
    for file in &mut parts {
        for key in [SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS] {
            file.remove(key);
        }
    }
    true
}

/// Puts the second of two lists of types behind the first, but for keys that this has; `false` where
/// the attribute is no such list.
pub(crate) fn joins_types(key: &Value, first: &mut Value, second: &Value) -> bool {
    let (Some(TYPES), Value::Array(first), Some(second)) = (key.as_str(), first, second.as_array())
    else {
        return false;
    };
    let key = |item: &Value| {
        item.as_array()
            .and_then(|item| item.first()?.to_cbor().ok())
    };
    let known: HashSet<Option<Vec<u8>>> = first.iter().map(key).collect();
    let further = second.iter().filter(|item| !known.contains(&key(item)));
    first.extend(further.cloned());
    true
}
