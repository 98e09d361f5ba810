//! What the elements of a foreign file mean, and their packing where a value has less than a byte.
//!
//! It must not know: files, kinds.

mod meaning;
mod ml_dtype;
mod packing;

pub use meaning::Meaning;
pub use ml_dtype::MlDtype;
pub use packing::Packing;
