//! Writing: objects of any inputs on their way into a file of one kind.
//!
//! ```text
//! Merged -> Incoming -> Outgoing (its treatment: keep, cast, decode) -> Sink, or a zt::Writer
//!                       Job (options, losses, summary)                  Shares (equal bytes once)
//! ```
//!
//! Has what the writers of all kinds need, and the one kind that needs no crate of its own: `.zt`.

mod in_file;
mod job;
mod loss;
mod merged;
mod native;
mod object;
mod options;
mod overflow;
mod shares;
mod sink;
mod values;

pub use job::{Job, LOSSY};
pub use loss::Loss;
pub use merged::{Incoming, Merged, display};
pub use native::{ZT, Zt, write_objects};
pub use object::Outgoing;
pub use options::{ConvertOptions, Summary};
pub use overflow::Overflow;
pub use sink::Sink;
