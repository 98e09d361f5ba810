//! Room `tree`: everything below the root group, added to a `zt` file.
//!
//! | module | holds |
//! | --- | --- |
//! | `listing` | every path and its object, within a limit |
//! | `warnings`, `weight` | attributes and warnings of objects, and the memory that they take |
//! | `keras` | the HDF5 file in an archive of Keras |
//!
//! It is the last room. It must not read bytes of structures by itself.

pub(crate) mod keras;
pub(crate) mod listing;
mod warnings;
mod weight;
