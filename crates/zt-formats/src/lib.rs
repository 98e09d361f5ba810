//! What the bytes of `.zt` tensor files mean: elements, logical types, object formats and the
//! registry of them.
//!
//! ```text
//! zt-container <- zt-manifest <- zt-formats <- zt-ggml <- zt <- zt-convert <- zt-cli
//!                                ^ here
//!
//!   metadata: Signature --Registry::check--> sound, or the rule it breaks
//!   bytes:    Parts     --View::from_parts--> Dense | Csr | Coo | QuantizedGroup | Quantized4Bit | Planes
//!   writing:  any of those --ToObject--> NewObject
//! ```
//!
//! An object is a shape, a format and components. A component is [`Elements`]: bytes, a dtype and
//! sometimes a logical type. A format is an [`ObjectFormat`] in the [`Registry`], and checks objects
//! for readers and writers alike. A view of an object is a type that implements [`View`] and
//! [`ToObject`]; it is always well-formed. A new format is one file: `tests/own_format.rs` is one.
//!
//! A format also decides how its objects are read in parts. It gets a [`ReadParts`] and gives the
//! rows or the slice that it was asked for; the crate `zt` brings files and threads.
//!
//! Invariants: this crate does no I/O and no compression, knows no files, offsets or names of
//! objects, and has no globals. Bytes of components are little-endian, whatever the host.
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
#![forbid(unsafe_code)]

pub mod attribute;
mod buffer;
mod cast;
mod dense;
mod element;
mod elements;
mod error;
mod format;
mod fp8;
mod index;
mod logical;
mod number;
mod parts;
mod places;
mod plane_codec;
mod planes;
mod quantization;
mod quantize;
mod quantized_4bit;
mod quantized_group;
mod read;
mod registry;
mod scalar;
mod scatter;
mod select;
mod selection;
mod shape;
mod signature;
mod slice;
mod sparse_coo;
mod sparse_csr;
mod sparse_part;
mod typed;

pub use buffer::{Buffer, Bytes};
pub use dense::{Dense, DenseFormat};
pub use element::Element;
pub use elements::Elements;
pub use error::{
    AttributeFault, Error, IndexBound, Misuse, Result, SizeMismatch, SliceFault, Unsupported,
    Violation,
};
pub use format::{ObjectFormat, ToObject, View};
pub use fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};
pub use half::{bf16, f16};
pub use index::indices;
pub use logical::{Decode, LogicalType};
pub use num_complex::Complex;
pub use parts::{NewObject, Parts};
pub use places::Places;
pub use plane_codec::PlaneCodec;
pub use planes::{Planes, PlanesFormat};
pub use quantization::{Packing, Quantization, ZeroKind};
pub use quantized_4bit::{Quantized4Bit, Quantized4BitFormat};
pub use quantized_group::{Quantized, QuantizedGroup, QuantizedGroupFormat};
pub use read::ReadParts;
pub use registry::Registry;
pub use scalar::{Scalar, Scalars};
pub use selection::{Run, Selection};
pub use shape::{dense_byte_len, element_count};
pub use signature::{ComponentSignature, Signature};
pub use slice::Slice;
pub use sparse_coo::{Coo, SparseCooFormat};
pub use sparse_csr::{Csr, SparseCsrFormat};
pub use typed::{Typed, check_bools, check_bools_from};
/// What the constructors here take of the layer below.
pub use zt_manifest::{DType, Map, Object, Text, Value};

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
