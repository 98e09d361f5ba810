//! A machine that reads pickles as data.
//!
//! Python's pickle is a program for a stack machine that can call whatever it names. This one has
//! the same instructions, but a call is only written down: [`Node::Made`] says which of the
//! [globals on the list](super::global::Global) was called with what, and the reader of tensors
//! takes it from there. A global that is not on the list is a name ([`Node::Named`]); an object that
//! is made by it ends the reading.
//!
//! Nothing is copied per reference, so what a pickle costs grows with its bytes: exponential
//! pickles are small graphs here, and cycles and depth are for those to bound who walk them.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cursor;
mod fault;
mod heap;
mod machine;
mod number;
mod object;
mod repeat;

pub(super) use fault::{PickleError, PickleFault};
pub(super) use heap::{Heap, Made, Node, Value};
pub(super) use machine::{Find, Pickle, load};
pub(super) use number::pieces;
