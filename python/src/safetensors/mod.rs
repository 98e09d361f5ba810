//! `zt.safetensors`: the names of the package `safetensors` 0.8.0, over files of every kind.
//!
//! | module | holds |
//! | --- | --- |
//! | `handle` | `safe_open`, `_safe_open_handle` |
//! | `opened` | an open file, and the bytes of its tensors |
//! | `slice` | the result of `get_slice`, and the indices that it accepts |
//! | `element` | the types of elements, by their names in files and in frameworks |
//! | `framework` | frameworks, their devices, and their tensors |
//! | `spec` | `TensorSpec`, `serialize`, `serialize_file`, `deserialize` |
//! | `message` | errors, in the words that hosts expect |

mod element;
mod framework;
mod handle;
mod message;
mod opened;
mod slice;
mod spec;

pub(crate) use handle::{FileHandle, SafeOpen};
pub(crate) use slice::SafeSlice;
pub(crate) use spec::{TensorSpec, deserialize, serialize, serialize_file};
