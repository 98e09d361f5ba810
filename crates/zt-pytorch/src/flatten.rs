//! Flattens a pickle to named leaves: the keys and positions on the way to a leaf, joined by dots.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};

use zt::Limits;

use zt_pickle::NodeId;

use crate::budget::Budget;
use crate::fault::TorchFault;
use crate::global::Global;
use crate::key;
use crate::pickle::{Heap, Made, Node, Value};
use crate::unknown::{Tensors, Unknown, unknown};
use crate::wrapper;

/// About the memory of a listed tensor.
pub(super) const TENSOR: usize = 3 << 10;

/// Values that are not collections, and their names. A list of one-byte values has a leaf for each
/// byte, so the names share one text.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    names: String,
    /// The length of each name, and the value.
    leaves: Vec<(usize, Value)>,
}

impl Leaves {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Value)> {
        let mut rest = self.names.as_str();
        self.leaves.iter().map(move |(len, value)| {
            let (name, behind) = rest.split_at(*len);
            rest = behind;
            (name, *value)
        })
    }

    pub(super) const fn len(&self) -> usize {
        self.leaves.len()
    }

    fn push(&mut self, name: &str, value: Value, budget: &mut Budget) -> Result<(), TorchFault> {
        budget.spend(name.len())?;
        budget.spend(size_of::<(usize, Value)>())?;
        // Not doubled: the memory would be up to three times as much.
        if self.names.capacity().strict_sub(self.names.len()) < name.len() {
            let more = (self.names.len() / 8).max(name.len());
            self.names.reserve_exact(more);
        }
        if self.leaves.len() == self.leaves.capacity() {
            self.leaves.reserve_exact((self.leaves.len() / 8).max(64));
        }
        self.names.push_str(name);
        self.leaves.push((name.len(), value));
        Ok(())
    }

    /// The names of several leaves.
    fn repeated(&self) -> HashSet<String> {
        let mut names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let equal = names.windows(2).filter_map(|pair| match pair {
            [a, b] if a == b => Some((*a).to_owned()),
            _ => None,
        });
        equal.collect()
    }
}

/// Every leaf below `root`, in the order of the pickle. A root that is a leaf gets the name
/// `single`. Empty collections are leaves, except the root, and so are sets without tensors.
///
/// A tensor that is an attribute of a tensor, `w.extra`, is named like an item. A key without a name
/// is walked into as well: `<key 0>.key` is the key, `<key 0>` its value.
///
/// An object of an unknown class is a leaf, but its items are walked into, as in a collection. In
/// its arguments and its state, only tensors and collections of them are leaves. An object that is
/// met again, perhaps in itself, is not walked again.
///
/// Duplicate names, as in `{"a.b": x, "a": {"b": y}}` or `{1: x, "1": y}`, are written as Python
/// would: `["a.b"]` and `["a"]["b"]`, `[1]` and `["1"]`. If they are still equal, as in
/// `{nan: x, nan: y}`, all but the first are counted: `[nan].2`.
pub(super) fn leaves(
    heap: &Heap<'_>,
    tensors: &Tensors<'_>,
    root: Value,
    single: &str,
    limits: &Limits,
    budget: &mut Budget,
) -> Result<Leaves, TorchFault> {
    let walk = |style| Walk {
        heap,
        tensors,
        single,
        style,
        limits,
        name: String::new(),
        leaves: Leaves::default(),
        way: Vec::new(),
        walked: HashSet::new(),
        is_begun: false,
    };
    let leaves = walk(Style::Dots).leaves(root, budget)?;
    let twice = leaves.repeated();
    if twice.is_empty() {
        return Ok(leaves);
    }
    let brackets = walk(Style::Brackets).leaves(root, budget)?;
    let mut exact = Leaves::default();
    for ((name, value), (bracketed, _)) in leaves.iter().zip(brackets.iter()) {
        let is_repeated = twice.contains(name);
        exact.push(if is_repeated { bracketed } else { name }, value, budget)?;
    }
    counted(exact, budget)
}

