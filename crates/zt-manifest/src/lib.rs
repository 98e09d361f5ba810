//! The CBOR manifest of `.zt` tensor files, every generation of it, as validated values.
#![forbid(unsafe_code)]

mod dtype;
mod map;
mod object;
mod text;
mod value;
mod version;

pub use dtype::DType;
pub use map::Map;
pub use object::{ByteOrder, Component, Object};
pub use text::Text;
pub use value::Value;
pub use version::{VERSION, Version};
pub use zt_container::{Blob, Digest, Encoding, Layout, Limits, Span};
