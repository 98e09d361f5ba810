//! The names of what a pickle holds: keys and positions on the way to it, joined by dots.

use std::collections::{HashMap, HashSet};

use zt::Limits;

use crate::global::Global;
use crate::key;
use crate::pickle::{Heap, Made, Node, Value};
use crate::violation::Violation;
use crate::wrapper;

/// What leaves, their names and what becomes of them may take, for each byte of the pickles: `None`
/// is one byte, and a tensor that is there again two. A graph whose parts are shared can have any
/// number of leaves.
const PER_BYTE: u64 = 128;

/// About what a tensor takes that is listed.
pub(super) const TENSOR: usize = 3 << 10;

/// For small files: a list of one tensor some 20,000 times.
const AT_LEAST: u64 = 64 << 20;

/// Bytes of the name of a number, a truth value or `None` that cost nothing: such a leaf is a byte
/// or two of the pickle, and a list of them repeats its own name before each.
const NAME: usize = 64;

/// Something that is no collection, and its name.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) value: Value,
}

/// What walking the pickles of a file may still cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: u64,
    limit: u64,
}

impl Budget {
    /// That of a file of so many bytes, its pickles among them. They may be compressed, and longer.
    pub(super) fn new(pickles_len: u64, file_len: u64, limits: &Limits) -> Self {
        let of_pickles = pickles_len.saturating_mul(PER_BYTE);
        let budget = of_pickles.max(file_len).max(AT_LEAST);
        let limit = budget.min(limits.manifest_len);
        Budget { left: limit, limit }
    }

    pub(super) fn spend(&mut self, cost: usize) -> Result<(), Violation> {
        let left = self.left.checked_sub(cost as u64);
        let limit = self.limit;
        self.left = left.ok_or(Violation::Expanding { limit })?;
        Ok(())
    }
}

/// Every leaf below `root`, in the order of the pickle; `single` is the name of a root that is a
/// leaf itself. Empty collections are leaves, but for the root; so are sets that hold no tensors.
///
/// A tensor that a tensor was given, `w.extra`, is named as if it lay within that; a key that has
/// no name is a leaf, too, or a collection: `<key 0>.key` beside the value's `<key 0>`. Names that two
/// leaves would share, of `{"a.b": x, "a": {"b": y}}` or of `{1: x, "1": y}` both, are written so
/// that they differ: `["a.b"]` and `["a"]["b"]`, `[1]` and `["1"]`. Where they are the same all the
/// same, as of `{nan: x, nan: y}`, all but the first are counted: `[nan].2`.
pub(super) fn leaves(
    heap: &Heap<'_>,
    root: Value,
    single: &str,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Vec<Leaf>, Violation> {
    let walk = |style| Walk {
        heap,
        single,
        style,
        limits,
        name: String::new(),
        leaves: Vec::new(),
        way: Vec::new(),
    };
    let mut leaves = walk(Style::Dots).leaves(root, budget)?;
    let twice = repeated(&leaves);
    if twice.is_empty() {
        return Ok(leaves);
    }
    let exact = walk(Style::Brackets).leaves(root, budget)?;
    for (leaf, exact) in leaves.iter_mut().zip(exact) {
        if twice.contains(&leaf.name) {
            *leaf = exact;
        }
    }
    count_repeated(&mut leaves, budget)?;
    Ok(leaves)
}

/// The names that several leaves have.
fn repeated(leaves: &[Leaf]) -> HashSet<String> {
    let mut once = HashSet::new();
    let names = leaves.iter().map(|leaf| &leaf.name);
    names
        .filter(|name| !once.insert(name.as_str()))
        .cloned()
        .collect()
}

/// Gives what would have the name of another one of its own.
fn count_repeated(leaves: &mut [Leaf], budget: &mut Budget) -> Result<(), Violation> {
    let twice = repeated(leaves);
    if twice.is_empty() {
        return Ok(());
    }
    let mut taken: HashSet<String> = leaves.iter().map(|leaf| leaf.name.clone()).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for leaf in leaves {
        let Some(name) = twice.get(&leaf.name) else {
            continue;
        };
        let count = counts.entry(name).or_insert(0);
        *count = count.saturating_add(1);
        if *count == 1 {
            continue;
        }
        loop {
            budget.spend(name.len())?;
            let counted = format!("{name}.{count}");
            if taken.insert(counted.clone()) {
                leaf.name = counted;
                break;
            }
            *count = count.saturating_add(1);
        }
    }
    Ok(())
}

/// How a name says its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `a.b.0`.
    Dots,
    /// `["a"]["b"][0]`: as Python would write it.
    Brackets,
}

