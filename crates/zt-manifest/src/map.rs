//! Maps of attributes.

use std::cmp::Ordering;
use std::fmt;

use crate::Value;

/// Attributes: unique keys, usually texts, in the order they were inserted or read.
///
/// Two maps are equal where they hold the same pairs, in whatever order: CBOR maps have none.
/// A lookup looks at every key, which suits the dozens of keys that attributes have.
///
/// ```
/// use zt_manifest::{Map, Value};
///
/// let mut map = Map::new();
/// map.insert("bits", 4u64);
/// map.insert("packing", "8_per_i32");
/// assert_eq!(map.get("bits").and_then(Value::as_u64), Some(4));
/// assert_eq!(map.insert("bits", 8u64), Some(Value::Unsigned(4)));
/// ```
#[derive(Clone, Default)]
pub struct Map {
    pairs: Vec<(Value, Value)>,
}

impl Map {
    /// A map without keys. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Map { pairs: Vec::new() }
    }

    /// Pairs whose keys are already known to be unique.
    pub(crate) const fn from_unique(pairs: Vec<(Value, Value)>) -> Self {
        Map { pairs }
    }

    /// Whether there are no keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// How many keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The value of a text key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let mut pairs = self.pairs.iter();
        pairs.find_map(|(name, value)| (name.as_str() == Some(key)).then_some(value))
    }

    /// Puts `value` under `key`, and returns what was there. A new key comes last; an old one
    /// keeps its place.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.pairs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => Some(std::mem::replace(place, value)),
            None => {
                self.pairs.push((key, value));
                None
            }
        }
    }

    /// Takes out the value of a text key. The others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let mut keys = self.pairs.iter();
        let position = keys.position(|(name, _)| name.as_str() == Some(key))?;
        Some(self.pairs.remove(position).1)
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> std::iter::Map<std::slice::Iter<'_, (Value, Value)>, Split> {
        self.pairs.iter().map(|(key, value)| (key, value))
    }

    /// The pairs by key, for comparing maps whose order differs.
    fn sorted(&self) -> Vec<&(Value, Value)> {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_unstable_by(|(a, _), (b, _)| a.order(b));
        pairs
    }

    /// A total order that agrees with `==`.
    pub(crate) fn order(&self, other: &Map) -> Ordering {
        let by_len = self.len().cmp(&other.len());
        by_len.then_with(|| {
            let (left, right) = (self.sorted(), other.sorted());
            let pairs = left.iter().zip(&right);
            let mut orders = pairs.map(|(a, b)| a.0.order(&b.0).then_with(|| a.1.order(&b.1)));
            orders
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }
}

/// How [`Map::iter`] splits a pair.
type Split = fn(&(Value, Value)) -> (&Value, &Value);

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        // Nearly always the order is the same too, and then nothing needs sorting.
        self.pairs == other.pairs || (self.len() == other.len() && self.order(other).is_eq())
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Value, &'a Value);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (Value, Value)>, Split>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Map {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.pairs.into_iter()
    }
}

impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Map {
    /// Of equal keys, the last value wins, at the place of the first.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()));
        let mut placed: Vec<(usize, (Value, Value))> = pairs.enumerate().collect();
        // Not by `insert`: a hundred thousand keys would take ten thousand million comparisons.
        placed.sort_by(|(_, a), (_, b)| a.0.order(&b.0));
        placed.dedup_by(|later, earlier| {
            let same = later.1.0 == earlier.1.0;
            if same {
                std::mem::swap(&mut later.1.1, &mut earlier.1.1);
            }
            same
        });
        placed.sort_unstable_by_key(|(place, _)| *place);
        Map::from_unique(placed.into_iter().map(|(_, pair)| pair).collect())
    }
}

impl<K: Into<Value>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Map {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Map;
    use crate::Value;

    #[test]
    fn of_equal_keys_the_last_value_wins_at_the_first_place() {
        let map = Map::from([("b", 1u64), ("a", 2), ("b", 3), ("b", 4)]);
        let pairs: Vec<_> = map.into_iter().collect();
        let pair = |key: &str, value: u64| (Value::from(key), Value::from(value));
        assert_eq!(pairs, [pair("b", 4), pair("a", 2)]);
    }

    #[test]
    fn maps_are_equal_whatever_the_order_of_their_pairs() {
        let map = Map::from([("a", 1u64), ("b", 2)]);
        assert_eq!(map, Map::from([("b", 2u64), ("a", 1)]));
        assert_ne!(map, Map::from([("b", 1u64), ("a", 2)]));
        assert_ne!(map, Map::from([("a", 1u64)]));
    }

    #[test]
    fn removing_keeps_the_order_of_the_others() {
        let mut map = Map::from([("a", 1u64), ("b", 2), ("c", 3)]);
        assert_eq!(map.remove("b"), Some(Value::Unsigned(2)));
        assert_eq!(map.remove("b"), None);
        let keys: Vec<_> = map.iter().filter_map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a", "c"]);
        assert_eq!((map.len(), map.is_empty()), (2, false));
        assert!(Map::new().is_empty());
    }
}
