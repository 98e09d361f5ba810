//! Merges the pairs of several GGUF files, and of `.zt` files that were converted from GGUF.

use std::collections::HashSet;

use zt::{Attributes, Value};

/// The attribute with the order and the types of the pairs.
pub(super) const TYPES: &str = "gguf.types";

/// The number of files of a set, the number of this file from 0 on, and the number of tensors of the
/// set, as `gguf-split` of llama.cpp writes them.
pub(super) const SPLIT_COUNT: &str = "split.count";
const SPLIT_NO: &str = "split.no";
const SPLIT_TENSORS: &str = "split.tensors.count";

/// Prepares the attributes of several files for a merge; `true` for all files of one set.
pub(super) fn merge(files: &mut [Attributes]) -> bool {
    join_types(files);
    forget_set(files)
}

/// Removes the pairs that only say which file of a set each is: the merged file is no part of a set.
/// `false`, and nothing is changed, if a file of the set is missing.
fn forget_set(files: &mut [Attributes]) -> bool {
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

/// Appends the lists of types of all files to the first one. A key in the first list keeps its type.
fn join_types(files: &mut [Attributes]) {
    let mut files = files.iter_mut().filter(|file| {
        file.get(TYPES)
            .is_some_and(|types| types.as_array().is_some())
    });
    let Some(first) = files.next() else {
        return;
    };
    let key = |item: &Value| {
        item.as_array()
            .and_then(|item| item.first()?.to_cbor().ok())
    };
    let mut types: Vec<Value> = first
        .get(TYPES)
        .and_then(Value::as_array)
        .unwrap_or_default()
        .to_vec();
    let mut known: HashSet<Option<Vec<u8>>> = types.iter().map(key).collect();
    for file in files {
        if let Some(Value::Array(further)) = file.remove(TYPES) {
            types.extend(
                Vec::from(further)
                    .into_iter()
                    .filter(|item| known.insert(key(item))),
            );
        }
    }
    first.insert(TYPES, Value::array(types));
}
