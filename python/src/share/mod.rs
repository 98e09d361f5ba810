//! Room `share`: the bytes, values, threads and errors that Python and the engine share.
//!
//! | module | holds |
//! | --- | --- |
//! | `error` | errors of the engine as the exceptions of `zt/_errors.py` |
//! | `pool`, `work` | the threads of the engine; progress, and Ctrl-C |
//! | `memory` | private maps, buffers for Python, and memory that Python lends |
//! | `dtype`, `value`, `index` | element types, attributes and indices of Python |
//! | `array`, `dlpack` | an array on its way to Python, for NumPy and for DLPack |
//! | `torch` | tensors of torch, recognised |
//! | `source`, `ranges` | objects of Python as files; many ranges of a file at once |
//! | `remote` | URLs in the place of paths |
//! | `kinds` | the kinds of files and the object formats of this process |
//! | `result` | the classes of results that are written in Python |
//! | `warning` | warnings of the engine as those of Python |
//!
//! It must not know open files, tensors or writers: they are in the later rooms.

pub(crate) mod array;
pub(crate) mod dlpack;
pub(crate) mod dtype;
pub(crate) mod error;
pub(crate) mod index;
pub(crate) mod kinds;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod ranges;
pub(crate) mod remote;
pub(crate) mod result;
pub(crate) mod source;
pub(crate) mod torch;
pub(crate) mod value;
pub(crate) mod warning;
pub(crate) mod work;
