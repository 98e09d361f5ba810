#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attributes;
#[cfg(feature = "serde")]
mod bridge;
mod cbor;
mod dtype;
mod error;
mod index;
mod list;
mod manifest;
mod manifest_encoder;
mod names;
mod object;
mod own_digest;
mod plain;
mod raw;
mod schema;
mod text;
mod validate;
mod value;
mod version;
mod warning;

pub use attributes::Attributes;
pub use cbor::{MAX_KEY_LEN, MAX_NESTING};
pub use dtype::DType;
pub use error::{Error, LimitExceeded, Misuse, Result, Rule};
pub use index::Index;
pub use list::{List, ListBuilder};
pub use manifest::Manifest;
pub use manifest_encoder::{EncodedManifest, EncodedObject, Fields, ManifestEncoder};
pub use object::{ByteOrder, Component, Object, check_attributes_len, check_component_count};
pub use own_digest::ManifestDigest;
pub use raw::{Fault, RawComponent, RawObject};
pub use text::Text;
pub use validate::Placement;
pub use value::Value;
pub use version::{VERSION, Version};
pub use warning::Warning;
#[doc(hidden)]
pub use zt_container::memory;
pub use zt_container::{Blob, Digest, Encoding, Layout, Limits, Span};
