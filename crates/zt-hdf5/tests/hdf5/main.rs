//! HDF5 files that are written structure by structure. Files of the HDF5 library are in `conformance`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "../../src/bytes/checksum.rs"]
mod checksum;

mod attributes;
mod chunks;
mod datatypes;
mod draft;
mod filters;
mod groups;
mod heaps;
mod keras;
mod messages;
