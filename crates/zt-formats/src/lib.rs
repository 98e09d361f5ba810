//! The meaning of the bytes in `.zt` tensor files: elements, logical types, object formats, and
//! their registry.
//!
//! Place in the graph: above `zt-manifest`, below `zt-ggml`.
//!
//! ```text
//!   metadata: Signature --Registry::check--> valid, or the rule that it breaks
//!   bytes:    Parts     --View::from_parts--> Dense | Csr | Coo | QuantizedGroup | Quantized4Bit | Planes
//!   writing:  any of those --ToObject--> NewObject
//! ```
//!
//! An object is a shape, a format and components. A component is [`Elements`]: bytes, a dtype and
//! sometimes a logical type. A format is an [`ObjectFormat`] in the [`Registry`], and checks
//! objects for readers and writers. A view of an object is a type that implements [`View`] and
//! [`ToObject`]; it is always well-formed. A new format is one file: `tests/own_format.rs` is an
//! example.
//!
//! A format also reads parts of its objects: it gets a [`ReadParts`], and returns rows or a slice.
//! The crate `zt` brings files and threads.
//!
//! | room | holds |
//! | --- | --- |
//! | `base` | what a format is made of: elements, signatures, the traits, the registry, `Dense` |
//! | `formats` | the formats of the specification, and ours: `zt.planes/1`, `zt.delta/1` and `zt.<type>/1`; [`Registry::builtin`] |
//!
//! Invariants: this crate does no I/O and no compression, knows no files, offsets or names of
//! objects, and has no globals. Bytes of components are little-endian on every host.
//!
//! ```
//! use zt_formats::{Csr, Dense, ToObject, View};
//!
//! // [[0, 5, 0],
//! //  [7, 0, 8]]
//! let csr = Csr::new([2, 3], &[5f32, 7.0, 8.0], &[1, 0, 2], &[0, 1, 3])?;
//! let object = csr.to_object()?;
//! assert_eq!(object.format, "sparse_csr");
//! assert_eq!(Csr::from_parts(object.into_parts())?, csr);
//!
//! let dense: Dense<'static> = csr.to_dense()?;
//! assert_eq!(*dense.as_slice::<f32>()?, [0.0, 5.0, 0.0, 7.0, 0.0, 8.0]);
//! # Ok::<(), zt_formats::Error>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod base;
mod formats;

pub use base::*;
pub use formats::*;
pub use half::{bf16, f16};
pub use num_complex::Complex;
/// Types of the layer below that the constructors here take.
pub use zt_manifest::{Attributes, DType, Object, Text, Value};

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
