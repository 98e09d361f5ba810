//! Reads Python pickles as data: nothing is imported, called or run.
//!
//! A pickle is a program for a stack machine that can call whatever it names. This machine has the
//! same instructions, but a call is only recorded: [`Node::Made`] says which [`Global`] was called
//! with which arguments, and the caller decides what that means. A global that the caller does not
//! accept is only a name ([`Node::Named`]), and an object of it is a [`Node::StandIn`], which keeps
//! all that the pickle gives to the object.
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
//! // os.system("true"): nothing is run.
//! let pickle = load(b"cos\nsystem\n(Vtrue\ntR.", find)?;
//! let Some(Node::StandIn(object)) = pickle.heap.node(pickle.root) else {
//!     panic!("a stand-in");
//! };
//! assert_eq!(pickle.heap.named(object.class), Some(("os", "system")));
//! # Ok::<(), zt_pickle::PickleError>(())
//! ```
//!
//! [`Outline`] reads a pickle from a file without the bytes of the arrays in it.
//!
//! Protocols 0 to 5 are read. Out-of-band buffers, and keyword arguments of accepted globals are refused: no
//! data needs them.
//!
//! # What Python would run
//!
//! [`uses`] and [`Heap::uses`] tell which globals Python would import or call when it loads the pickle, with
//! the arguments as text, except those that are known to be harmless.
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
