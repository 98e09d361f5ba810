//! Room `check`: work on all bytes of a file.
//!
//! | module | does |
//! | --- | --- |
//! | `verify` | checks digests, contents and the rules of the format: `File::verify` |
//! | `hash` | computes the identity of tensors: `File::hash` |
//! | `dense_hash` | hashes dense values, as a stream |
//! | `values` | checks the values that a kind of file forbids |
//! | `zeros` | finds the zeros that a cut download leaves at the end of a file |
//! | `survey` | lists the stored ranges of all components, each range once |
//!
//! Both calls read each stored range once, even if many components share it, and both report
//! their progress and can be interrupted.
//!
//! It knows the rooms `error`, `cores`, `file` and `read`.
//!
//! It must not know how files are written or repaired: it changes no byte.

mod dense_hash;
pub(crate) mod hash;
mod survey;
mod values;
pub(crate) mod verify;
mod zeros;
