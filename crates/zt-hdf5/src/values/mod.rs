//! Room `values`: the values of one dataset, as a span of the file or as a source.
//!
//! | module | holds |
//! | --- | --- |
//! | `dataset` | the shape, the elements and the values of a dataset |
//! | `chunked` | values in chunks, decoded while they are read |
//! | `constant`, `widened` | values never written; numbers that no dtype has |
//!
//! It must not know other datasets, nor the names of objects.

pub(crate) mod chunked;
pub(crate) mod constant;
pub(crate) mod dataset;
pub(crate) mod widened;
