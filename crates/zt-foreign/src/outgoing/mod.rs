//! Writing: objects of any inputs on their way into a file of one kind.
//!
//! ```text
//! Merged -> Incoming -> Outgoing (its treatment: keep, cast, decode) -> Sink, or a zt::Writer
//!                       Job (options, losses, summary)
//! ```
//!
//! Has what the writers of all kinds need.

mod job;
mod loss;
mod merged;
mod object;
mod options;
mod overflow;
mod sink;
mod values;

pub use job::{Job, LOSSY};
pub use loss::Loss;
pub use merged::{Incoming, Merged, display};
pub use object::{DATA, Outgoing, Treatment};
pub use options::{ConvertOptions, Summary};
pub use overflow::Overflow;
pub use sink::Sink;
pub use values::Written;
