//! Pickled objects as data. No global is accepted: every object is a stand-in, with its class, its
//! arguments and its state.

use zt_pickle::{NoGlobal, StandIn};

use crate::violation::{Done, Violation};

/// The dimensions of a tensor in torch. It is checked before sizes are copied, because any number of
/// tensors can share a tuple of sizes.
const RANK: usize = 64;

pub(crate) type Heap<'p> = zt_pickle::Heap<'p, NoGlobal>;
pub(crate) type Node<'p> = zt_pickle::Node<'p, NoGlobal>;
pub(crate) type Pickle<'p> = zt_pickle::Pickle<'p, NoGlobal>;
pub(crate) type Value = zt_pickle::Value<NoGlobal>;

/// A module and a name in it.
pub(crate) type Class = (&'static str, &'static str);

const SIZE: Class = ("torch", "Size");

pub(crate) fn load(bytes: &[u8]) -> Done<Pickle<'_>> {
    Ok(zt_pickle::load(bytes, |_, _, _| None)?)
}

/// An object of any class, as the module and the name of its class, and the rest.
pub(crate) fn object<'h>(
    heap: &'h Heap<'_>,
    value: Value,
) -> Option<((&'h str, &'h str), &'h StandIn<NoGlobal>)> {
    match heap.node(value)? {
        Node::StandIn(object) => Some((heap.named(object.class)?, object)),
        _ => None,
    }
}

/// An object of `class`.
pub(crate) fn object_of<'h>(
    heap: &'h Heap<'_>,
    value: Value,
    class: Class,
) -> Option<&'h StandIn<NoGlobal>> {
    object(heap, value).filter(|(found, _)| *found == class).map(|(_, object)| object)
}

/// The fields of a dataclass.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'h, 'p> {
    heap: &'h Heap<'p>,
    pairs: &'h [(Value, Value)],
}

impl<'h, 'p> Fields<'h, 'p> {
    /// The fields of an object of `class`.
    pub(crate) fn of(heap: &'h Heap<'p>, value: Value, class: Class) -> Done<Self> {
        let wrong = || wrong(heap, class.1, value);
        let object = object_of(heap, value, class).ok_or_else(wrong)?;
        let pairs = object.state.and_then(|state| dict(heap, state));
        let pairs = pairs.ok_or_else(wrong)?;
        Ok(Fields { heap, pairs })
    }

    /// A field; `None` if it is missing or Python's `None`.
    pub(crate) fn optional(&self, name: &str) -> Option<Value> {
        let mut pairs = self.pairs.iter();
        let (_, value) = pairs.find(|(key, _)| self.heap.text(*key) == Some(name))?;
        Some(*value).filter(|value| *value != Value::None)
    }

    pub(crate) fn value(&self, name: &'static str) -> Done<Value> {
        self.optional(name).ok_or(Violation::Missing { name })
    }

    pub(crate) fn text(&self, name: &'static str) -> Done<&'h str> {
        let value = self.value(name)?;
        let text = self.heap.text(value);
        text.ok_or_else(|| wrong(self.heap, name, value))
    }

    pub(crate) fn number(&self, name: &'static str) -> Done<u64> {
        number(self.heap, name, self.value(name)?)
    }

    pub(crate) fn sizes(&self, name: &'static str) -> Done<Vec<u64>> {
        sizes(self.heap, name, self.value(name)?)
    }
}

pub(crate) fn dict<'h>(heap: &'h Heap<'_>, value: Value) -> Option<&'h [(Value, Value)]> {
    match heap.node(value)? {
        Node::Dict(pairs) => Some(pairs),
        _ => None,
    }
}

pub(crate) fn number(heap: &Heap<'_>, name: &'static str, value: Value) -> Done<u64> {
    match value {
        Value::Int(number) if number >= 0 => Ok(number.unsigned_abs()),
        Value::Int(found) => Err(Violation::Negative { name, found }),
        _ => Err(wrong(heap, name, value)),
    }
}

/// A `torch.Size`, a tuple or a list of numbers.
pub(crate) fn sizes(heap: &Heap<'_>, name: &'static str, value: Value) -> Done<Vec<u64>> {
    let items = match object_of(heap, value, SIZE) {
        Some(size) => match heap.tuple(size.arguments) {
            Some([items]) => heap.sequence(*items),
            _ => None,
        },
        None => heap.sequence(value),
    };
    let items = items.ok_or_else(|| wrong(heap, name, value))?;
    if items.len() > RANK {
        let (found, limit) = (items.len(), RANK);
        return Err(Violation::Rank { found, limit });
    }
    let numbers = items.iter().map(|item| number(heap, name, *item));
    numbers.collect()
}

/// The fault of a value of the wrong type.
pub(crate) fn wrong(heap: &Heap<'_>, name: &'static str, found: Value) -> Violation {
    let found = heap.describe(found);
    Violation::Field { name, found }
}
