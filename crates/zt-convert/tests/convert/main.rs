//! What a conversion keeps, changes, refuses and warns about.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod draft;
mod kept;
mod losses;
#[cfg(feature = "safetensors")]
mod to_safetensors;
