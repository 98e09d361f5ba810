//! Several inputs as one, and the target that they are written to.
//!
//! It must not know: sets, and how an output gets its name.

mod damage;
mod duplicate;
mod inputs;
mod output;
mod slices;
mod union;

pub(crate) use duplicate::replaces;
pub(crate) use inputs::merge;
pub(crate) use output::{Target, check_is_no_input, check_name};
pub use output::{check_output, is_same_file};
pub use slices::{join_folder, join_slices};
pub(crate) use union::{Union, united};
