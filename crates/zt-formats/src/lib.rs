//! What the bytes of `.zt` tensor files mean: elements, logical types, object formats and the
//! registry of them.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt <- zt-convert <- zt-cli
//!                                ^ here
//! ```
#![forbid(unsafe_code)]

mod fp8;

pub use fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};
