//! The arguments of a recorded call.

use crate::fault::{Done, RANK, TensorFault};
use crate::pickle::{Heap, Value};

/// The arguments of a call, by position.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'h, 'p> {
    pub(super) heap: &'h Heap<'p>,
    items: &'h [Value],
}

impl<'h, 'p> Arguments<'h, 'p> {
    pub(super) fn new(heap: &'h Heap<'p>, tuple: Value, name: &'static str) -> Done<Self> {
        let items = heap.tuple(tuple);
        let items = items.ok_or_else(|| wrong(heap, name, tuple))?;
        Ok(Arguments { heap, items })
    }

    pub(super) const fn of_items(heap: &'h Heap<'p>, items: &'h [Value]) -> Self {
        Arguments { heap, items }
    }

    pub(super) const fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn optional(&self, at: usize) -> Option<Value> {
        self.items.get(at).copied()
    }

    pub(super) fn value(&self, at: usize, name: &'static str) -> Done<Value> {
        self.optional(at).ok_or(TensorFault::Missing { name })
    }

    pub(super) fn text(&self, at: usize, name: &'static str) -> Done<&'h str> {
        let value = self.value(at, name)?;
        let text = self.heap.text(value);
        text.ok_or_else(|| wrong(self.heap, name, value))
    }

    pub(super) fn int(&self, at: usize, name: &'static str) -> Done<i64> {
        match self.value(at, name)? {
            Value::Int(value) => Ok(value),
            other => Err(wrong(self.heap, name, other)),
        }
    }

    pub(super) fn unsigned(&self, at: usize, name: &'static str) -> Done<u64> {
        let found = self.int(at, name)?;
        u64::try_from(found).map_err(|_| TensorFault::Negative { name, found })
    }

    pub(super) fn float(&self, at: usize, name: &'static str) -> Done<f64> {
        match self.value(at, name)? {
            Value::Float(value) => Ok(value),
            other => Err(wrong(self.heap, name, other)),
        }
    }

    pub(super) fn sizes(&self, at: usize, name: &'static str) -> Done<Vec<u64>> {
        let value = self.value(at, name)?;
        let items = self.heap.sequence(value);
        let items = items.ok_or_else(|| wrong(self.heap, name, value))?;
        if items.len() > RANK {
            return Err(TensorFault::Rank { found: items.len() });
        }
        let items = Arguments::of_items(self.heap, items);
        (0..items.len()).map(|at| items.unsigned(at, name)).collect()
    }
}

/// The fault of an argument of the wrong type.
pub(super) fn wrong(heap: &Heap<'_>, name: &'static str, found: Value) -> TensorFault {
    let found = heap.describe(found);
    TensorFault::Argument { name, found }
}
