//! Room `base`: what an object format is made of and works with.
//!
//! | module | holds |
//! | --- | --- |
//! | `format` | the traits of a format and of its views |
//! | `registry` | the formats and logical types that a reader or writer knows |
//! | `signature` | the metadata of an object: what a format checks |
//! | `parts`, `read` | an object in memory, and the reader that a format asks for parts of it |
//! | `elements`, `buffer` | the bytes of one component with their type |
//! | `element`, `typed`, `fp8`, `e8m0` | the same as slices of a Rust type |
//! | `logical`, `scalar` | logical types, values one by one |
//! | `float_type`, `cast` | the types that values are cast to, and the casts |
//! | `dense`, `select` | the plain array that formats decode to, and copies of its parts |
//! | `array` | the same as an array of the crate `ndarray` |
//! | `slice`, `places`, `selection` | an index of NumPy's basic slicing: as written, per dimension, as runs |
//! | `vectors` | loops compiled for several sets of vector instructions |
//! | `shape`, `attribute`, `error` | sizes of shapes, reading attributes, the errors |
//!
//! It must not know any format.

#[cfg(feature = "ndarray")]
mod array;
pub mod attribute;
pub(crate) mod buffer;
pub(crate) mod cast;
pub(crate) mod dense;
mod e8m0;
mod element;
pub(crate) mod elements;
mod error;
mod float_type;
mod format;
mod fp8;
mod logical;
mod parts;
mod places;
mod read;
mod registry;
mod scalar;
mod select;
mod selection;
mod shape;
pub(crate) mod signature;
mod slice;
pub(crate) mod typed;
mod vectors;

pub use buffer::{Buffer, Bytes};
pub use cast::Reals;
pub use dense::Dense;
pub use e8m0::F8E8M0Fnu;
pub use element::Element;
pub use elements::Elements;
pub use error::{
    AttributeFault, DeltaFault, Error, FormatViolation, HuffmanFault, IndexBound, Misuse, Result,
    SizeMismatch, SliceFault, Unsupported,
};
pub use float_type::FloatType;
pub use format::{ObjectFormat, ToObject, View};
pub(crate) use fp8::Layout;
pub use fp8::{F8E4M3Fn, F8E4M3FnUz, F8E5M2, F8E5M2FnUz};
pub use logical::{Decode, LogicalType};
pub use parts::{NewObject, Parts};
pub use places::Places;
pub use read::ReadParts;
pub use registry::Registry;
pub use scalar::{Scalar, Scalars};
pub use selection::{Run, Selection};
pub use shape::{dense_byte_len, element_count};
pub use signature::{ComponentSignature, Signature};
pub use slice::Slice;
pub use typed::{Typed, check_bools, check_bools_from};
pub use vectors::{Vectors, on_vectors};
