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

mod base;
mod formats;

pub use base::attribute;
pub use base::buffer::{Buffer, Bytes};
pub use base::dense::Dense;
pub use base::element::Element;
pub use base::elements::Elements;
pub use base::error::{
    AttributeFault, Error, IndexBound, Misuse, Result, SizeMismatch, SliceFault, Unsupported,
    Violation,
};
pub use base::format::{ObjectFormat, ToObject, View};
pub use base::fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};
pub use base::logical::{Decode, LogicalType};
pub use base::parts::{NewObject, Parts};
pub use base::places::Places;
pub use base::read::ReadParts;
pub use base::registry::Registry;
pub use base::scalar::{Scalar, Scalars};
pub use base::selection::{Run, Selection};
pub use base::shape::{dense_byte_len, element_count};
pub use base::signature::{ComponentSignature, Signature};
pub use base::slice::Slice;
pub use base::typed::{Typed, check_bools, check_bools_from};

pub use formats::dense::DenseFormat;
pub use formats::index::indices;
pub use formats::plane_codec::PlaneCodec;
pub use formats::planes::{Planes, PlanesFormat};
pub use formats::quantization::{Packing, Quantization, ZeroKind};
pub use formats::quantized_4bit::{Quantized4Bit, Quantized4BitFormat};
pub use formats::quantized_group::{Quantized, QuantizedGroup, QuantizedGroupFormat};
pub use formats::sparse_coo::{Coo, SparseCooFormat};
pub use formats::sparse_csr::{Csr, SparseCsrFormat};

pub use half::{bf16, f16};
pub use num_complex::Complex;
/// What the constructors here take of the layer below.
pub use zt_manifest::{DType, Map, Object, Text, Value};

/// The example of README.md runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
