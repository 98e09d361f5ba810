//! The files of a model: what does not fit together, and the index that shards lack.
#![allow(clippy::unwrap_used, reason = "tests")]
#![cfg(feature = "default")]

#[cfg(unix)]
mod cache;
mod faults;
mod folder;
mod index;
mod sound;
