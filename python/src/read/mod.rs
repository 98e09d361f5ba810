//! Room `read`: open files, their tensors, and values in memory.
//!
//! | module | holds |
//! | --- | --- |
//! | `open` | the open file that all its tensors share |
//! | `file` | `zt.open` and `zt.File` |
//! | `tensor`, `component` | `zt.Tensor` and `zt.Component` |
//! | `select` | the choice of tensors, and their new names |
//! | `load` | many tensors in one call |
//! | `plan` | `zt.plan` and `zt.Plan`: tensors that are read ahead |
//! | `torch` | the functions of `zt.torch`: tensors as capsules of DLPack |
//! | `verify` | `zt.verify` |
//! | `stats` | `zt.stats` |
//! | `report` | `zt.report` |
//! | `html` | tables for notebooks |
//!
//! It must not know the modules that write files.

pub(crate) mod component;
pub(crate) mod file;
mod html;
pub(crate) mod load;
pub(crate) mod open;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod select;
pub(crate) mod stats;
pub(crate) mod tensor;
pub(crate) mod torch;
pub(crate) mod verify;
