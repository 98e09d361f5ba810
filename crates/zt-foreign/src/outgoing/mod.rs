//! Objects of any inputs on their way into a file of one kind.
//!
//! ```text
//! Merged -> Incoming -> Outgoing (its treatment: keep, cast, decode) -> Sink
//!                       Job (options, losses, summary)
//! ```
//!
//! Has what the writers of all kinds need. It must not know: the kinds and their contract.

mod job;
mod merged;
mod object;
mod options;
mod sink;
mod values;

pub use job::{Job, STORED_SHAPE};
pub use merged::{Incoming, Merged};
pub use object::{DATA, Outgoing, Treatment};
pub use options::{AttributeChange, ConvertOptions, Duplicate, OnDuplicate, Summary};
pub use sink::Sink;
pub use values::Written;
