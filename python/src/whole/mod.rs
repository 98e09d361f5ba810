//! Room `whole`: work on whole files.
//!
//! | module | holds |
//! | --- | --- |
//! | `hash`, `diff` | the identity of a file's tensors, and the differences of two files |
//! | `convert` | files as one file of any kind |
//! | `combine` | files that are averaged, or have a LoRA adapter added |
//! | `split` | a file as a set of shards |
//! | `delta` | a file as the difference from another |
//! | `quantize` | a file with quantized values |
//! | `examine` | whether the files of a folder make one model |
//! | `repair` | a damaged file, mended or saved |
//! | `program` | the program `zt` |
//! | `register` | kinds of files and object formats that are written in Python |
//!
//! It must not know `zt.safetensors`.

pub(crate) mod combine;
pub(crate) mod convert;
pub(crate) mod delta;
pub(crate) mod diff;
pub(crate) mod examine;
pub(crate) mod hash;
pub(crate) mod program;
pub(crate) mod quantize;
pub(crate) mod register;
pub(crate) mod repair;
pub(crate) mod split;
