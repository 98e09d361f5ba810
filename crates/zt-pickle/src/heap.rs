//! Values of a pickle: small ones, and the heap for the others.

use std::borrow::Cow;

use crate::fault::PickleFault;
use crate::global::Global;

/// The memory of longer vectors counts: it is held close to what they have in them.
pub(crate) const LONG: usize = 1 << 16;

/// The limit of values on the heap. A tensor has about ten.
const NODES: u32 = 1 << 24;

/// A small value, or the place of a larger one on the [`Heap`]. A larger value that is used twice
/// exists once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<G> {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A global that the caller accepts.
    Global(G),
    /// Any other value: see [`Heap::node`].
    Node(NodeId),
}

/// A place on the [`Heap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// How many values were put on the heap before.
    pub(super) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// A value on the heap. Texts and bytes are borrowed from the pickle unless they are escaped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Node<'p, G> {
    /// A `str`.
    Text(Cow<'p, str>),
    /// A `str` with lone surrogates, which Python allows and UTF-8 does not: each is encoded in
    /// three bytes, as Python's `surrogatepass` does. See [`pieces`](crate::pieces).
    Halves(Cow<'p, [u8]>),
    /// A `bytes` or a `bytearray`.
    Bytes(Cow<'p, [u8]>),
    /// A long one that an [`Outline`](crate::Outline) leaves out: its place in the source.
    Elsewhere {
        /// Where it begins.
        offset: u64,
        /// Its length.
        byte_len: u64,
    },
    /// An integer of more than 64 bits: two's complement, little-endian.
    Long(Cow<'p, [u8]>),
    /// A `tuple`.
    Tuple(Vec<Value<G>>),
    /// A `list` or a `deque`.
    List(Vec<Value<G>>),
    /// A `set`.
    Set(Vec<Value<G>>),
    /// A `frozenset`.
    FrozenSet(Vec<Value<G>>),
    /// A `dict`, in the order of insertion. Once the pickle has been read, every key occurs once.
    Dict(Vec<(Value<G>, Value<G>)>),
    /// An object that a call of a global makes.
    Made(Made<G>),
    /// An object of a global that the caller does not accept.
    StandIn(Box<StandIn<G>>),
    /// A global that the caller does not accept.
    Named {
        /// The module, a text.
        module: Value<G>,
        /// The name in the module, a text.
        name: Value<G>,
        /// The byte of the pickle where it is named, or the greatest u32 for one behind that.
        at: u32,
    },
    /// An object outside the pickle: its persistent id.
    Persistent(Value<G>),
}

impl<G> Node<'_, G> {
    /// The items of a tuple, a list or a set.
    pub fn items(&self) -> Option<&[Value<G>]> {
        match self {
            Node::Tuple(items) | Node::List(items) | Node::Set(items) | Node::FrozenSet(items) => {
                Some(items)
            }
            _ => None,
        }
    }
}

/// An object, as the call that would make it.
#[derive(Debug, Clone, Copy)]
pub struct Made<G> {
    /// The called global.
    pub maker: G,
    /// Its arguments, a tuple.
    pub arguments: Value<G>,
    /// The state that `BUILD` gives the object.
    pub state: Option<Value<G>>,
}

/// An object of a global that the caller does not accept: all that the pickle gives to it. Only the
/// class knows what that means.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StandIn<G> {
    /// The class or the function, a [`Node::Named`].
    pub class: Value<G>,
    /// The arguments, usually a tuple. Of a call with keywords, a tuple and a dict.
    pub arguments: Value<G>,
    /// The state that `BUILD` gives the object. Of several, a tuple of the first ones and the last.
    pub state: Option<Value<G>>,
    /// The items that are appended to the object, a list.
    pub items: Option<Value<G>>,
    /// The keys that are set on the object, a dict.
    pub pairs: Option<Value<G>>,
}

/// The larger values of a pickle.
#[derive(Debug)]
pub struct Heap<'p, G> {
    nodes: Vec<Node<'p, G>>,
}

impl<'p, G: Global> Heap<'p, G> {
    pub(crate) const fn new() -> Self {
        Heap { nodes: Vec::new() }
    }

