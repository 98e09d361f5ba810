//! The stack machine: one instruction after another, until `STOP`.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::fault::{PickleError, PickleFault};
use super::heap::{Heap, Made, Node, Value};
use super::number;
use super::repeat;
use crate::pytorch::global::Global;

/// Values that may be put on the stack in all. A checkpoint of 100,000 tensors has some four
/// million. At 16 bytes each they take at most 1 GiB, if a pickle has them.
const VALUES: u64 = 1 << 26;

/// Values that may lie on the heap: some ten of every tensor.
const NODES: usize = 1 << 24;

/// A pickle that has been read.
#[derive(Debug)]
pub(in crate::pytorch) struct Pickle<'p> {
    pub(in crate::pytorch) heap: Heap<'p>,
    pub(in crate::pytorch) root: Value,
    /// Up to and with its `STOP`; another may follow.
    pub(in crate::pytorch) byte_len: usize,
}

/// Says which global a module and a name are; `None` where it may not be named.
pub(in crate::pytorch) type Find = fn(&str, &str) -> Option<Global>;

/// Reads the pickle that `bytes` begin with. Texts and bytes are borrowed from it.
pub(in crate::pytorch) fn load(bytes: &[u8], find: Find) -> Result<Pickle<'_>, PickleError> {
    let mut machine = Machine {
        cursor: Cursor::new(bytes),
        find,
        heap: Heap::default(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        memoized: 0,
        steps: 0,
        values: 0,
        copies: bytes.len(),
        at: 0,
        byte_len: bytes.len() as u64,
    };
    loop {
        let at = machine.cursor.at();
        machine.at = at;
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => {
                let byte_len = machine.cursor.at();
                let mut heap = machine.heap;
                repeat::drop_replaced(&mut heap, byte_len as u64)
                    .map_err(|fault| PickleError { at, fault })?;
                return Ok(Pickle {
                    heap,
                    root,
                    byte_len,
                });
            }
            Err(fault) => {
                let at = match fault {
                    PickleFault::Global { at, .. } => at,
                    _ => at,
                };
                return Err(PickleError { at, fault });
            }
        }
    }
}

struct Machine<'p> {
    cursor: Cursor<'p>,
    find: Find,
    heap: Heap<'p>,
    stack: Vec<Value>,
    /// How long the stack was at each mark that is on it.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    /// How many memos were made.
    memoized: usize,
    /// Instructions up to here.
    steps: usize,
    /// Values up to here: see [`VALUES`].
    values: u64,
    /// Values that may still be copied. Every value of a pickle takes a byte of it, and Python
    /// makes every collection once.
    copies: usize,
    /// Where the instruction begins.
    at: usize,
    /// Bytes of the pickle, and what may follow it.
    byte_len: u64,
}

type Done<T = ()> = Result<T, PickleFault>;

