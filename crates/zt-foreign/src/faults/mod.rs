//! What goes wrong between files of any kind: faults, and losses of a conversion.
//!
//! It must not know: how files are opened and written. The rules of one kind are in its crate.

mod cast;
mod fault;
mod loss;

pub use cast::Cast;
pub use fault::Fault;
pub(crate) use loss::Grade;
pub use loss::{LOSSY, Loss, display};