/// What is on the way to the current leaf.
struct Level {
    items: Items,
    /// How many of them have been walked.
    done: usize,
    /// A key without a name, whose value has been walked: what it holds comes next.
    key: Option<(usize, Value)>,
    /// How long the name of the collection is.
    name_len: usize,
}

enum Items {
    /// Those of a collection.
    Of(Value),
    /// Those of a tensor that are or hold tensors.
    Members(Vec<(Value, Value)>),
}

/// What leads to an item.
#[derive(Clone, Copy)]
enum Part {
    /// A key of a dict, and which of them it is.
    Key(usize, Value),
    At(usize),
    Member(usize, Value),
}

struct Walk<'w, 'p> {
    heap: &'w Heap<'p>,
    single: &'w str,
    style: Style,
    limits: &'w Limits,
    /// Of where the walk is.
    name: String,
    leaves: Vec<Leaf>,
    way: Vec<Level>,
}

impl Walk<'_, '_> {
    fn leaves(mut self, root: Value, budget: &mut Budget) -> Result<Vec<Leaf>, Violation> {
        let mut current = Some(root);
        loop {
            if let Some(value) = current.take() {
                self.visit(value, budget)?;
            }
            let Some(level) = self.way.last_mut() else {
                return Ok(self.leaves);
            };
            self.name.truncate(level.name_len);
            if let Some((place, key)) = level.key.take() {
                self.append(Part::Key(place, key))?;
                self.push(".key")?;
                current = Some(key);
                continue;
            }
            budget.spend(1)?;
            let Some((part, value)) = item(self.heap, level) else {
                self.way.pop();
                continue;
            };
            level.done = level.done.saturating_add(1);
            let is_named = self.append(part)?;
            if let (Part::Key(place, key), false) = (part, is_named)
                && let Some(level) = self.way.last_mut()
            {
                level.key = Some((place, key));
            }
            current = Some(value);
        }
    }

    /// Adds a leaf, or goes into a collection.
    fn visit(&mut self, value: Value, budget: &mut Budget) -> Result<(), Violation> {
        let is_walked = match collection(self.heap, value) {
            // Options of a program among tensors are kept; alone they are no checkpoint.
            Some(_) if self.way.is_empty() && is_namespace(self.heap, value) => false,
            Some(Node::Set(_) | Node::FrozenSet(_)) => wrapper::is_in(self.heap, value, budget)?,
            Some(node) => len(node) > 0 || self.way.is_empty(),
            None => false,
        };
        if is_walked {
            return self.enter(Items::Of(value));
        }
        if self.way.is_empty() {
            self.push(self.single)?;
        }
        let name_len = match value {
            Value::Node(_) => self.name.len(),
            _ => self.name.len().saturating_sub(NAME),
        };
        budget.spend(name_len.saturating_add(size_of::<Leaf>()))?;
        self.leaves.push(Leaf {
            name: self.name.clone(),
            value,
        });
        let tensors = members(self.heap, value, true, budget)?;
        if tensors.is_empty() {
            return Ok(());
        }
        self.enter(Items::Members(tensors))
    }

    fn enter(&mut self, items: Items) -> Result<(), Violation> {
        // A collection that holds itself is endless, and ends here too.
        if self.way.len() >= self.limits.nesting {
            let limit = self.limits.nesting;
            return Err(Violation::TooDeep { limit });
        }
        self.way.push(Level {
            items,
            done: 0,
            key: None,
            name_len: self.name.len(),
        });
        Ok(())
    }