impl<'p> Machine<'p> {
    /// Carries out one instruction; the root where it was the last.
    fn step(&mut self) -> Done<Option<Value>> {
        self.steps = self.steps.saturating_add(1);
        let code = self.cursor.u8()?;
        match code {
            b'.' => {
                let root = self.pop()?;
                // A file that is nothing but a name holds no data.
                return self.named(root).map_or(Ok(Some(root)), Err);
            }
            0x80 => match self.cursor.u8()? {
                0..=5 => Ok(()),
                found => Err(PickleFault::Protocol { found }),
            },
            // FRAME only helps buffering, but its length has to be there.
            0x95 => {
                let len = self.cursor.u64()?;
                self.cursor.expect(len)
            }
            b'(' => {
                self.marks.push(self.stack.len());
                self.spend(1)
            }
            b'0' => self.discard(),
            b'1' => self.pop_marked().map(drop),
            b'2' => {
                let top = self.top()?;
                self.push(top)
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'I' | b'J' | b'K' | b'L' | b'M' | b'F' | b'G' | 0x8a | 0x8b => self.number(code),
            b'S' | b'T' | b'U' | b'V' | b'X' | b'B' | b'C' | 0x8c | 0x8d | 0x8e | 0x96 => {
                self.string(code)
            }
            b')' | b't' | 0x85..=0x87 => self.tuple(code),
            b']' | b'l' | b'a' | b'e' => self.list(code),
            b'}' | b'd' | b's' | b'u' => self.dict(code),
            0x8f..=0x91 => self.set(code),
            b'g' | b'h' | b'j' => self.get(code),
            b'p' | b'q' | b'r' | 0x94 => self.put(code),
            b'c' | b'i' | 0x93 => self.global(code),
            b'R' | 0x81 | b'b' => self.object(code),
            b'Q' => {
                let id = self.pop()?;
                self.push_node(Node::Persistent(id))
            }
            // Extension codes, keyword arguments, buffers from elsewhere: no data needs them.
            _ => Err(PickleFault::Instruction { code }),
        }?;
        Ok(None)
    }

    fn number(&mut self, code: u8) -> Done {
        let value = match code {
            b'I' => match self.cursor.text_line()? {
                "00" => Value::Bool(false),
                "01" => Value::Bool(true),
                text => return self.decimal(text),
            },
            b'L' => {
                let text = self.cursor.text_line()?;
                return self.decimal(text);
            }
            b'J' => Value::Int(self.cursor.i32()?.into()),
            b'K' => Value::Int(self.cursor.u8()?.into()),
            b'M' => Value::Int(self.cursor.u16()?.into()),
            b'F' => number::float(self.cursor.text_line()?)?,
            // The only number of pickle that is big-endian.
            b'G' => Value::Float(f64::from_be_bytes(self.cursor.array()?)),
            _ => {
                let len = match code {
                    0x8a => self.cursor.u8()?.into(),
                    _ => u64::try_from(self.cursor.i32()?).map_err(|_| PickleFault::Number)?,
                };
                let bytes = self.cursor.take(len)?;
                return match number::long(bytes) {
                    Ok(value) => self.push(value),
                    Err(node) => self.push_node(node),
                };
            }
        };
        self.push(value)
    }

    fn decimal(&mut self, text: &str) -> Done {
        match number::decimal(text)? {
            Ok(value) => self.push(value),
            Err(node) => self.push_node(node),
        }
    }

    fn string(&mut self, code: u8) -> Done {
        let node = match code {
            b'S' => number::text_or_bytes(Cow::Owned(number::quoted(self.cursor.line()?)?)),
            b'V' => number::text(Cow::Owned(number::raw_unicode(self.cursor.line()?)?))?,
            _ => {
                let len = match code {
                    b'U' | b'C' | 0x8c => self.cursor.u8()?.into(),
                    b'X' | b'B' => self.cursor.u32()?.into(),
                    b'T' => u64::try_from(self.cursor.i32()?).map_err(|_| PickleFault::Number)?,
                    _ => self.cursor.u64()?,
                };
                let bytes = self.cursor.take(len)?;
                match code {
                    b'T' | b'U' => number::text_or_bytes(Cow::Borrowed(bytes)),
                    b'B' | b'C' | 0x8e | 0x96 => Node::Bytes(Cow::Borrowed(bytes)),
                    _ => number::text(Cow::Borrowed(bytes))?,
                }
            }
        };
        self.push_node(node)
    }

    fn tuple(&mut self, code: u8) -> Done {
        let items = match code {
            b')' => Vec::new(),
            b't' => self.pop_marked()?,
            _ => self.pop_last(usize::from(code).saturating_sub(0x84))?,
        };
        self.push_node(Node::Tuple(items))
    }

    fn list(&mut self, code: u8) -> Done {
        let items = match code {
            b']' => return self.push_node(Node::List(Vec::new())),
            b'l' => {
                let items = self.pop_marked()?;
                return self.push_node(Node::List(items));
            }
            b'a' => self.pop_last(1)?,
            _ => self.pop_marked()?,
        };
        let target = self.top()?;
        match self.heap.node_mut(target) {
            Some(Node::List(list)) => {
                list.extend(items);
                Ok(())
            }
            _ => Err(self.operand("a list", target)),
        }
    }

    fn dict(&mut self, code: u8) -> Done {
        let items = match code {
            b'}' => return self.push_node(Node::Dict(Vec::new())),
            b's' => self.pop_last(2)?,
            _ => self.pop_marked()?,
        };
        let (pairs, odd) = items.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(PickleFault::OddItems { count: items.len() });
        }
        for [key, _] in pairs {
            self.check_hashable(*key)?;
        }
        let pairs = pairs.iter().map(|[key, value]| (*key, *value));
        if code == b'd' {
            return self.push_node(Node::Dict(pairs.collect()));
        }
        let target = self.top()?;
        match self.heap.node_mut(target) {
            Some(Node::Dict(dict)) => {
                dict.extend(pairs);
                Ok(())
            }
            _ => Err(self.operand("a dict", target)),
        }
    }