/// The leaves. A name that several leaves have gets a number.
fn counted(leaves: Leaves, budget: &mut Budget) -> Result<Leaves, TorchFault> {
    let twice = leaves.repeated();
    if twice.is_empty() {
        return Ok(leaves);
    }
    let mut taken: HashSet<Cow<'_, str>> = leaves.iter().map(|(name, _)| name.into()).collect();
    let mut counts: HashMap<&str, RangeInclusive<usize>> = HashMap::new();
    let mut counted = Leaves::default();
    for (name, value) in leaves.iter() {
        let Some(count) = counts.get_mut(name) else {
            if twice.contains(name) {
                counts.insert(name, 2..=usize::MAX);
            }
            counted.push(name, value, budget)?;
            continue;
        };
        for count in count {
            budget.spend(name.len())?;
            let new = format!("{name}.{count}");
            if taken.insert(new.clone().into()) {
                counted.push(&new, value, budget)?;
                break;
            }
        }
    }
    Ok(counted)
}

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `a.b.0`.
    Dots,
    /// `["a"]["b"][0]`, as in Python.
    Brackets,
}

/// A collection on the way to the current leaf.
struct Level<'w> {
    items: Items<'w>,
    /// The places of the items that are left.
    places: Range<usize>,
    /// A key without a name, which is visited next.
    key: Option<(usize, Value)>,
    /// The length of the collection's name.
    name_len: usize,
    /// Whether only tensors are leaves.
    is_inner: bool,
    /// Whether these are items of the root.
    is_root: bool,
}