    /// Adds a value.
    ///
    /// # Errors
    ///
    /// [`PickleFault::Limit`] if the heap is full.
    pub fn add(&mut self, node: Node<'p, G>) -> Result<Value<G>, PickleFault> {
        let id = u32::try_from(self.nodes.len()).ok();
        let id = id
            .filter(|id| *id < NODES)
            .ok_or(PickleFault::Limit { what: "values on the heap", limit: NODES.into() })?;
        reserve(&mut self.nodes, 1)?;
        self.nodes.push(node);
        Ok(Value::Node(NodeId(id)))
    }

    /// Every value of the heap, in order.
    pub fn values(&self) -> impl Iterator<Item = Value<G>> + use<G> {
        let ids = (0..).take(self.nodes.len());
        ids.map(|id| Value::Node(NodeId(id)))
    }

    /// The value on the heap; `None` for a small value.
    pub fn node(&self, value: Value<G>) -> Option<&Node<'p, G>> {
        let Value::Node(id) = value else {
            return None;
        };
        self.nodes.get(id.place())
    }

    /// The value on the heap, to be changed; `None` for a small value.
    pub fn node_mut(&mut self, value: Value<G>) -> Option<&mut Node<'p, G>> {
        let Value::Node(id) = value else {
            return None;
        };
        self.nodes.get_mut(id.place())
    }

    /// All [`Node::Persistent`], in the order of the pickle.
    pub fn persistent(&self) -> impl Iterator<Item = Value<G>> {
        let is_persistent =
            |value: &Value<G>| matches!(self.node(*value), Some(Node::Persistent(_)));
        self.values().filter(is_persistent)
    }

    /// The text, if the value is one.
    pub fn text(&self, value: Value<G>) -> Option<&str> {
        match self.node(value)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The module and the name, if the value is a global that the caller does not accept.
    pub fn named(&self, value: Value<G>) -> Option<(&str, &str)> {
        match self.node(value)? {
            Node::Named { module, name, .. } => Some((self.text(*module)?, self.text(*name)?)),
            _ => None,
        }
    }

    /// The items, if the value is a tuple.
    pub fn tuple(&self, value: Value<G>) -> Option<&[Value<G>]> {
        match self.node(value)? {
            Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a tuple, a list, or an object that [is a sequence](Global::is_sequence).
    pub fn sequence(&self, value: Value<G>) -> Option<&[Value<G>]> {
        match self.node(value)? {
            Node::Tuple(items) | Node::List(items) => Some(items),
            Node::Made(made) if made.maker.is_sequence() => {
                let [items] = self.tuple(made.arguments)? else {
                    return None;
                };
                match self.node(*items)? {
                    Node::Tuple(items) | Node::List(items) => Some(items),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The type of a value, for messages.
    pub fn describe(&self, value: Value<G>) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Global(_) => "a global",
            Value::Node(_) => match self.node(value) {
                Some(Node::Text(_) | Node::Halves(_)) => "a text",
                Some(Node::Bytes(_) | Node::Elsewhere { .. }) => "bytes",
                Some(Node::Long(_)) => "a long integer",
                Some(Node::Tuple(_)) => "a tuple",
                Some(Node::List(_)) => "a list",
                Some(Node::Set(_) | Node::FrozenSet(_)) => "a set",
                Some(Node::Dict(_)) => "a dict",
                Some(Node::Made(_)) => "an object",
                Some(Node::StandIn(_)) => "an object of an unsupported class",
                Some(Node::Named { .. }) => "a class",
                Some(Node::Persistent(_)) => "an object outside the pickle",
                None => "nothing",
            },
        }
    }
}

/// Reserves room for `more` items. Long vectors grow by an eighth, because doubling would take up to
/// three times their length. `more` is less than the bytes of the pickle.
pub(super) fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), PickleFault> {
    let (len, capacity) = (items.len(), items.capacity());
    let is_room = capacity.checked_sub(len).is_some_and(|room| room >= more);
    let reserved = match len {
        _ if is_room => Ok(()),
        LONG.. => items.try_reserve_exact(more.max(len / 8)),
        _ => items.try_reserve(more),
    };
    reserved.map_err(|_| {
        // No memory holds a pickle of 2^58 bytes.
        let byte_len = (more as u64).strict_mul(size_of::<T>() as u64);
        PickleFault::Allocation { byte_len }
    })
}
