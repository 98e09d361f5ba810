//! The stack machine: one instruction after another, until `STOP`.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::duplicate;
use crate::fault::{PickleError, PickleFault};
use crate::global::Global;
use crate::heap::{Heap, LONG, Node, Value, reserve};
use crate::number;

/// The limit of values that are put on the stack and in the memo. A checkpoint of 100,000 tensors
/// has some six million. At 16 bytes each, the limit is 1 GiB.
const VALUES: u64 = 1 << 26;

/// A pickle that has been read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pickle<'p, G> {
    /// All values that are not small.
    pub heap: Heap<'p, G>,
    /// The pickled value.
    pub root: Value<G>,
    /// The bytes behind `STOP`, where another pickle may follow; none of an [`Outline`](crate::Outline).
    pub rest: &'p [u8],
}

/// Reads the pickle at the beginning of `bytes`. Texts and bytes are borrowed from it.
///
/// `find` takes the module and the name of a global, and the byte of the pickle where it is named.
/// It returns `None` for a global that the caller does not accept.
///
/// # Errors
///
/// The first instruction that is invalid, truncated or unsupported; a root that is only the name of
/// a global that `find` does not accept; a [limit](crate#limits).
pub fn load<G: Global>(
    bytes: &[u8],
    find: impl Fn(&str, &str, u32) -> Option<G>,
) -> Result<Pickle<'_, G>, PickleError> {
    load_from(Cursor::new(bytes), &find)
}

/// Reads the pickle at a cursor.
pub(super) fn load_from<'p, G: Global>(
    cursor: Cursor<'p>,
    find: &dyn Fn(&str, &str, u32) -> Option<G>,
) -> Result<Pickle<'p, G>, PickleError> {
    let mut machine = Machine {
        find,
        heap: Heap::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
        memoized: 0,
        values: VALUES,
        copies: cursor.held(),
        at: 0,
        byte_len: cursor.held() as u64,
        cursor,
    };
    match machine.run() {
        Ok(root) => Ok(Pickle { root, rest: machine.cursor.rest(), heap: machine.heap }),
        Err(fault) => Err(PickleError { at: machine.at, fault, uses: machine.heap.uses() }),
    }
}

pub(super) struct Machine<'f, 'p, G> {
    pub(super) cursor: Cursor<'p>,
    pub(super) find: &'f dyn Fn(&str, &str, u32) -> Option<G>,
    pub(super) heap: Heap<'p, G>,
    stack: Vec<Value<G>>,
    /// The length of the stack at each mark.
    marks: Vec<usize>,
    memo: Vec<Option<Value<G>>>,
    /// How many memos were stored.
    memoized: u64,
    /// How many of the [`VALUES`] are left.
    values: u64,
    /// How many values may still be copied. A value takes a byte of the pickle, and Python copies
    /// none twice.
    pub(super) copies: usize,
    /// Where the instruction begins; in a fault, where the refused global is named.
    pub(super) at: u64,
    /// Bytes of the pickle and of the data after it.
    pub(super) byte_len: u64,
}

pub(super) type Done<T = ()> = Result<T, PickleFault>;

