//! Room `base`: what an object format is made of and works with.
//!
//! | module | holds |
//! | --- | --- |
//! | `format` | the trait that a format implements, and those of its views |
//! | `registry` | the formats and logical types that a reader or writer knows |
//! | `signature` | the metadata of an object: what a format checks |
//! | `parts`, `read` | an object in memory, and the reader that a format asks for parts of it |
//! | `elements`, `buffer` | the bytes of one component with their type |
//! | `element`, `typed`, `fp8` | the same as slices of a Rust type |
//! | `logical`, `scalar`, `cast` | logical types, values one by one, casts between float types |
//! | `dense`, `select` | the plain array that formats decode to, and copies of its parts |
//! | `array` | the same as an array of the crate `ndarray` |
//! | `slice`, `places`, `selection` | an index of NumPy's basic slicing: as written, per dimension, as runs |
//! | `shape`, `attribute`, `error` | sizes of shapes, reading attributes, the errors |
//!
//! It must not know any format.

#[cfg(feature = "ndarray")]
mod array;
pub mod attribute;
pub(crate) mod buffer;
pub(crate) mod cast;
pub(crate) mod dense;
pub(crate) mod element;
pub(crate) mod elements;
pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod fp8;
pub(crate) mod logical;
pub(crate) mod parts;
pub(crate) mod places;
pub(crate) mod read;
pub(crate) mod registry;
pub(crate) mod scalar;
mod select;
pub(crate) mod selection;
pub(crate) mod shape;
pub(crate) mod signature;
pub(crate) mod slice;
pub(crate) mod typed;
