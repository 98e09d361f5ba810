//! Drops duplicate keys of dicts. As in Python, the last value of a key replaces the first, in its
//! place.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

use crate::fault::PickleFault;
use crate::global::Global;
use crate::heap::{Heap, Node, Value};

/// The limit of compared bytes of keys, for each byte of the pickle. One text can be the key of any
/// number of dicts.
const PER_BYTE: u64 = 128;

/// The limit for small pickles.
const AT_LEAST: u64 = 1 << 20;

/// Tuples that nest deeper are equal only if they are one value.
const DEPTH: usize = 8;

/// Drops the duplicate keys of every dict of a pickle of `byte_len` bytes.
pub(super) fn drop_replaced<G: Global>(
    heap: &mut Heap<'_, G>,
    byte_len: u64,
) -> Result<(), PickleFault> {
    let limit = byte_len.saturating_mul(PER_BYTE).max(AT_LEAST);
    let mut budget = Budget { left: limit, limit };
    for dict in heap.values() {
        let kept = match heap.node(dict) {
            Some(Node::Dict(pairs)) if pairs.len() > 1 => kept(heap, pairs, &mut budget)?,
            _ => None,
        };
        if let (Some(kept), Some(Node::Dict(pairs))) = (kept, heap.node_mut(dict)) {
            *pairs = kept;
        }
    }
    Ok(())
}

type Pairs<G> = Vec<(Value<G>, Value<G>)>;

/// The pairs that stay; `None` if all do.
fn kept<G: Global>(
    heap: &Heap<'_, G>,
    pairs: &[(Value<G>, Value<G>)],
    budget: &mut Budget,
) -> Result<Option<Pairs<G>>, PickleFault> {
    // Equal hashes are sorted by place.
    let mut sums = Vec::with_capacity(pairs.len());
    for (place, (key, _)) in pairs.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        hash(heap, *key, DEPTH, &mut hasher, budget)?;
        sums.push((hasher.finish(), place));
    }
    sums.sort_unstable();
    let mut last_of: Vec<Option<Value<G>>> = Vec::new();
    for equal in sums.chunk_by(|(a, _), (b, _)| a == b) {
        let [(_, first), others @ ..] = equal else {
            continue;
        };
        let Some((key, _)) = pairs.get(*first) else {
            continue;
        };
        for (_, place) in others {
            let Some((again, value)) = pairs.get(*place) else {
                continue;
            };
            if !is_same(heap, *key, *again, DEPTH) {
                continue;
            }
            // The last value of every key; `None` for a duplicate.
            if last_of.is_empty() {
                last_of = pairs.iter().map(|(_, value)| Some(*value)).collect();
            }
            if let Some(last) = last_of.get_mut(*first) {
                *last = Some(*value);
            }
            if let Some(gone) = last_of.get_mut(*place) {
                *gone = None;
            }
        }
    }
    if last_of.is_empty() {
        return Ok(None);
    }
    let pairs = pairs.iter().zip(last_of);
    let kept = pairs.filter_map(|((key, _), value)| value.map(|value| (*key, value)));
    Ok(Some(kept.collect()))
}

struct Budget {
    left: u64,
    limit: u64,
}

impl Budget {
    fn spend(&mut self, byte_len: usize) -> Result<(), PickleFault> {
        let left = self.left.checked_sub(byte_len as u64);
        self.left =
            left.ok_or(PickleFault::Limit { what: "bytes of compared keys", limit: self.limit })?;
        Ok(())
    }
}

/// Hashes a key. Equal keys have equal hashes.
fn hash<G: Global>(
    heap: &Heap<'_, G>,
    key: Value<G>,
    depth: usize,
    hasher: &mut DefaultHasher,
    budget: &mut Budget,
) -> Result<(), PickleFault> {
    budget.spend(size_of::<Value<G>>())?;
    if let Some(number) = whole(key) {
        number.hash(hasher);
        return Ok(());
    }
    let id = match key {
        Value::Float(value) => {
            value.to_bits().hash(hasher);
            return Ok(());
        }
        Value::Global(global) => {
            global.hash(hasher);
            return Ok(());
        }
        Value::Node(id) => id,
        Value::None | Value::Bool(_) | Value::Int(_) => return Ok(()),
    };
    let node = heap.node(key);
    node.map(discriminant).hash(hasher);
    match (node, depth.checked_sub(1)) {
        (Some(Node::Text(text)), _) => {
            budget.spend(text.len())?;
            text.hash(hasher);
        }
        (Some(Node::Halves(bytes) | Node::Bytes(bytes) | Node::Long(bytes)), _) => {
            budget.spend(bytes.len())?;
            bytes.hash(hasher);
        }
        (Some(Node::Named { module, name, .. }), _) => {
            for text in [module, name].map(|text| heap.text(*text)) {
                budget.spend(text.map_or(0, str::len))?;
                text.hash(hasher);
            }
        }
        (Some(Node::Tuple(items)), Some(depth)) => {
            items.len().hash(hasher);
            for item in items {
                hash(heap, *item, depth, hasher, budget)?;
            }
        }
        // Any other value is equal only to itself.
        _ => id.hash(hasher),
    }
    Ok(())
}

/// Whether two keys are equal in Python. Objects are equal only if they are one value.
fn is_same<G: Global>(heap: &Heap<'_, G>, a: Value<G>, b: Value<G>, depth: usize) -> bool {
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        return a == b;
    }
    match (heap.node(a), heap.node(b)) {
        (Some(Node::Text(a)), Some(Node::Text(b))) => a == b,
        (Some(Node::Halves(a)), Some(Node::Halves(b)))
        | (Some(Node::Bytes(a)), Some(Node::Bytes(b)))
        | (Some(Node::Long(a)), Some(Node::Long(b))) => a == b,
        (
            Some(Node::Named { module, name, .. }),
            Some(Node::Named { module: other_module, name: other_name, .. }),
        ) => {
            let text = |value: &Value<G>| heap.text(*value);
            text(module) == text(other_module) && text(name) == text(other_name)
        }
        (Some(Node::Tuple(left)), Some(Node::Tuple(right))) => {
            let depth = depth.checked_sub(1);
            let mut items = left.iter().zip(right);
            a == b
                || left.len() == right.len()
                    && depth.is_some_and(|depth| items.all(|(a, b)| is_same(heap, *a, *b, depth)))
        }
        // NaN is not equal to itself.
        _ => a == b,
    }
}

/// A number as an integer, if it is whole: `True`, 1 and 1.0 are one key.
fn whole<G: Global>(key: Value<G>) -> Option<i64> {
    /// 2^63.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match key {
        Value::Bool(value) => Some(value.into()),
        Value::Int(value) => Some(value),
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        Value::Float(value) if value.fract() == 0.0 && (-END..END).contains(&value) => {
            Some(value as i64)
        }
        _ => None,
    }
}
