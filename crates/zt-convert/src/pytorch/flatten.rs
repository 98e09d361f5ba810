//! The names of what a pickle holds: keys and positions on the way to it, joined by dots.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::HashSet;
use std::fmt::Write;

use zt::Limits;

use super::attribute;
use super::global::Global;
use super::pickle::{Heap, Node, Value};
use super::violation::Violation;

/// What leaves, their names and what becomes of them may take, for each byte of the pickle: `None`
/// is one byte, and a tensor that is there again some thirty. A graph whose parts are shared can
/// have any number of leaves.
const PER_BYTE: u64 = 128;

/// About what a tensor takes that is listed.
pub(super) const TENSOR: usize = 3 << 10;

/// For small pickles.
const AT_LEAST: u64 = 1 << 20;

/// Something that is no collection, and its name.
#[derive(Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) value: Value,
}

/// What walking a pickle may still cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn of_pickle(byte_len: usize, limits: &Limits) -> Self {
        let budget = (byte_len as u64).saturating_mul(PER_BYTE).max(AT_LEAST);
        Budget(budget.min(limits.manifest_len))
    }

    pub(super) fn spend(&mut self, cost: usize) -> Result<(), Violation> {
        let left = self.0.checked_sub(cost as u64);
        self.0 = left.ok_or(Violation::Expanding)?;
        Ok(())
    }
}

/// Every leaf below `root`, in the order of the pickle; `single` is the name of a root that is a
/// leaf itself. Empty collections are leaves, but for the root.
///
/// Names that two leaves would share, of `{"a.b": x, "a": {"b": y}}` both, are written so that they
/// differ: `["a.b"]` and `["a"]["b"]`.
pub(super) fn leaves(
    heap: &Heap<'_>,
    root: Value,
    single: &str,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Vec<Leaf>, Violation> {
    let mut leaves = walk(heap, root, Style::Dots, limits, budget)?;
    if let [leaf] = leaves.as_mut_slice()
        && leaf.name.is_empty()
        && leaf.value == root
    {
        leaf.name.push_str(single);
        return Ok(leaves);
    }
    let mut once = HashSet::new();
    let twice: HashSet<String> = leaves
        .iter()
        .filter(|leaf| !once.insert(leaf.name.as_str()))
        .map(|leaf| leaf.name.clone())
        .collect();
    if !twice.is_empty() {
        let exact = walk(heap, root, Style::Brackets, limits, budget)?;
        for (leaf, exact) in leaves.iter_mut().zip(exact) {
            if twice.contains(&leaf.name) {
                *leaf = exact;
            }
        }
    }
    Ok(leaves)
}

/// How a name says its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `a.b.0`.
    Dots,
    /// `["a"]["b"][0]`: as Python would write it, and never the same for two ways.
    Brackets,
}

/// A collection on the way to the current leaf.
struct Level {
    collection: Value,
    /// How many of its items have been walked.
    done: usize,
    /// How long the name of the collection is.
    name_len: usize,
}

