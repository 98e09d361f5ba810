//! Room `read`: an open file, its tensors, and their values in memory.
//!
//! | module | holds |
//! | --- | --- |
//! | `file` | `zt.open` and `zt.File` |
//! | `tensor`, `component` | `zt.Tensor` and `zt.Component` |
//! | `load` | many tensors in one call |
//! | `html` | tables for notebooks |
//!
//! It must not know what writes files.

pub(crate) mod component;
pub(crate) mod file;
pub(crate) mod html;
pub(crate) mod load;
pub(crate) mod tensor;
