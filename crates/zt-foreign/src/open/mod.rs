//! What a kind gets to open a file, and what it returns.
//!
//! ```text
//! Probe -> Opening (path, folder, InputOptions) -> Input
//!          Neighbours, Folder: files that the file names
//!          archive (feature `zip`): zip archives, with the errors of `zt`
//! ```
//!
//! It must not know: kinds, and how files are written.

#[cfg(feature = "zip")]
pub mod archive;
mod folder;
mod input;
mod names;
mod neighbours;
mod opening;
mod probe;

pub use folder::{Existing, Folder, Opened, TargetFolder, open_one};
pub use input::{Input, InputOptions, Logical, LogicalTensor};
pub use names::Names;
pub use neighbours::{LEADS_OUT, Neighbours, Refusal, leads_out, refusal};
pub use opening::Opening;
pub use probe::Probe;
