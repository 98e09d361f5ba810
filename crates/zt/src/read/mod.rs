//! Room `read`: the ways to read a tensor that need more than the bytes of its components.
//!
//! | module | gives |
//! | --- | --- |
//! | `dense` | the dense value: `Tensor::to_dense` |
//! | `tiles`, `runs` | the same on all cores, for a format whose values or rows are whole by themselves |
//! | `arrays` | the values of one array, or of several side by side, on all cores |
//! | `array` | the dense value as an array of the crate `ndarray`: `Tensor::array` |
//! | `slice` | parts of objects and of components |
//! | `part`, `roles` | parts of one component, and of all for its format |
//! | `strided` | values at even distances, and the pieces that they lie in |
//! | `dense_reader` | the dense value as a stream: [`DenseReader`] |
//! | `batch` | many components in one call, in the order of the file |
//! | `ahead` | nothing: it announces tensors to remote sources |
//! | `plan` | many tensors and slices, read ahead within a budget of memory: [`Plan`] |
//! | `compressed` | the dense object that an object of a format for compression stands for |
//! | `contents` | the format's check of indices and pointers: `Tensor::check_data` |
//!
//! It knows the rooms `error`, `cores` and `file`. Its calls are `impl` blocks of `Tensor` and
//! `File`, so that users find them there.
//!
//! It must not know how files are checked as a whole, written, edited or repaired.
//!
//! [`DenseReader`]: crate::DenseReader
//! [`Plan`]: crate::Plan

pub(crate) mod ahead;
#[cfg(feature = "ndarray")]
mod array;
pub(crate) mod arrays;
mod batch;
pub(crate) mod compressed;
pub(crate) mod contents;
mod dense;
pub(crate) mod dense_reader;
mod part;
pub(crate) mod plan;
mod roles;
mod runs;
mod slice;
mod strided;
mod tiles;

pub(crate) use slice::per_value;
