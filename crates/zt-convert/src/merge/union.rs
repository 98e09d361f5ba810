//! The union of the attributes of several inputs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use zt::{Attributes, Result, Value};
use zt_foreign::{Job, Loss, display};

/// A key of torchao, whose value is a JSON list of the tensors of a file. A set has the tensors of all its shards.
const LIST: &str = "tensor_names";

/// The texts of both lists; `None` if one is no such list.
fn joined(first: &Value, second: &Value) -> Option<Value> {
    let list = |value: &Value| serde_json::from_str::<Vec<String>>(value.as_str()?).ok();
    let mut all = list(first)?;
    let known: HashSet<String> = all.iter().cloned().collect();
    all.extend(list(second)?.into_iter().filter(|name| !known.contains(name)));
    Some(Value::from(serde_json::to_string(&all).ok()?))
}

/// The union of maps, in which the first value of a key is kept. Lists of tensors are joined.
#[derive(Default)]
pub(crate) struct Union {
    /// The only map so far. Most unions have one, and a place for each key takes more than the pairs.
    first: Option<Attributes>,
    pairs: Vec<(Value, Value)>,
    /// Positions in `pairs`, by the CBOR of the key, which may be any value.
    places: HashMap<Vec<u8>, usize>,
}

impl Union {
    /// Adds a pair, unless the key has a value already. Returns the key if that value is another one.
    ///
    /// # Errors
    ///
    /// If the key cannot be encoded.
    pub(crate) fn insert(&mut self, key: Value, value: Value) -> Result<Option<Value>> {
        for (key, value) in self.first.take().into_iter().flatten() {
            self.insert(key, value)?;
        }
        match self.places.entry(key.to_cbor()?) {
            Entry::Vacant(place) => {
                place.insert(self.pairs.len());
                self.pairs.push((key, value));
                Ok(None)
            }
            Entry::Occupied(place) => {
                let first = self.pairs.get_mut(*place.get()).map(|(_, first)| first);
                let Some(first) = first.filter(|first| **first != value) else {
                    return Ok(None);
                };
                if key.as_str() == Some(LIST)
                    && let Some(all) = joined(first, &value)
                {
                    *first = all;
                    return Ok(None);
                }
                Ok(Some(key))
            }
        }
    }

    /// Adds a map. A different second value of a key is a loss.
    pub(crate) fn add(&mut self, map: Attributes, job: &mut Job<'_>) -> Result<()> {
        if self.first.is_none() && self.pairs.is_empty() {
            let mut keys = map.iter().map(|(key, _)| key);
            if keys.all(|key| matches!(key, Value::Text(_))) {
                self.first = Some(map);
                return Ok(());
            }
        }
        for (key, value) in map {
            if let Some(key) = self.insert(key, value)? {
                let key = display(&key);
                job.accept(Loss::Conflict { key }, None);
            }
        }
        Ok(())
    }

    pub(crate) fn into_map(self) -> Attributes {
        self.first.unwrap_or_else(|| self.pairs.into_iter().collect())
    }
}

/// The union of maps. The first value of a key is kept; a different second value is a loss.
pub(crate) fn united(
    maps: impl IntoIterator<Item = Attributes>,
    job: &mut Job<'_>,
) -> Result<Attributes> {
    let mut union = Union::default();
    for map in maps {
        union.add(map, job)?;
    }
    Ok(union.into_map())
}
