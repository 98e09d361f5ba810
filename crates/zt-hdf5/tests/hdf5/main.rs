//! HDF5 files, written here structure by structure; those of its own library are in `conformance`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "../../src/checksum.rs"]
mod checksum;

mod attributes;
mod chunks;
mod datatypes;
mod draft;
mod groups;
mod heaps;
mod keras;
mod messages;
