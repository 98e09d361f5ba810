//! What a pickle is made of: small values, and the heap that the larger ones lie on.

use std::borrow::Cow;

use crate::pytorch::global::Global;

/// A value: itself where it is small, else its place on the [`Heap`]. A value that is referred to
/// from two places is there once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::pytorch) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Global(Global),
    Node(NodeId),
}

/// A place on the [`Heap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::pytorch) struct NodeId(u32);

/// A value that is not small. Texts and bytes are borrowed from the pickle where it has them as
/// they are.
#[derive(Debug)]
pub(in crate::pytorch) enum Node<'p> {
    Text(Cow<'p, str>),
    /// A text with halves of surrogate pairs, which Python has and UTF-8 has not: as if it had.
    Halves(Cow<'p, [u8]>),
    Bytes(Cow<'p, [u8]>),
    /// An integer beyond 64 bits: two's complement, the lowest byte first.
    Long(Cow<'p, [u8]>),
    Tuple(Vec<Value>),
    List(Vec<Value>),
    Set(Vec<Value>),
    FrozenSet(Vec<Value>),
    /// Pairs in the order in which they were put; in a pickle that has been read, every key once.
    Dict(Vec<(Value, Value)>),
    Made(Made),
    /// A global that is not on the list: no more than a name, which begins at that byte.
    Named {
        module: Value,
        name: Value,
        at: u32,
    },
    /// What lies outside the pickle: its id.
    Persistent(Value),
}

/// An object of Python, as what would have made it.
#[derive(Debug, Clone, Copy)]
pub(in crate::pytorch) struct Made {
    pub(in crate::pytorch) maker: Global,
    /// A tuple.
    pub(in crate::pytorch) arguments: Value,
    /// What it was given afterwards.
    pub(in crate::pytorch) state: Option<Value>,
}

/// All values of a pickle that are not small.
#[derive(Debug, Default)]
pub(in crate::pytorch) struct Heap<'p> {
    nodes: Vec<Node<'p>>,
}

impl<'p> Heap<'p> {
    /// `None` where there are as many as can be counted.
    pub(super) fn add(&mut self, node: Node<'p>) -> Option<Value> {
        let id = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(Value::Node(NodeId(id)))
    }

    /// To make room for more of them.
    pub(super) const fn nodes_mut(&mut self) -> &mut Vec<Node<'p>> {
        &mut self.nodes
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Every value that lies here, from the first to the last.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> + use<> {
        let len = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        (0..len).map(|id| Value::Node(NodeId(id)))
    }

    /// What lies there; `None` for a small value.
    pub(in crate::pytorch) fn node(&self, value: Value) -> Option<&Node<'p>> {
        let Value::Node(NodeId(id)) = value else {
            return None;
        };
        self.nodes.get(usize::try_from(id).ok()?)
    }

    pub(super) fn node_mut(&mut self, value: Value) -> Option<&mut Node<'p>> {
        let Value::Node(NodeId(id)) = value else {
            return None;
        };
        self.nodes.get_mut(usize::try_from(id).ok()?)
    }

    /// Everything that lies outside the pickle.
    pub(in crate::pytorch) fn persistent(&self) -> impl Iterator<Item = Value> {
        let nodes = (0..).zip(&self.nodes);
        nodes.filter_map(|(id, node)| match node {
            Node::Persistent(_) => Some(Value::Node(NodeId(id))),
            _ => None,
        })
    }

    pub(in crate::pytorch) fn text(&self, value: Value) -> Option<&str> {
        match self.node(value)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(in crate::pytorch) fn tuple(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a tuple, a list or a `torch.Size`: what Python takes for a sequence.
    pub(in crate::pytorch) fn sequence(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(items) | Node::List(items) => Some(items),
            Node::Made(made) if made.maker == Global::Size => {
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

    /// What a value is, for messages.
    pub(in crate::pytorch) fn describe(&self, value: Value) -> &'static str {
        match value {
            Value::None => "None",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Global(_) => "a global",
            Value::Node(_) => match self.node(value) {
                Some(Node::Text(_) | Node::Halves(_)) => "a text",
                Some(Node::Bytes(_)) => "bytes",
                Some(Node::Long(_)) => "a long integer",
                Some(Node::Tuple(_)) => "a tuple",
                Some(Node::List(_)) => "a list",
                Some(Node::Set(_) | Node::FrozenSet(_)) => "a set",
                Some(Node::Dict(_)) => "a dict",
                Some(Node::Made(_)) => "an object",
                Some(Node::Named { .. }) => "a class",
                Some(Node::Persistent(_)) => "a storage",
                None => "nothing",
            },
        }
    }
}
