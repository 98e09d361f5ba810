//! The kind `zt`: every generation is read, 1.2.0 is written.
//!
//! ```text
//! kind      recognises and opens files, and is their writer
//! object    writes objects: as their components, as their dense value, or as planes of it
//! shares    finds equal components, so that each is stored once
//! in_file   the same for the components of a file that is edited
//! ```
//!
//! It must not know: other kinds, the table of kinds, sets, paths.

mod in_file;
mod kind;
mod object;
mod shares;

pub use kind::{ZT, Zt};
pub use object::write_objects;
