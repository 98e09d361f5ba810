//! The contract of a kind of file: [`FileKind`], and [`FileWriter`] for kinds that are written.
//!
//! It must not know: any kind, and the table of kinds.

mod kind;
mod writer;

pub use kind::FileKind;
pub use writer::{FileWriter, SetForm, ShardPlace};
