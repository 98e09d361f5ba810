//! A file as the difference from another. Spec: formats/zt.delta.
//!
//! ```text
//! header    what a delta records about its base and its result
//! make      base + new file -> delta
//! patch     base + deltas -> the result, and what is checked of it
//! in_place  the same, for a file that is edited
//! result    base + delta -> the result as a file, whose values are made when they are read
//! part      the bytes of one component of it
//! values    the values by which two tensors differ
//! fault     why files do not fit together
//! ```
//!
//! It must not know: kinds of files, sets.

mod fault;
mod header;
mod in_place;
mod make;
mod part;
mod patch;
mod result;
mod values;

pub use header::{DeltaSummary, is_delta};
pub use in_place::patch_in_place;
pub use make::{Changes, delta, delta_to_path};
pub use patch::{Check, Patch};
pub use values::{NewValues, new_values};
