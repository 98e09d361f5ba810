//! What a user typed in the place of a file, and the file that it is.
//!
//! ```text
//! place    a path, a folder, a URL or `-`: opened, read, written
//! options  how it is opened: kinds, a base and deltas, the stores of URLs
//! sealed   the files beside it, and reading with a seal
//! stdin    what `-` stands for
//! ```
//!
//! It must not know: the examination of models, and how a program asks for its files.

mod options;
mod place;
mod sealed;
mod stdin;

pub use options::LocationOptions;
pub use place::{BASE_UNUSED, Location};
pub use sealed::Beside;
