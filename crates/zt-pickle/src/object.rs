//! Globals and their objects: `GLOBAL`, `REDUCE`, `NEWOBJ`, `INST`, `OBJ` and `BUILD`.

use std::borrow::Cow;

use crate::fault::PickleFault;
use crate::global::{Collection, Global, Makes};
use crate::heap::{Made, Node, StandIn, Value};
use crate::machine::{Done, Machine};

impl<'p, G: Global> Machine<'_, 'p, G> {
    /// GLOBAL and STACK_GLOBAL. A global that the caller does not accept is only a name: the key of a
    /// dict may be one.
    pub(super) fn global(&mut self, code: u8) -> Done {
        let at = self.named_at();
        if code == b'c' {
            let (module, name) = (self.cursor.text_line()?, self.cursor.text_line()?);
            if let Some(global) = (self.find)(module, name, at) {
                return self.push(Value::Global(global));
            }
            self.push_node(Node::Text(Cow::Borrowed(module)))?;
            self.push_node(Node::Text(Cow::Borrowed(name)))?;
        }
        let (name, module) = (self.pop()?, self.pop()?);
        let (Some(module_name), Some(own_name)) = (self.heap.text(module), self.heap.text(name))
        else {
            return self.found_while_loading(module, name, at);
        };
        if let Some(global) = (self.find)(module_name, own_name, at) {
            return self.push(Value::Global(global));
        }
        self.push_node(Node::Named { module, name, at })
    }

    /// A global whose name is an attribute or a result of other globals. Only a running program knows it, and Python
    /// looks it up with this function.
    fn found_while_loading(&mut self, module: Value<G>, name: Value<G>, at: u32) -> Done {
        let is_unknown = |value| {
            let node = self.heap.node(value);
            matches!(node, Some(Node::Named { .. } | Node::StandIn(_)))
        };
        if !is_unknown(module) && !is_unknown(name) {
            return Err(self.operand("the name of a global", module));
        }
        self.call_of_python("pickle", "Unpickler.find_class", vec![module, name], at)
    }

    /// What Python does of its own, as a call that the pickle would make.
    fn call_of_python(
        &mut self,
        module: &'static str,
        name: &'static str,
        arguments: Vec<Value<G>>,
        at: u32,
    ) -> Done {
        let arguments = self.heap.add(Node::Tuple(arguments))?;
        let module = self.heap.add(Node::Text(Cow::Borrowed(module)))?;
        let name = self.heap.add(Node::Text(Cow::Borrowed(name)))?;
        let class = self.heap.add(Node::Named { module, name, at })?;
        self.stand_in(class, arguments)
    }

    /// EXT1, EXT2 and EXT4: a global by its number in a registry of the running program. The pickle does not
    /// say which one it is.
    pub(super) fn extension(&mut self, code: u8) -> Done {
        let number: u32 = match code {
            0x82 => self.cursor.u8()?.into(),
            0x83 => self.cursor.u16()?.into(),
            _ => self.cursor.u32()?,
        };
        let at = self.named_at();
        let name = format!("_inverted_registry[{number}]");
        let module = self.heap.add(Node::Text(Cow::Borrowed("copyreg")))?;
        let name = self.heap.add(Node::Text(Cow::Owned(name)))?;
        self.push_node(Node::Named { module, name, at })
    }

    /// Where this instruction names a global. Only messages state it, so that it may saturate.
    fn named_at(&self) -> u32 {
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    /// Refuses a root that is only a name, at the byte where it is named.
    pub(super) fn refuse_named(&mut self, root: Value<G>) -> Done {
        let Some(Node::Named { at, .. }) = self.heap.node(root) else {
            return Ok(());
        };
        self.at = (*at).into();
        // Names in a hostile pickle can be long.
        let cut = |name: &str| name.chars().take(120).collect();
        let (module, name) = self.heap.named(root).unwrap_or_default();
        let (module, name) = (cut(module), cut(name));
        Err(PickleFault::Global { module, name })
    }

    /// REDUCE, NEWOBJ, NEWOBJ_EX, INST and OBJ: an object of a callable and its arguments.
    pub(super) fn object(&mut self, code: u8) -> Done {
        let arguments = match code {
            b'i' | b'o' => {
                let mut items = self.pop_marked()?;
                if code == b'i' {
                    self.global(b'c')?;
                } else if items.is_empty() {
                    return Err(PickleFault::StackEmpty);
                } else {
                    let class = items.remove(0);
                    self.push(class)?;
                }
                let class = self.pop()?;
                self.push_node(Node::Tuple(items))?;
                let arguments = self.pop()?;
                self.push(class)?;
                arguments
            }
            0x92 => {
                let pair = self.pop_last(2)?;
                self.push_node(Node::Tuple(pair))?;
                self.pop()?
            }
            _ => self.pop()?,
        };
        let callee = self.pop()?;
        let class = match self.heap.node(callee) {
            Some(Node::Persistent(id)) => G::class_of(&self.heap, *id).unwrap_or(callee),
            _ => callee,
        };
        let maker = match (class, self.heap.node(class)) {
            (Value::Global(_), _) if code == 0x92 => return Err(PickleFault::Instruction { code }),
            (Value::Global(maker), _) => maker,
            (_, Some(Node::Named { .. })) => return self.stand_in(class, arguments),
            // A function that a call made, such as `functools.partial`.
            (_, Some(Node::StandIn(function))) => {
                let class = function.class;
                self.push_node(Node::Tuple(vec![callee, arguments]))?;
                let both = self.pop()?;
                return self.stand_in(class, both);
            }
            _ => {
                let found = self.heap.describe(callee);
                return Err(match code {
                    0x81 | 0x92 => PickleFault::Class { found },
                    _ => PickleFault::Call { found },
                });
            }
        };
        self.made(maker, arguments, code)
    }

    fn stand_in(&mut self, class: Value<G>, arguments: Value<G>) -> Done {
        self.push_node(Node::StandIn(Box::new(StandIn {
            class,
            arguments,
            state: None,
            items: None,
            pairs: None,
        })))
    }

    /// The value on top of the stack, which takes items; of a stand-in, this part of it, which is
    /// `empty` at first.
    pub(super) fn filled(
        &mut self,
        part: impl Fn(&mut StandIn<G>) -> &mut Option<Value<G>>,
        empty: Node<'p, G>,
    ) -> Done<Value<G>> {
        let target = self.top()?;
        let Some(Node::StandIn(object)) = self.heap.node_mut(target) else {
            return Ok(target);
        };
        if let Some(value) = *part(object) {
            return Ok(value);
        }
        let value = self.heap.add(empty)?;
        if let Some(Node::StandIn(object)) = self.heap.node_mut(target) {
            *part(object) = Some(value);
        }
        Ok(value)
    }

    /// An object or a collection of a global that the caller accepts.
    fn made(&mut self, maker: G, arguments: Value<G>, code: u8) -> Done {
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
            return Err(PickleFault::Class { found: "a function" });
        }
        let made = Made { maker, arguments, state: None };
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
        let node = self.heap.node(items);
        let len = match node {
            Some(Node::Dict(pairs)) => pairs.len(),
            _ => node.and_then(Node::items).map_or(0, <[_]>::len),
        };
        self.copies = self.copies.checked_sub(len).ok_or(PickleFault::Limit {
            what: "copied values (one for each byte of the pickle)",
            limit: self.byte_len,
        })?;
        if let Collection::Set | Collection::FrozenSet = maker
            && let Some(items) = node.and_then(Node::items)
        {
            for item in items {
                self.check_hashable(*item)?;
            }
            return Ok(match maker {
                Collection::Set => Node::Set(items.to_vec()),
                _ => Node::FrozenSet(items.to_vec()),
            });
        }
        match (node, maker) {
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

    /// Gives the object below the top of the stack its state. The attributes of a dict are dropped:
    /// they are no part of its data.
    pub(super) fn build(&mut self) -> Done {
        let mut state = self.pop()?;
        let target = self.top()?;
        if let Some(Node::StandIn(object)) = self.heap.node(target)
            && let Some(earlier) = object.state
        {
            state = self.heap.add(Node::Tuple(vec![earlier, state]))?;
        }
        match self.heap.node_mut(target) {
            Some(Node::Dict(_)) => {}
            Some(Node::Made(made)) if made.maker.has_state() => made.state = Some(state),
            Some(Node::StandIn(object)) => object.state = Some(state),
            // Python sets attributes of the class or the function itself.
            Some(Node::Named { at, .. }) => {
                let at = *at;
                self.pop()?;
                return self.call_of_python("builtins", "setattr", vec![target, state], at);
            }
            _ => return Err(self.operand("an object with a state", target)),
        }
        Ok(())
    }
}
