//! Opens files of every kind in the table, and sets by their index.
//!
//! It must not know: how files are written.

mod contents;
mod folder;
mod kinds;

pub use contents::FolderContents;
pub use folder::{CHECKPOINT_METADATA, is_named_as_slice};