    fn set(&mut self, code: u8) -> Done {
        let items = match code {
            0x8f => return self.push_node(Node::Set(Vec::new())),
            _ => self.pop_marked()?,
        };
        for item in &items {
            self.check_hashable(*item)?;
        }
        if code == 0x91 {
            return self.push_node(Node::FrozenSet(items));
        }
        let target = self.top()?;
        match self.heap.node_mut(target) {
            Some(Node::Set(set)) => {
                set.extend(items);
                Ok(())
            }
            _ => Err(self.operand("a set", target)),
        }
    }

    fn get(&mut self, code: u8) -> Done {
        let index = match code {
            b'g' => self.index_line()?,
            b'h' => self.cursor.u8()?.into(),
            _ => self.cursor.u32()?.into(),
        };
        let place = usize::try_from(index).ok();
        let memo = place.and_then(|place| self.memo.get(place).copied().flatten());
        self.push(memo.ok_or(PickleFault::NoMemo { index })?)
    }

    fn put(&mut self, code: u8) -> Done {
        let index = match code {
            b'p' => self.index_line()?,
            b'q' => self.cursor.u8()?.into(),
            b'r' => self.cursor.u32()?.into(),
            _ => self.memoized as u64,
        };
        // Writers count their memos; one that is numbered beyond the instructions before it was
        // not counted, and is not worth the memory.
        let place = usize::try_from(index).ok();
        let place = place
            .filter(|place| *place <= self.steps)
            .ok_or(PickleFault::Limit {
                what: "memos, of as many as there are instructions",
                limit: self.steps as u64,
            })?;
        let top = self.top()?;
        if place >= self.memo.len() {
            self.memo.resize(place.saturating_add(1), None);
        }
        if let Some(memo) = self.memo.get_mut(place)
            && memo.replace(top).is_none()
        {
            self.memoized = self.memoized.saturating_add(1);
        }
        Ok(())
    }

    fn index_line(&mut self) -> Done<u64> {
        let text = self.cursor.text_line()?;
        text.parse().map_err(|_| PickleFault::Number)
    }