    /// Appends what leads to an item, and says whether that has a name.
    fn append(&mut self, part: Part) -> Result<bool, Violation> {
        let is_inner = self.way.len() > 1 || matches!(part, Part::Member(..));
        // A member is named in the same way in both styles: it is no item of the tensor.
        let is_bracketed = self.style == Style::Brackets && !matches!(part, Part::Member(..));
        if is_bracketed {
            self.push("[")?;
        } else if is_inner {
            self.push(".")?;
        }
        let is_named = match part {
            Part::At(at) => self.push(&at.to_string()).map(|()| true)?,
            Part::Key(place, key) | Part::Member(place, key) => key::append(
                &mut self.name,
                self.heap,
                (place, key),
                is_bracketed,
                self.limits.name_len,
            )?,
        };
        if is_bracketed {
            self.push("]")?;
        }
        Ok(is_named)
    }

    fn push(&mut self, text: &str) -> Result<(), Violation> {
        let limit = self.limits.name_len;
        if self.name.len().saturating_add(text.len()) > limit {
            return Err(Violation::NameTooLong { limit });
        }
        self.name.push_str(text);
        Ok(())
    }
}

/// What a tensor was given in Python, `w.extra = ...`, by name: what is or holds a tensor, or all
/// else.
pub(super) fn members(
    heap: &Heap<'_>,
    value: Value,
    of_tensors: bool,
    budget: &mut Budget,
) -> Result<Vec<(Value, Value)>, Violation> {
    let dicts = match heap.node(value) {
        Some(Node::Made(made)) => wrapper::members(heap, *made),
        _ => Vec::new(),
    };
    let mut members = Vec::new();
    for (name, value) in dicts.into_iter().flatten() {
        budget.spend(size_of::<(Value, Value)>())?;
        if wrapper::is_in(heap, *value, budget)? == of_tensors {
            members.push((*name, *value));
        }
    }
    Ok(members)
}

/// The node of a collection; `None` for a leaf. Objects of TorchScript and namespaces are what they
/// hold.
fn collection<'h, 'p>(heap: &'h Heap<'p>, value: Value) -> Option<&'h Node<'p>> {
    let mut node = heap.node(value)?;
    if let Node::Made(made) = node {
        node = match (made.maker, made.state) {
            (maker, Some(state)) if maker.has_members() && is_called_with_nothing(heap, *made) => {
                heap.node(state)?
            }
            (Global::ScriptTyped, _) => match heap.tuple(made.arguments)? {
                [items, ..] => heap.node(*items)?,
                _ => return None,
            },
            _ => return None,
        };
    }
    let is_collection = matches!(
        node,
        Node::Dict(_) | Node::List(_) | Node::Tuple(_) | Node::Set(_) | Node::FrozenSet(_)
    );
    is_collection.then_some(node)
}

/// Whether all that an object holds is its state.
fn is_called_with_nothing(heap: &Heap<'_>, made: Made) -> bool {
    heap.tuple(made.arguments).is_some_and(<[_]>::is_empty)
}

fn is_namespace(heap: &Heap<'_>, value: Value) -> bool {
    matches!(heap.node(value), Some(Node::Made(made)) if made.maker == Global::Namespace)
}

/// How many items a collection has.
fn len(node: &Node<'_>) -> usize {
    match node {
        Node::Dict(pairs) => pairs.len(),
        Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) => {
            items.len()
        }
        _ => 0,
    }
}

/// The next item of a level.
fn item(heap: &Heap<'_>, level: &Level) -> Option<(Part, Value)> {
    let at = level.done;
    let collection = match &level.items {
        Items::Of(value) => collection(heap, *value)?,
        Items::Members(pairs) => {
            let (name, value) = pairs.get(at)?;
            return Some((Part::Member(at, *name), *value));
        }
    };
    match collection {
        Node::Dict(pairs) => pairs
            .get(at)
            .map(|(key, value)| (Part::Key(at, *key), *value)),
        Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) => {
            items.get(at).map(|item| (Part::At(at), *item))
        }
        _ => None,
    }
}
