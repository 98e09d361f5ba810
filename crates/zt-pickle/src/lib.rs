//! Reads Python pickles as data: nothing is imported, called or run.
//!
//! A pickle is a program for a stack machine that can call whatever it names. This machine has the
//! same instructions, but a call is only recorded: [`Node::Made`] says which [`Global`] was called
//! with which arguments, and the caller decides what that means. A global that the caller does not
//! accept is only a name ([`Node::Named`]), and an object of it is an error.
//!
//! ```
//! use zt_pickle::{Collection, Global, Makes, Node, Value, load};
//!
//! /// The globals that we accept.
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
//! enum Ours {
//!     OrderedDict,
//! }
//!
//! impl Global for Ours {
//!     fn makes(self) -> Makes {
//!         Makes::Collection(Collection::OrderedDict)
//!     }
//!     fn is_class(self) -> bool {
//!         true
//!     }
//!     fn has_state(self) -> bool {
//!         false
//!     }
//! }
//!
//! fn find(module: &str, name: &str, _at: u32) -> Option<Ours> {
//!     (module == "collections" && name == "OrderedDict").then_some(Ours::OrderedDict)
//! }
//!
//! // pickle.dumps({"a": 1}, protocol=2)
//! let pickle = load(b"\x80\x02}X\x01\0\0\0aK\x01s.", find)?;
//! let Some(Node::Dict(pairs)) = pickle.heap.node(pickle.root) else {
//!     panic!("a dict");
//! };
//! assert_eq!(pickle.heap.text(pairs[0].0), Some("a"));
//! assert_eq!(pairs[0].1, Value::Int(1));
//!
//! // os.system("true")
//! assert!(load(b"cos\nsystem\n(Vtrue\ntR.", find).is_err());
//! # Ok::<(), zt_pickle::PickleError>(())
//! ```
//!
//! Protocols 0 to 5 are read. Extension codes, keyword arguments and out-of-band buffers are
//! refused: no data needs them.
//!
//! # Limits
//!
//! Time and memory grow with the bytes of the pickle. Values, memos, copies and compared keys are
//! limited as well. The graph of values may be deep and may have cycles: code that walks it has to
//! bound its depth.
//!
//! Invariant: every length is compared with the bytes that follow before anything is reserved.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cursor;
mod duplicate;
mod fault;
mod global;
mod heap;
mod machine;
mod number;
mod object;

pub use fault::{PickleError, PickleFault};
pub use global::{Collection, Global, Makes};
pub use heap::{Heap, Made, Node, NodeId, Value};
pub use machine::{Pickle, load};
pub use number::pieces;
