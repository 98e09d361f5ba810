//! The table of kinds, as a value, and the files that are mistaken for tensor files.
//!
//! It must not know: sets, and how files are converted.

mod kinds;
mod mistakes;
mod quantized;
mod shard_name;

pub use kinds::Kinds;
pub(crate) use mistakes::{find, of_path};
pub(crate) use shard_name::unnumbered;