enum Items<'w> {
    /// The pairs of a dict.
    Pairs(&'w [(Value, Value)]),
    /// The items of a list or a tuple.
    List(&'w [Value]),
    Set(&'w [Value]),
    /// The attributes of a tensor that are or hold tensors, and parts of an unknown object.
    Parts(Vec<(Place, Value)>),
}

impl Items<'_> {
    fn len(&self) -> usize {
        match self {
            Items::Pairs(pairs) => pairs.len(),
            Items::List(items) | Items::Set(items) => items.len(),
            Items::Parts(parts) => parts.len(),
        }
    }

    fn at(&self, at: usize) -> Option<(Place, Value)> {
        match self {
            Items::Pairs(pairs) => {
                let (key, value) = pairs.get(at)?;
                Some((Place::Key(at, *key), *value))
            }
            Items::List(items) | Items::Set(items) => Some((Place::At(at), *items.get(at)?)),
            Items::Parts(parts) => parts.get(at).copied(),
        }
    }
}

/// The last part of an item's name.
#[derive(Clone, Copy)]
enum Place {
    /// The place of a key in its dict, and the key.
    Key(usize, Value),
    At(usize),
    Member(usize, Value),
}

struct Walk<'w, 'p> {
    heap: &'w Heap<'p>,
    tensors: &'w Tensors<'w>,
    single: &'w str,
    style: Style,
    limits: &'w Limits,
    /// The name of the current value.
    name: String,
    leaves: Leaves,
    way: Vec<Level<'w>>,
    /// The unknown objects that were walked into.
    walked: HashSet<NodeId>,
    /// Whether the root was visited.
    is_begun: bool,
}

impl<'w> Walk<'w, '_> {
    fn leaves(mut self, root: Value, budget: &mut Budget) -> Result<Leaves, TorchFault> {
        self.visit(root, false, budget)?;
        self.is_begun = true;
        while let Some(level) = self.way.last_mut() {
            self.name.truncate(level.name_len);
            let is_inner = level.is_inner;
            if let Some((place, key)) = level.key.take() {
                self.append(Place::Key(place, key))?;
                self.push(".key")?;
                self.visit(key, is_inner, budget)?;
                continue;
            }
            // What the pickle's own items take.
            budget.spend(size_of::<Value>())?;
            let next = level.places.next();
            let Some((part, value)) = next.and_then(|at| level.items.at(at)) else {
                self.way.pop();
                continue;
            };
            let is_named = self.append(part)?;
            if let (Place::Key(place, key), false) = (part, is_named)
                && let Some(level) = self.way.last_mut()
            {
                level.key = Some((place, key));
            }
            self.visit(value, is_inner, budget)?;
        }
        Ok(self.leaves)
    }

    /// Adds a leaf, or goes into a collection.
    fn visit(
        &mut self,
        value: Value,
        is_inner: bool,
        budget: &mut Budget,
    ) -> Result<(), TorchFault> {
        if is_inner && !self.tensors.are_in(value)? {
            return Ok(());
        }
        if let Some(items) = collection(self.heap, value) {
            let is_walked = match &items {
                Items::Set(_) => self.tensors.are_in(value)?,
                items => items.len() > 0 || self.way.is_empty(),
            };
            if is_walked {
                return self.enter(items, is_inner);
            }
        }
        let name_len = self.name.len();
        let object = unknown(self.heap, value);
        // The parts of an unknown root have names of their own.
        if self.way.is_empty() && !matches!(self.heap.node(value), Some(Node::StandIn(_))) {
            self.push(self.single)?;
        }
        // Only the outermost unknown object is a leaf: what is in it is a part of it.
        if !is_inner || object.is_none() {
            self.leaves.push(&self.name, value, budget)?;
        }
        if let (Some(object), Value::Node(id)) = (object, value) {
            self.name.truncate(name_len);
            return if self.walked.insert(id) {
                self.enter_unknown(&object, is_inner, budget)
            } else {
                Ok(())
            };
        }
        let tensors = members(self.heap, self.tensors, value, true, budget)?;
        let parts = (0..).zip(tensors);
        let parts = parts.map(|(at, (name, value))| (Place::Member(at, name), value));
        let mut parts: Vec<_> = parts.collect();
        if let Some(Node::Made(made)) = self.heap.node(value) {
            self.add_items(*made, &mut parts, budget)?;
        }
        if parts.is_empty() {
            return Ok(());
        }
        self.enter(Items::Parts(parts), is_inner)
    }

    /// Adds what is or holds tensors of states that are no dicts: a class may make a list of its tensors, or the only one,
    /// its state.
    fn add_items(
        &self,
        made: Made,
        parts: &mut Vec<(Place, Value)>,
        budget: &mut Budget,
    ) -> Result<(), TorchFault> {
        for state in wrapper::states(self.heap, made) {
            let alone = [state];
            let items = match self.heap.node(state) {
                Some(Node::Dict(_)) => continue,
                node => node.and_then(Node::items).unwrap_or(&alone),
            };
            for (at, item) in items.iter().enumerate() {
                if self.tensors.are_in(*item)? {
                    budget.spend(size_of::<(Place, Value)>())?;
                    parts.push((Place::At(at), *item));
                }
            }
        }
        Ok(())
    }

    /// Goes into the items of an unknown object, and into its arguments and its state after them.
    fn enter_unknown(
        &mut self,
        object: &Unknown,
        is_inner: bool,
        budget: &mut Budget,
    ) -> Result<(), TorchFault> {
        let mut parts = Vec::new();
        for given in object.inner.into_iter().flatten() {
            if !self.tensors.are_in(given)? {
                continue;
            }
            // A state is a dict of attributes, or that and one of attributes in slots.
            let dicts = match self.heap.tuple(given) {
                Some([first, slots]) if wrapper::is_dict(self.heap, *slots) => vec![*first, *slots],
                _ => vec![given],
            };
            for dict in dicts {
                match self.heap.node(dict) {
                    Some(Node::Dict(pairs)) => {
                        budget.spend(size_of_val(pairs.as_slice()))?;
                        let pairs = pairs.iter().enumerate();
                        parts.extend(
                            pairs.map(|(at, (key, value))| (Place::Member(at, *key), *value)),
                        );
                    }
                    Some(Node::Tuple(items)) => {
                        budget.spend(size_of_val(items.as_slice()))?;
                        let items = items.iter().enumerate();
                        parts.extend(items.map(|(at, item)| (Place::At(at), *item)));
                    }
                    _ => parts.push((Place::At(parts.len()), dict)),
                }
            }
        }
        if !parts.is_empty() {
            self.enter(Items::Parts(parts), true)?;
        }
        for items in object.items.into_iter().flatten() {
            let items = collection(self.heap, items);
            self.enter(items.unwrap_or(Items::List(&[])), is_inner)?;
        }
        Ok(())
    }

    fn enter(&mut self, items: Items<'w>, is_inner: bool) -> Result<(), TorchFault> {
        // A collection that contains itself ends here.
        if self.way.len() >= self.limits.nesting {
            let limit = self.limits.nesting;
            return Err(TorchFault::TooDeep { limit });
        }
        self.way.push(Level {
            places: 0..items.len(),
            items,
            key: None,
            name_len: self.name.len(),
            is_inner,
            is_root: !self.is_begun,
        });
        Ok(())
    }

    /// Appends the name of an item, and returns whether its key has one.
    fn append(&mut self, part: Place) -> Result<bool, TorchFault> {
        let is_of_root = self.way.last().is_none_or(|level| level.is_root);
        let is_first = is_of_root && self.name.is_empty();
        // An attribute of a tensor is written with a dot in both styles.
        let is_bracketed = self.style == Style::Brackets && !matches!(part, Place::Member(..));
        if is_bracketed {
            self.push("[")?;
        } else if !is_first {
            self.push(".")?;
        }
        let is_named = match part {
            Place::At(at) => self.push(&at.to_string()).map(|()| true)?,
            Place::Key(place, key) | Place::Member(place, key) => key::append(
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

    fn push(&mut self, text: &str) -> Result<(), TorchFault> {
        let limit = self.limits.name_len;
        let len = self.name.len().checked_add(text.len());
        len.filter(|len| *len <= limit).ok_or(TorchFault::NameTooLong { limit })?;
        self.name.push_str(text);
        Ok(())
    }
}

/// The Python attributes of a tensor, `w.extra = ...`: those that are or hold tensors, or the others.
pub(super) fn members(
    heap: &Heap<'_>,
    tensors: &Tensors<'_>,
    value: Value,
    of_tensors: bool,
    budget: &mut Budget,
) -> Result<Vec<(Value, Value)>, TorchFault> {
    let states = match heap.node(value) {
        Some(Node::Made(made)) => wrapper::states(heap, *made),
        _ => Vec::new(),
    };
    let dicts = states.into_iter().filter_map(|state| match heap.node(state) {
        Some(Node::Dict(pairs)) => Some(pairs),
        _ => None,
    });
    let mut members = Vec::new();
    for (name, value) in dicts.flatten() {
        budget.spend(size_of::<(Value, Value)>())?;
        if tensors.are_in(*value)? == of_tensors {
            members.push((*name, *value));
        }
    }
    Ok(members)
}

/// The items of a collection; `None` for a leaf. An object of TorchScript and a namespace are their
/// members.
fn collection<'h>(heap: &'h Heap<'_>, value: Value) -> Option<Items<'h>> {
    let mut node = heap.node(value)?;
    if let Node::Made(made) = node {
        node = match (made.maker, made.state) {
            (maker, Some(state)) if maker.has_members() && is_called_with_nothing(heap, *made) => {
                heap.node(state)?
            }
            (Global::ScriptTyped, _) => heap.node(*heap.tuple(made.arguments)?.first()?)?,
            _ => return None,
        };
    }
    match node {
        Node::Dict(pairs) => Some(Items::Pairs(pairs)),
        Node::Set(items) | Node::FrozenSet(items) => Some(Items::Set(items)),
        node => node.items().map(Items::List),
    }
}

/// Whether an object holds only its state.
fn is_called_with_nothing(heap: &Heap<'_>, made: Made) -> bool {
    heap.tuple(made.arguments).is_some_and(<[_]>::is_empty)
}
