//! Room `vds`: virtual datasets, which take their values from other datasets.
//!
//! | module | holds |
//! | --- | --- |
//! | `mapping`, `selection` | which elements of which dataset stand where |
//! | `sources`, `paths` | the files and datasets of the mappings, with limits of their own |
//! | `assembled` | the values, as a source |
//!
//! This is the only room that opens other files. It must not know the listing, attributes or warnings.

mod assembled;
mod mapping;
mod paths;
mod selection;
pub(crate) mod sources;
