//! Values from codes: how codes lie in bytes, matrices of codes, and the product with scales.
//!
//! ```text
//! packing  codes in units of bytes
//! codes    a matrix of codes or numbers in a stored tensor, and a part of it
//! weight   codes, scales, zero points and offsets of one weight
//! loaded   the values of a range, from its codes and scales in memory
//! described  a formula as a value that an object carries
//! fp4      codes of FP4 in blocks with a scale of a byte, as rows of GGUF and of others
//! integers  codes of 4 and 8 bits as blocks of GGUF with the same values
//! source   the values as bytes that are computed when they are read
//! ```
//!
//! It must not know: names of tensors, and dialects.

pub(crate) mod codes;
mod described;
pub(crate) mod fp4;
pub(crate) mod integers;
mod loaded;
pub(crate) mod packing;
mod source;
pub(crate) mod weight;

pub(crate) use source::{Computed, Latest};
