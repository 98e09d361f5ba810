//! Maps of attributes.

use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// Attributes: unique keys, usually texts, in the order of insertion or of the file.
///
/// Two maps are equal if they hold the same pairs in any order: a CBOR map has no order. A lookup compares
/// every key, which is fast enough for the dozens of keys that attributes have. A clone shares the pairs
/// until one of the two changes.
///
/// ```
/// use zt_manifest::{Attributes, Value};
///
/// let mut map = Attributes::new();
/// map.insert("bits", 4u64);
/// map.insert("packing", "8_per_i32");
/// assert_eq!(map.get("bits").and_then(Value::as_u64), Some(4));
/// assert_eq!(map.insert("bits", 8u64), Some(Value::Unsigned(4)));
/// ```
#[derive(Clone, Default)]
pub struct Attributes {
    /// `None` if there are no pairs, because most objects have no attributes.
    pairs: Option<Arc<Vec<(Value, Value)>>>,
}

impl Attributes {
    /// A map without keys. Allocates nothing.
    pub const fn new() -> Self {
        Attributes { pairs: None }
    }

    /// A map of pairs whose keys the caller has found unique.
    pub(crate) fn from_unique(pairs: Vec<(Value, Value)>) -> Self {
        Attributes { pairs: (!pairs.is_empty()).then(|| Arc::new(pairs)) }
    }

    fn pairs(&self) -> &[(Value, Value)] {
        self.pairs.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The pairs, no longer shared with a clone.
    fn pairs_mut(&mut self) -> &mut Vec<(Value, Value)> {
        Arc::make_mut(self.pairs.get_or_insert_default())
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.pairs().is_empty()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.pairs().len()
    }

    /// The value of a text key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let mut pairs = self.pairs().iter();
        pairs.find_map(|(name, value)| (name.as_str() == Some(key)).then_some(value))
    }

    /// Sets the value of `key`, and returns the old one. A new key comes last; an old one keeps its place.
    pub fn insert(&mut self, key: impl Into<Value>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        let pairs = self.pairs_mut();
        match pairs.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => Some(std::mem::replace(place, value)),
            None => {
                pairs.push((key, value));
                None
            }
        }
    }

    /// Removes a text key and returns its value. The others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let mut keys = self.pairs().iter();
        let position = keys.position(|(name, _)| name.as_str() == Some(key))?;
        Some(self.pairs_mut().remove(position).1)
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> std::iter::Map<std::slice::Iter<'_, (Value, Value)>, Split> {
        self.pairs().iter().map(|(key, value)| (key, value))
    }

    /// Whether both hold the same pairs in the same order, in maps within them too.
    fn is_identical(&self, other: &Attributes) -> bool {
        let is_equal = |a: &Value, b: &Value| a.is_equal(b, Attributes::is_identical);
        let mut pairs = self.pairs().iter().zip(other.pairs());
        self.len() == other.len()
            && pairs.all(|(a, b)| is_equal(&a.0, &b.0) && is_equal(&a.1, &b.1))
    }
}

/// How [`Attributes::iter`] splits a pair.
type Split = fn(&(Value, Value)) -> (&Value, &Value);

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        // The order is nearly always the same, and then nothing needs sorting. If not, the deterministic
        // encodings are compared, which sort each map within once. To sort keys that are maps at every
        // comparison would take 2^depth steps.
        self.is_identical(other)
            || (self.len() == other.len() && self.compared() == other.compared())
    }
}

impl Eq for Attributes {}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Attributes {
    type Item = (&'a Value, &'a Value);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (Value, Value)>, Split>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Attributes {
    type Item = (Value, Value);
    type IntoIter = std::vec::IntoIter<(Value, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        let pairs = self.pairs.map(Arc::unwrap_or_clone);
        pairs.unwrap_or_default().into_iter()
    }
}

impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Attributes {
    /// Of equal keys, the last value wins, at the place of the first.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        let pairs = pairs.map(|(key, value)| (key.into(), value.into()));
        let pairs: Vec<(Value, Value)> = pairs.collect();
        if has_unique_texts(&pairs) {
            return Attributes::from_unique(pairs);
        }
        // Not by `insert`: 10^5 keys would take 10^10 comparisons.
        let placed = pairs.into_iter().enumerate();
        let placed = placed.map(|(place, pair)| (pair.0.compared(), place, pair));
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        placed.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(&mut later.2.1, &mut earlier.2.1);
            }
            same
        });
        placed.sort_unstable_by_key(|(_, place, _)| *place);
        Attributes::from_unique(placed.into_iter().map(|(.., pair)| pair).collect())
    }
}

impl<K: Into<Value>, V: Into<Value>> Extend<(K, V)> for Attributes {
    /// Of equal keys, the last value wins, at the place of the first.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let added = pairs.into_iter();
        let added = added.map(|(key, value)| (key.into(), value.into()));
        *self = std::mem::take(self).into_iter().chain(added).collect();
    }
}

impl<K: Into<Value>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Attributes {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

/// Whether all keys are texts, and no two are equal. To compare encodings would take several times the
/// memory of the pairs.
fn has_unique_texts(pairs: &[(Value, Value)]) -> bool {
    let texts: Option<Vec<&str>> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    texts.is_some_and(|mut texts| {
        texts.sort_unstable();
        texts.is_sorted_by(|a, b| a < b)
    })
}