fn walk(
    heap: &Heap<'_>,
    root: Value,
    style: Style,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Vec<Leaf>, Violation> {
    let mut leaves = Vec::new();
    let mut name = String::new();
    let mut way: Vec<Level> = Vec::new();
    let mut current = Some(root);
    loop {
        if let Some(value) = current.take() {
            let len = collection_len(heap, value);
            match len {
                Some(1..) => {
                    // A collection that holds itself is endless, and ends here too.
                    if way.len() >= limits.nesting {
                        let limit = limits.nesting;
                        return Err(Violation::TooDeep { limit });
                    }
                    way.push(Level {
                        collection: value,
                        done: 0,
                        name_len: name.len(),
                    });
                }
                Some(0) if way.is_empty() => {}
                _ => {
                    if name.len() > limits.name_len {
                        let limit = limits.name_len;
                        return Err(Violation::NameTooLong { limit });
                    }
                    budget.spend(name.len().saturating_add(size_of::<Leaf>()))?;
                    leaves.push(Leaf {
                        name: name.clone(),
                        value,
                    });
                }
            }
        }
        let Some(level) = way.last_mut() else {
            return Ok(leaves);
        };
        name.truncate(level.name_len);
        match item(heap, level.collection, level.done) {
            Some((key, value)) => {
                budget.spend(1)?;
                level.done = level.done.saturating_add(1);
                append(&mut name, style, way.len() > 1, heap, key)?;
                if name.len() > limits.name_len {
                    let limit = limits.name_len;
                    return Err(Violation::NameTooLong { limit });
                }
                current = Some(value);
            }
            None => {
                way.pop();
            }
        }
    }
}

/// The node of a collection; `None` for a leaf. The objects of TorchScript are what they hold.
fn collection<'h, 'p>(heap: &'h Heap<'p>, value: Value) -> Option<&'h Node<'p>> {
    let mut node = heap.node(value)?;
    if let Node::Made(made) = node {
        node = match (made.maker, made.state) {
            (Global::Script, Some(state)) => heap.node(state)?,
            (Global::ScriptTyped, _) => match heap.tuple(made.arguments)? {
                [items, ..] => heap.node(*items)?,
                _ => return None,
            },
            _ => return None,
        };
    }
    matches!(node, Node::Dict(_) | Node::List(_) | Node::Tuple(_)).then_some(node)
}

/// How many items a collection has; `None` for a leaf.
fn collection_len(heap: &Heap<'_>, value: Value) -> Option<usize> {
    match collection(heap, value)? {
        Node::Dict(pairs) => Some(pairs.len()),
        Node::List(items) | Node::Tuple(items) => Some(items.len()),
        _ => None,
    }
}

/// What leads to an item of a collection.
enum Key {
    Of(Value),
    At(usize),
}

fn item(heap: &Heap<'_>, value: Value, at: usize) -> Option<(Key, Value)> {
    match collection(heap, value)? {
        Node::Dict(pairs) => pairs.get(at).map(|(key, value)| (Key::Of(*key), *value)),
        Node::List(items) | Node::Tuple(items) => items.get(at).map(|item| (Key::At(at), *item)),
        _ => None,
    }
}

fn append(
    name: &mut String,
    style: Style,
    is_inner: bool,
    heap: &Heap<'_>,
    key: Key,
) -> Result<(), Violation> {
    let bracketed = style == Style::Brackets;
    if bracketed {
        name.push('[');
    } else if is_inner {
        name.push('.');
    }
    match key {
        Key::At(at) => write_to(name, format_args!("{at}")),
        Key::Of(key) => write_key(name, bracketed, heap, key, 0)?,
    }
    if bracketed {
        name.push(']');
    }
    Ok(())
}

/// A key as Python's `str` has it; texts in quotes where that is wished, and within tuples.
fn write_key(
    name: &mut String,
    quoted: bool,
    heap: &Heap<'_>,
    key: Value,
    depth: usize,
) -> Result<(), Violation> {
    /// Tuples of tuples are keys of nothing that was ever seen.
    const DEPTH: usize = 4;
    /// Nor are longer ones.
    const ITEMS: usize = 64;

    let found = heap.describe(key);
    match key {
        Value::None => name.push_str("None"),
        Value::Bool(true) => name.push_str("True"),
        Value::Bool(false) => name.push_str("False"),
        Value::Int(value) => write_to(name, format_args!("{value}")),
        Value::Float(value) => write_to(name, format_args!("{value:?}")),
        Value::Global(global) => name.push_str(&attribute::name_of(global)),
        Value::Node(_) => match heap.node(key) {
            Some(Node::Text(text)) if quoted => write_to(name, format_args!("{text:?}")),
            Some(Node::Text(text)) => name.push_str(text),
            Some(Node::Bytes(bytes)) => {
                write_to(name, format_args!("b\"{}\"", bytes.escape_ascii()));
            }
            Some(Node::Made(made)) if made.maker == Global::Encode => {
                let bytes = attribute::bytes(heap, *made).ok_or(Violation::Key { found })?;
                write_to(name, format_args!("b\"{}\"", bytes.escape_ascii()));
            }
            _ => match heap.sequence(key) {
                Some(items) if depth < DEPTH && items.len() <= ITEMS => {
                    name.push('(');
                    for (at, item) in items.iter().enumerate() {
                        if at > 0 {
                            name.push_str(", ");
                        }
                        write_key(name, true, heap, *item, depth.saturating_add(1))?;
                    }
                    name.push(')');
                }
                _ => return Err(Violation::Key { found }),
            },
        },
    }
    Ok(())
}

fn write_to(name: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text does not fail.
    let _ = name.write_fmt(text);
}
