//! Room `whole`: work on whole files.
//!
//! | module | holds |
//! | --- | --- |
//! | `operations` | `zt.verify`, `zt.hash`, `zt.diff`, `zt.convert` and `zt.repair` |
//! | `torch` | tensors of torch, both ways |
//!
//! It must not know `zt.safetensors`.

pub(crate) mod operations;
pub(crate) mod torch;
