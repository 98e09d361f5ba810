//! Globals and their objects: `GLOBAL`, `REDUCE`, `NEWOBJ` and `BUILD`.

use std::borrow::Cow;

use crate::fault::PickleFault;
use crate::global::{Collection, Global, Makes};
use crate::heap::{Made, Node, Value};
use crate::machine::{Done, Machine};

impl<'p, G: Global> Machine<'_, 'p, G> {
    /// A global that the caller does not accept is only a name: the key of a dict may be one.
    pub(super) fn global(&mut self, code: u8) -> Done {
        let at = u32::try_from(self.at).map_err(|_| PickleFault::Limit {
            what: "bytes before the name of a global",
            limit: u32::MAX.into(),
        })?;
        let (module, name) = if code == 0x93 {
            match self.pop_last(2)?.as_slice() {
                [module, name] => (*module, *name),
                _ => return Err(PickleFault::StackEmpty),
            }
        } else {
            let (module, name) = (self.cursor.text_line()?, self.cursor.text_line()?);
            if code == b'i' {
                // INST makes objects of classes of Python 2, which hold no data.
                (self.find)(module, name, at).ok_or_else(|| unaccepted(module, name))?;
                return Err(PickleFault::Instruction { code });
            }
            if let Some(global) = (self.find)(module, name, at) {
                return self.push(Value::Global(global));
            }
            self.push_node(Node::Text(Cow::Borrowed(module)))?;
            self.push_node(Node::Text(Cow::Borrowed(name)))?;
            let name = self.pop()?;
            (self.pop()?, name)
        };
        let (Some(module_name), Some(own_name)) = (self.heap.text(module), self.heap.text(name))
        else {
            return Err(self.operand("the name of a global", module));
        };
        if let Some(global) = (self.find)(module_name, own_name, at) {
            return self.push(Value::Global(global));
        }
        self.push_node(Node::Named { module, name, at })
    }

    /// Refuses a global that the caller does not accept, with the byte where it is named.
    pub(super) fn refuse_named(&mut self, value: Value<G>) -> Done {
        let value = match self.heap.node(value) {
            Some(Node::Persistent(id)) => G::class_of(&self.heap, *id).unwrap_or(value),
            _ => value,
        };
        let Some(Node::Named { module, name, at }) = self.heap.node(value) else {
            return Ok(());
        };
        let text = |value| self.heap.text(value).unwrap_or_default();
        let fault = unaccepted(text(*module), text(*name));
        self.at = *at as usize;
        Err(fault)
    }

    /// REDUCE, NEWOBJ and BUILD.
    pub(super) fn object(&mut self, code: u8) -> Done {
        if code == b'b' {
            let state = self.pop()?;
            return self.build(state);
        }
        let arguments = self.pop()?;
        let maker = match self.pop()? {
            Value::Global(maker) => maker,
            other => {
                self.refuse_named(other)?;
                let found = self.heap.describe(other);
                return Err(match code {
                    b'R' => PickleFault::Call { found },
                    _ => PickleFault::Class { found },
                });
            }
        };
        let arguments = match self.heap.tuple(arguments) {
            None if code == b'R' && maker.takes_bare_argument() => {
                self.push_node(Node::Tuple(vec![arguments]))?;
                self.pop()?
            }
            _ => arguments,
        };
        let Some(items) = self.heap.tuple(arguments) else {
            return Err(self.operand("a tuple of arguments", arguments));
        };
        if code == 0x81 && !maker.is_class() {
            return Err(PickleFault::Class {
                found: "a function",
            });
        }
        let made = Made {
            maker,
            arguments,
            state: None,
        };
        let collection = match maker.makes() {
            Makes::Collection(collection) => collection,
            Makes::Object => return self.push_node(Node::Made(made)),
            Makes::Nothing => {
                let found = "a value";
                return Err(PickleFault::Call { found });
            }
        };
        let node = match (collection, items) {
            // The argument of a `defaultdict` makes missing values.
            (Collection::DefaultDict, [] | [_])
            | (Collection::OrderedDict | Collection::Counter, []) => Node::Dict(vec![]),
            (Collection::Set, []) => Node::Set(vec![]),
            (Collection::FrozenSet, []) => Node::FrozenSet(vec![]),
            (Collection::Deque, []) => Node::List(vec![]),
            // A `deque` may have a maximum length.
            (Collection::Deque, [items, _]) | (_, [items]) => {
                self.collection(collection, *items)?
            }
            _ => Node::Made(made),
        };
        self.push_node(node)
    }

    /// A collection of the items of another one. Only this copies values.
    fn collection(&mut self, maker: Collection, items: Value<G>) -> Done<Node<'p, G>> {
        let len = match self.heap.node(items) {
            Some(
                Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items),
            ) => items.len(),
            Some(Node::Dict(pairs)) => pairs.len(),
            _ => 0,
        };
        self.copies = self.copies.checked_sub(len).ok_or(PickleFault::Limit {
            what: "copied values (one for each byte of the pickle)",
            limit: self.byte_len,
        })?;
        match (self.heap.node(items), maker) {
            (
                Some(
                    Node::List(items)
                    | Node::Tuple(items)
                    | Node::Set(items)
                    | Node::FrozenSet(items),
                ),
                Collection::Set | Collection::FrozenSet,
            ) => {
                for item in items {
                    self.check_hashable(*item)?;
                }
                Ok(match maker {
                    Collection::Set => Node::Set(items.clone()),
                    _ => Node::FrozenSet(items.clone()),
                })
            }
            (Some(Node::List(items) | Node::Tuple(items)), Collection::Deque) => {
                Ok(Node::List(items.clone()))
            }
            (Some(Node::Dict(pairs)), Collection::OrderedDict | Collection::Counter) => {
                Ok(Node::Dict(pairs.clone()))
            }
            (Some(Node::List(pairs) | Node::Tuple(pairs)), Collection::OrderedDict) => {
                let pair = |pair: &Value<G>| match self.heap.sequence(*pair) {
                    Some([key, value]) => self.check_hashable(*key).map(|()| (*key, *value)),
                    _ => Err(self.operand("a key and a value", *pair)),
                };
                let pairs: Result<_, PickleFault> = pairs.iter().map(pair).collect();
                pairs.map(Node::Dict)
            }
            _ => Err(self.operand("a collection", items)),
        }
    }

    /// Gives the object on top of the stack its state. The attributes of a dict are dropped: they
    /// are no part of its data.
    fn build(&mut self, state: Value<G>) -> Done {
        let target = self.top()?;
        match self.heap.node_mut(target) {
            Some(Node::Dict(_)) => Ok(()),
            Some(Node::Made(made)) if made.maker.has_state() => {
                made.state = Some(state);
                Ok(())
            }
            _ => Err(self.operand("an object with a state", target)),
        }
    }
}

/// The fault of an object of a global that the caller does not accept.
fn unaccepted(module: &str, name: &str) -> PickleFault {
    // Names in a hostile pickle can be long.
    let [module, name] = [module, name].map(|name| name.chars().take(120).collect());
    PickleFault::Global { module, name }
}
