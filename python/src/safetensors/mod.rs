//! `zt.safetensors`: the names of the package `safetensors` 0.8.0, over files of every kind.
//!
//! | module | holds |
//! | --- | --- |
//! | `handle` | `safe_open`, `_safe_open_handle` |
//! | `opened` | an open file, and where the bytes of its tensors are |
//! | `slice` | what `get_slice` gives, and the indices that it accepts |
//! | `element` | the types of elements, by their names in files and in frameworks |
//! | `framework` | frameworks and devices, and tensors of theirs |
//! | `spec` | `TensorSpec`, `serialize`, `serialize_file`, `deserialize` |
//! | `message` | errors, in the words that hosts compare |

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