    /// What is not on the list is only a name, which a dict may have for a key: a class of
    /// callbacks, the class of a tensor. Nothing is made by it.
    fn global(&mut self, code: u8) -> Done {
        let (module, name) = if code == 0x93 {
            match self.pop_last(2)?.as_slice() {
                [module, name] => (*module, *name),
                _ => return Err(PickleFault::StackEmpty),
            }
        } else {
            let (module, name) = (self.cursor.text_line()?, self.cursor.text_line()?);
            if code == b'i' {
                // INST makes objects of Python 2's classes. None of those holds data.
                self.find_global(module, name)
                    .ok_or_else(|| self.unknown(module, name, self.at))?;
                return Err(PickleFault::Instruction { code });
            }
            if let Some(global) = self.find_global(module, name) {
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
        if let Some(global) = self.find_global(module_name, own_name) {
            return self.push(Value::Global(global));
        }
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        self.push_node(Node::Named { module, name, at })
    }

    fn find_global(&self, module: &str, name: &str) -> Option<Global> {
        Some(match (self.find)(module, name)? {
            Global::Unread(mut unread) => {
                unread.at = u32::try_from(self.at).unwrap_or(u32::MAX);
                Global::Unread(unread)
            }
            found => found,
        })
    }

    /// The fault of what is only a name, where it has to be more.
    fn named(&self, value: Value) -> Option<PickleFault> {
        let value = match self.heap.node(value)? {
            // How the older streams name the class of a module: with its source.
            Node::Persistent(id) => match self.heap.tuple(*id)? {
                [kind, class, ..] if self.heap.text(*kind) == Some("module") => *class,
                _ => return None,
            },
            _ => value,
        };
        let Some(Node::Named { module, name, at }) = self.heap.node(value) else {
            return None;
        };
        let text = |value| self.heap.text(value).unwrap_or_default();
        let at = usize::try_from(*at).unwrap_or(usize::MAX);
        Some(self.unknown(text(*module), text(*name), at))
    }

    fn unknown(&self, module: &str, name: &str, at: usize) -> PickleFault {
        PickleFault::Global {
            module: abridged(module),
            name: abridged(name),
            at,
        }
    }

    /// REDUCE, NEWOBJ and BUILD.
    fn object(&mut self, code: u8) -> Done {
        if code == b'b' {
            let state = self.pop()?;
            return self.build(state);
        }
        let arguments = self.pop()?;
        let maker = match self.pop()? {
            Value::Global(maker) => maker,
            other => {
                let found = self.heap.describe(other);
                return Err(self.named(other).unwrap_or(match code {
                    b'R' => PickleFault::Call { found },
                    _ => PickleFault::Class { found },
                }));
            }
        };
        let Some(items) = self.heap.tuple(arguments) else {
            return Err(self.operand("a tuple of arguments", arguments));
        };
        if code == 0x81 && !maker.is_class() {
            return Err(PickleFault::Class {
                found: "a function",
            });
        }
        let items = match (maker, items) {
            // Of a `defaultdict`, the one argument is what makes values that are not there.
            (Global::OrderedDict | Global::Counter, []) | (Global::DefaultDict, [] | [_]) => {
                return self.push_node(Node::Dict(vec![]));
            }
            (Global::Set, []) => return self.push_node(Node::Set(vec![])),
            (Global::FrozenSet, []) => return self.push_node(Node::FrozenSet(vec![])),
            (Global::Deque, []) => return self.push_node(Node::List(vec![])),
            // A `deque` may have a greatest length.
            (Global::Deque, [items, _])
            | (
                Global::OrderedDict
                | Global::Counter
                | Global::Set
                | Global::FrozenSet
                | Global::Deque,
                [items],
            ) => *items,
            (Global::Storage(_) | Global::DType(_) | Global::QuantizationScheme(_), _) => {
                let found = "what is no function";
                return Err(PickleFault::Call { found });
            }
            _ => {
                let state = None;
                return self.push_node(Node::Made(Made {
                    maker,
                    arguments,
                    state,
                }));
            }
        };
        let node = self.collection(maker, items)?;
        self.push_node(node)
    }

    /// A dict or a set of what is in another collection. The only instruction that copies.
    fn collection(&mut self, maker: Global, items: Value) -> Done<Node<'p>> {
        let len = match self.heap.node(items) {
            Some(
                Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items),
            ) => items.len(),
            Some(Node::Dict(pairs)) => pairs.len(),
            _ => 0,
        };
        self.copies = self.copies.checked_sub(len).ok_or(PickleFault::Limit {
            what: "copied values, of as many as the pickle has bytes",
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
                Global::Set | Global::FrozenSet,
            ) => {
                for item in items {
                    self.check_hashable(*item)?;
                }
                Ok(match maker {
                    Global::Set => Node::Set(items.clone()),
                    _ => Node::FrozenSet(items.clone()),
                })
            }
            (Some(Node::List(items) | Node::Tuple(items)), Global::Deque) => {
                Ok(Node::List(items.clone()))
            }
            (Some(Node::Dict(pairs)), Global::OrderedDict | Global::Counter) => {
                Ok(Node::Dict(pairs.clone()))
            }
            (Some(Node::List(pairs) | Node::Tuple(pairs)), Global::OrderedDict) => {
                let pair = |pair: &Value| match self.heap.sequence(*pair) {
                    Some([key, value]) => self.check_hashable(*key).map(|()| (*key, *value)),
                    _ => Err(self.operand("a key and a value", *pair)),
                };
                let pairs: Result<_, PickleFault> = pairs.iter().map(pair).collect();
                pairs.map(Node::Dict)
            }
            _ => Err(self.operand("a collection", items)),
        }
    }

