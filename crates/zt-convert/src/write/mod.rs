//! One file from several: converted to any kind, or appended to a `.zt` file.
//!
//! It must not know: sets of shards.

mod append;
mod convert;
