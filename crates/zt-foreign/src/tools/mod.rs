//! Small tools that several kinds share: a hash, JSON, URLs.
//!
//! It must not know: files, kinds, tensors.

mod fnv;
#[cfg(feature = "json")]
pub mod json;
mod url;

pub use fnv::fnv1a;
pub use url::{beside, is_like_url, is_url, without_query, without_secrets};