    /// Gives the object on top of the stack its state. The attributes of a dict (those of
    /// `state_dict()` are versions of modules) are no part of its data.
    fn build(&mut self, state: Value) -> Done {
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

    fn check_hashable(&self, key: Value) -> Done {
        match self.heap.node(key) {
            Some(Node::List(_) | Node::Dict(_) | Node::Set(_)) => Err(PickleFault::Unhashable {
                found: self.heap.describe(key),
            }),
            _ => Ok(()),
        }
    }

    fn operand(&self, expected: &'static str, found: Value) -> PickleFault {
        let found = self.heap.describe(found);
        PickleFault::Operand { expected, found }
    }

    fn push_node(&mut self, node: Node<'p>) -> Done {
        let limit = PickleFault::Limit {
            what: "values of several parts",
            limit: NODES as u64,
        };
        if self.heap.len() >= NODES {
            return Err(limit);
        }
        let value = self.heap.add(node).ok_or(limit)?;
        self.push(value)
    }

    fn push(&mut self, value: Value) -> Done {
        self.stack.push(value);
        self.spend(1)
    }

    fn spend(&mut self, values: u64) -> Done {
        self.values = self.values.saturating_add(values);
        if self.values > VALUES {
            let what = "values";
            return Err(PickleFault::Limit {
                what,
                limit: VALUES,
            });
        }
        Ok(())
    }

    /// The values above the last mark are those of an instruction; below, it may not reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Done<Value> {
        if self.stack.len() <= self.floor() {
            return Err(PickleFault::StackEmpty);
        }
        self.stack.last().copied().ok_or(PickleFault::StackEmpty)
    }

    fn pop(&mut self) -> Done<Value> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// POP takes a mark where there is nothing above it.
    fn discard(&mut self) -> Done {
        if self.stack.len() > self.floor() {
            return self.pop().map(drop);
        }
        self.marks.pop().map(drop).ok_or(PickleFault::StackEmpty)
    }

    fn pop_last(&mut self, count: usize) -> Done<Vec<Value>> {
        let start = self.stack.len().checked_sub(count);
        match start.filter(|start| *start >= self.floor()) {
            Some(start) => Ok(self.stack.drain(start..).collect()),
            None => Err(PickleFault::StackEmpty),
        }
    }

    fn pop_marked(&mut self) -> Done<Vec<Value>> {
        let start = self.marks.pop().ok_or(PickleFault::NoMark)?;
        let start = start.min(self.stack.len());
        Ok(self.stack.drain(start..).collect())
    }
}

/// Names in messages: those of a hostile pickle can be long.
fn abridged(name: &str) -> String {
    name.chars().take(120).collect()
}