impl<'p, G: Global> Machine<'_, 'p, G> {
    /// Carries out every instruction, and returns the root.
    fn run(&mut self) -> Done<Value<G>> {
        loop {
            self.at = self.cursor.at();
            if let Some(root) = self.step()? {
                duplicate::drop_replaced(&mut self.heap, self.cursor.taken() as u64)?;
                return Ok(root);
            }
        }
    }

    /// Carries out one instruction, and returns the root after the last.
    fn step(&mut self) -> Done<Option<Value<G>>> {
        let code = self.cursor.u8()?;
        match code {
            b'.' => {
                let root = self.pop()?;
                // A name alone is no data.
                self.refuse_named(root)?;
                return Ok(Some(root));
            }
            0x80 => match self.cursor.u8()? {
                0..=5 => Ok(()),
                found => Err(PickleFault::Protocol { found }),
            },
            // FRAME helps buffering only, but its bytes must exist.
            0x95 => {
                let len = self.cursor.u64()?;
                self.cursor.check(len)
            }
            b'(' => {
                self.spend()?;
                reserve(&mut self.marks, 1)?;
                self.marks.push(self.stack.len());
                Ok(())
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
            b'c' | 0x93 => self.global(code),
            b'R' | 0x81 | 0x92 | b'i' | b'o' => self.object(code),
            0x82..=0x84 => self.extension(code),
            b'b' => self.build(),
            b'Q' => {
                let id = self.pop()?;
                self.push_node(Node::Persistent(id))
            }
            // No data needs out-of-band buffers.
            _ => Err(PickleFault::Instruction { code }),
        }?;
        Ok(None)
    }

    fn number(&mut self, code: u8) -> Done {
        let value = match code {
            b'I' => match self.cursor.text_line()? {
                "00" => Value::Bool(false),
                "01" => Value::Bool(true),
                text => return self.push_integer(number::decimal(text)?),
            },
            b'L' => {
                let text = self.cursor.text_line()?;
                return self.push_integer(number::decimal(text)?);
            }
            b'J' => Value::Int(self.cursor.i32()?.into()),
            b'K' => Value::Int(self.cursor.u8()?.into()),
            b'M' => Value::Int(self.cursor.u16()?.into()),
            b'F' => number::float(self.cursor.text_line()?)?,
            // The only big-endian number of a pickle.
            b'G' => Value::Float(f64::from_be_bytes(self.cursor.array()?)),
            _ => {
                let len = match code {
                    0x8a => self.cursor.u8()?.into(),
                    _ => u64::try_from(self.cursor.i32()?).map_err(|_| PickleFault::Number)?,
                };
                let bytes = self.cursor.take(len)?;
                return self.push_integer(number::long(bytes));
            }
        };
        self.push(value)
    }

    fn push_integer(&mut self, integer: Result<Value<G>, Node<'p, G>>) -> Done {
        match integer {
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
                if let Some(offset) = self.cursor.left_out(len)? {
                    return self.push_node(Node::Elsewhere { offset, byte_len: len });
                }
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
            0x85 => self.pop_last(1)?,
            0x86 => self.pop_last(2)?,
            _ => self.pop_last(3)?,
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
        let target = self.filled(|object| &mut object.items, Node::List(Vec::new()))?;
        match self.heap.node_mut(target) {
            Some(Node::List(list)) if list.is_empty() => {
                *list = items;
                Ok(())
            }
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
        let target = self.filled(|object| &mut object.pairs, Node::Dict(Vec::new()))?;
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
            _ => self.memoized,
        };
        // Writers count their memos, so no memo has a higher number than its byte.
        let limit = self.cursor.taken();
        let place = usize::try_from(index).ok();
        let place = place.filter(|place| *place < limit).ok_or(PickleFault::Limit {
            what: "memos (one for each byte before)",
            limit: limit as u64,
        })?;
        let top = self.top()?;
        // Each is as large as a value.
        self.spend()?;
        if place >= self.memo.len() {
            let len = place.strict_add(1);
            let missing = len.strict_sub(self.memo.len());
            reserve(&mut self.memo, missing)?;
            self.memo.resize(len, None);
        }
        if self.memo.get_mut(place).and_then(|memo| memo.replace(top)).is_none() {
            self.memoized = self.memoized.strict_add(1);
        }
        Ok(())
    }

    fn index_line(&mut self) -> Done<u64> {
        let text = self.cursor.text_line()?;
        text.parse().map_err(|_| PickleFault::Number)
    }

    pub(super) fn check_hashable(&self, key: Value<G>) -> Done {
        match self.heap.node(key) {
            Some(Node::List(_) | Node::Dict(_) | Node::Set(_)) => {
                Err(PickleFault::Unhashable { found: self.heap.describe(key) })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn operand(&self, expected: &'static str, found: Value<G>) -> PickleFault {
        let found = self.heap.describe(found);
        PickleFault::Operand { expected, found }
    }

    pub(super) fn push_node(&mut self, node: Node<'p, G>) -> Done {
        let value = self.heap.add(node)?;
        self.push(value)
    }

    pub(super) fn push(&mut self, value: Value<G>) -> Done {
        self.spend()?;
        reserve(&mut self.stack, 1)?;
        self.stack.push(value);
        Ok(())
    }

    /// Takes one of the [`VALUES`].
    fn spend(&mut self) -> Done {
        let left = self.values.checked_sub(1);
        self.values = left.ok_or(PickleFault::Limit { what: "values", limit: VALUES })?;
        Ok(())
    }

    /// An instruction may not take values below the last mark.
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |floor| *floor)
    }

    pub(super) fn top(&self) -> Done<Value<G>> {
        if self.stack.len() <= self.floor() {
            return Err(PickleFault::StackEmpty);
        }
        self.stack.last().copied().ok_or(PickleFault::StackEmpty)
    }

    pub(super) fn pop(&mut self) -> Done<Value<G>> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// `POP` takes the last mark if no value is above it.
    fn discard(&mut self) -> Done {
        if self.stack.len() > self.floor() {
            return self.pop().map(drop);
        }
        self.marks.pop().map(drop).ok_or(PickleFault::StackEmpty)
    }

    pub(super) fn pop_last(&mut self, count: usize) -> Done<Vec<Value<G>>> {
        let start = self.stack.len().checked_sub(count);
        match start.filter(|start| *start >= self.floor()) {
            Some(start) => Ok(self.stack.drain(start..).collect()),
            None => Err(PickleFault::StackEmpty),
        }
    }

    pub(super) fn pop_marked(&mut self) -> Done<Vec<Value<G>>> {
        let start = self.marks.pop().ok_or(PickleFault::NoMark)?;
        let start = start.min(self.stack.len());
        // Moving a long list of one-byte values would take its memory twice.
        let is_most = start < self.stack.len() / 2;
        if is_most && self.stack.len() > LONG {
            let below = self.stack.split_at(start).0.to_vec();
            let mut items = std::mem::replace(&mut self.stack, below);
            items.drain(..start);
            items.shrink_to_fit();
            return Ok(items);
        }
        Ok(self.stack.drain(start..).collect())
    }
}
