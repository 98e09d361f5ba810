//! Merges the pairs of several GGUF files, and of `.zt` files that were converted from GGUF.

use std::collections::HashSet;

use zt::{Attributes, Result, Value};
use zt_foreign::{AttributeChange, Fault, ShardPlace};

use crate::value_type::ValueType;

/// The attribute with the order and the types of the pairs.
pub(super) const TYPES: &str = "gguf.types";

/// The number of files of a set, the number of this file from 0 on, and the number of tensors of the
/// set, as `gguf-split` of llama.cpp writes them.
pub(super) const SPLIT_COUNT: &str = "split.count";
pub(super) const SPLIT_NO: &str = "split.no";
pub(super) const SPLIT_TENSORS: &str = "split.tensors.count";

const SPLIT: [&str; 3] = [SPLIT_COUNT, SPLIT_NO, SPLIT_TENSORS];

/// Prepares the attributes of several files for a merge; `true` for all files of one set.
pub(super) fn merge(files: &mut [Attributes]) -> bool {
    let is_whole = forget_set(files);
    join_types(files);
    is_whole
}

/// Removes the pairs that only say which file of a set each is: the merged file is no part of a set.
/// `false` if a file of the set is missing.
fn forget_set(files: &mut [Attributes]) -> bool {
    let number = |file: &Attributes, key| file.get(key).and_then(Value::as_u64);
    let parts = files.iter_mut().filter_map(|file| {
        let count = number(file, SPLIT_COUNT).filter(|count| *count > 1)?;
        let no = number(file, SPLIT_NO);
        let types = forget_part(file);
        if let Some(types) = types {
            file.insert(TYPES, Value::array(types));
        }
        Some((count, no.filter(|no| *no < count)))
    });
    let parts: Vec<_> = parts.collect();
    let total = parts.len() as u64;
    let numbers: HashSet<u64> = parts.iter().filter_map(|(_, no)| *no).collect();
    total > 0 && numbers.len() as u64 == total && parts.iter().all(|(count, _)| *count == total)
}

/// Removes the pairs that only say which file of a set this is. Returns the types of the others, which are
/// removed, too.
fn forget_part(file: &mut Attributes) -> Option<Vec<Value>> {
    for key in SPLIT {
        file.remove(key);
    }
    let Some(Value::Array(types)) = file.remove(TYPES) else {
        return None;
    };
    let mut types = Vec::from(types);
    let key = |item: &Value| Some(item.as_array()?.first()?.as_str()?.to_owned());
    types.retain(|item| !key(item).is_some_and(|key| SPLIT.contains(&&*key)));
    Some(types)
}

/// Removes the pairs with these keys.
pub(super) fn remove(attributes: &mut Attributes, is_removed: impl Fn(&Value) -> bool) {
    let pairs = std::mem::take(attributes).into_iter();
    *attributes = pairs.filter(|(key, _)| !is_removed(key)).collect();
    if let Some(Value::Array(types)) = attributes.remove(TYPES) {
        let mut types = Vec::from(types);
        types.retain(|item| !item.as_array().and_then(<[_]>::first).is_some_and(&is_removed));
        attributes.insert(TYPES, Value::array(types));
    }
}

/// The attributes of a file of a set: the reverse of [`merge`]. The first file has those of the set, as
/// `gguf-split` writes it.
pub(super) fn of_part(set: Option<Attributes>, part: ShardPlace) -> Attributes {
    let mut file = set.filter(|_| part.no == 0).unwrap_or_default();
    let mut types = forget_part(&mut file).unwrap_or_default();
    let pairs = [
        (SPLIT_NO, "uint16", part.no),
        (SPLIT_COUNT, "uint16", part.count),
        (SPLIT_TENSORS, "int32", part.objects),
    ];
    for (key, value_type, value) in pairs {
        types.push(Value::array(vec![key.into(), value_type.into()]));
        file.insert(key, value);
    }
    file.insert(TYPES, Value::array(types));
    file
}

/// Sets a pair. It keeps its place and its type, unless the change gives another. A new pair is the last one.
pub(super) fn set(attributes: &mut Attributes, change: &AttributeChange) -> Result<()> {
    let AttributeChange { key, values, value_type } = change;
    let types = attributes.get(TYPES).and_then(Value::as_array);
    let mut types = types.unwrap_or_default().to_vec();
    let pair = |item: &Value| match item.as_array() {
        Some([name, value_type]) if name.as_str() == Some(key) => {
            Some(ValueType::from_name(value_type.as_str()?))
        }
        _ => None,
    };
    let place = types.iter().position(|item| pair(item).is_some());
    let known = types.iter().find_map(pair).flatten();
    let wanted = match value_type {
        Some(name) => {
            let value_type = ValueType::from_short_name(name);
            let unknown = || Fault::NoAttributeType { value_type: name.clone() };
            Some(value_type.ok_or_else(unknown)?)
        }
        None => known,
    };
    let mut held = values.iter().filter_map(|value| match wanted {
        Some(value_type) => Some((value_type, value_type.cast(value)?)),
        None => Some((ValueType::of(value)?, value.clone())),
    });
    let (value_type, value) = held.next().ok_or_else(|| Fault::AttributeType {
        key: key.clone(),
        value_type: wanted
            .map_or("a number, a text, a bool, or a list of one of them", ValueType::name),
    })?;
    attributes.insert(key.as_str(), value);
    let item = Value::array(vec![key.as_str().into(), value_type.name().into()]);
    match place.and_then(|place| types.get_mut(place)) {
        Some(old) => *old = item,
        None => types.push(item),
    }
    attributes.insert(TYPES, Value::array(types));
    Ok(())
}

/// Appends the lists of types of all files to the first one. A key in the first list keeps its type.
fn join_types(files: &mut [Attributes]) {
    let mut files = files
        .iter_mut()
        .filter(|file| file.get(TYPES).is_some_and(|types| types.as_array().is_some()));
    let Some(first) = files.next() else {
        return;
    };
    let key = |item: &Value| item.as_array().and_then(|item| item.first()?.to_cbor().ok());
    let mut types: Vec<Value> =
        first.get(TYPES).and_then(Value::as_array).unwrap_or_default().to_vec();
    let mut known: HashSet<Option<Vec<u8>>> = types.iter().map(key).collect();
    for file in files {
        if let Some(Value::Array(further)) = file.remove(TYPES) {
            types.extend(Vec::from(further).into_iter().filter(|item| known.insert(key(item))));
        }
    }
    first.insert(TYPES, Value::array(types));
}
