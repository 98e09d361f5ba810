#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cursor;
mod duplicate;
mod fault;
mod global;
mod heap;
mod holders;
mod machine;
mod number;
mod object;
mod outline;
mod risk;
mod uses;

pub use fault::{PickleError, PickleFault};
pub use global::{Collection, Global, Makes, NoGlobal};
pub use heap::{Heap, Made, Node, NodeId, StandIn, Value};
pub use holders::Holders;
pub use machine::{Pickle, load};
pub use number::pieces;
pub use outline::{Outline, OutlineError, ReadAt};
pub use risk::{Among, Use};
pub use uses::{begins, uses};
