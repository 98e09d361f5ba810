//! The CBOR manifest of `.zt` tensor files, every generation of it, as validated values.
//!
//! Place in the graph: above `zt-container`, below `zt-formats`.
//!
//! ```text
//! bytes --Index::parse--> names, and the place of each object  (one pass, no values built)
//!          .object(i)---> RawObject: the fields of its map     (decoded on request)
//!          .validate()--> Object: fields that were checked     (or the fault of this object alone)
//!
//! Manifest { attributes, objects } --to_cbor--> bytes         (deterministic, always 1.2.0)
//! ```
//!
//! | generation | root | dtypes |
//! | --- | --- | --- |
//! | 0.1 | array of maps with a `name` | `float32`, of the object |
//! | 1.0 | map with `tensors` | `float32`, of the object |
//! | 1.1, 1.2 | map with `objects` | `f32`, of each component |
//!
//! A fault of the CBOR or of the root refuses the manifest. A fault of one object refuses that object
//! alone.
//!
//! Invariants: this crate reads no blob and knows no format, so it does not compare a blob's length
//! with its object's shape. It does no I/O. It uses no clock and no hash map: the same manifest always
//! gives the same bytes.
//!
//! ```
//! use zt_manifest::{
//!     Blob, Component, DType, Index, Layout, Limits, Manifest, Object, Placement, Span,
//! };
//!
//! let blob = Blob::raw(Span::new(64, 24).unwrap());
//! let object = Object::new([2, 3], "dense").with_component("data", Component::new(DType::F32, blob));
//! let manifest = Manifest {
//!     objects: vec![("weight".to_owned(), object)],
//!     ..Manifest::default()
//! };
//! let cbor = manifest.to_cbor()?;
//!
//! let limits = Limits::default();
//! let placement = Placement::new(Layout::V1_1, Span::new(8, 80).unwrap(), limits);
//! let index = Index::parse(&cbor, Layout::V1_1, &limits)?;
//! let position = index.find("weight").unwrap();
//! let mut warnings = Vec::new();
//! let object = index.object(position).validate(&placement, &mut warnings)?;
//! assert_eq!(object, manifest.objects[0].1);
//! assert!(warnings.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From a path to the names, with the layer below:
//!
//! ```
//! use zt_container::{Container, FileSource};
//! use zt_manifest::{Index, Limits};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/corpus/valid/quant_4bit_u8.zt");
//! let limits = Limits::default();
//! let container = Container::open(FileSource::open(path)?, &limits)?;
//! let index = Index::parse(container.manifest_bytes()?, container.layout(), &limits)?;
//! let names: Vec<&str> = (0..index.len()).map(|position| index.name(position)).collect();
//! assert_eq!(names, ["layer.qweight"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `serde` adds `Value::serialized` and `Value::deserialized`. Without it this crate
//! depends on `zt-container` alone.
//!
//! In these pages "Spec" is `spec/zt-1.2.md`, "1.0" is the specification of that version, and "legacy"
//! is `spec/legacy.md`.
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

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
