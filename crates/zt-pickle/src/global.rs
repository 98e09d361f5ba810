//! The caller's globals, and what the machine asks about them.

use std::fmt::Debug;
use std::hash::Hash;

use crate::heap::{Heap, Value};

/// A global that the caller accepts: a class or a function of Python, as the caller's own type.
///
/// The machine never calls it. It only asks what a call would make.
pub trait Global: Debug + Copy + Eq + Hash {
    /// What a call of this global makes.
    fn makes(self) -> Makes;

    /// Whether it is a class, so that `NEWOBJ` may make objects of it.
    fn is_class(self) -> bool;

    /// Whether `BUILD` may give its objects a state.
    fn has_state(self) -> bool;

    /// Whether an object is a sequence, made of one list or tuple: `torch.Size`.
    fn is_sequence(self) -> bool {
        false
    }

    /// Whether `REDUCE` may take an argument without a tuple around it, as libtorch writes it.
    fn takes_bare_argument(self) -> bool {
        false
    }

    /// The class that a persistent id stands for, if any. The error of a call names it.
    fn class_of(_heap: &Heap<'_, Self>, _id: Value<Self>) -> Option<Value<Self>> {
        None
    }
}

/// No global: for a caller that accepts none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoGlobal {}

impl Global for NoGlobal {
    fn makes(self) -> Makes {
        match self {}
    }

    fn is_class(self) -> bool {
        match self {}
    }

    fn has_state(self) -> bool {
        match self {}
    }
}

/// What a call of a [`Global`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Makes {
    /// An object, recorded as [`Made`](crate::Made).
    Object,
    /// A collection of Python.
    Collection(Collection),
    /// Nothing: the global is a value, and a call of it is an error.
    Nothing,
}

/// A collection of Python's own library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collection {
    /// `collections.OrderedDict`: a dict.
    OrderedDict,
    /// `collections.Counter`: a dict.
    Counter,
    /// `collections.defaultdict`: a dict.
    DefaultDict,
    /// `collections.deque`: a list.
    Deque,
    /// `set`.
    Set,
    /// `frozenset`.
    FrozenSet,
}
