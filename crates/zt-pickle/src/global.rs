//! What the machine asks about globals.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{Heap, Value};

/// A global that the caller accepts: a class or a function of Python, as the caller's own type.
///
/// The machine never calls it. It only asks what a call would make.
pub trait Global: Debug + Copy + Eq + Hash {
    /// What a call of it makes.
    fn makes(self) -> Makes;

    /// Whether `NEWOBJ` may make objects of it without a call.
    fn is_class(self) -> bool;

    /// Whether its objects may be given a state by `BUILD`.
    fn has_state(self) -> bool;

    /// Whether its objects are sequences, made of one list or tuple: `torch.Size`.
    fn is_sequence(self) -> bool {
        false
    }

    /// Whether `REDUCE` may call it with an argument that is not in a tuple, as libtorch does.
    fn takes_bare_argument(self) -> bool {
        false
    }

    /// The class that a persistent id names, for the error of a call of it.
    fn class_of(_heap: &Heap<'_, Self>, _id: Value<Self>) -> Option<Value<Self>> {
        None
    }
}

/// What a call of a [`Global`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Makes {
    /// An object, recorded as [`Made`](crate::Made).
    Object,
    /// A collection of Python.
    Collection(Collection),
    /// Nothing: it is a value, and a call of it is an error.
    Nothing,
}

/// A collection of Python's own library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
