//! PyTorch checkpoints as tensors: the files that `torch.save` writes. Other pickles of arrays and tensors,
//! too. Nothing in them is run.
//!
//! A checkpoint has a pickle, which describes the tensors, and storages, which hold the elements.
//! They are members of a zip archive since torch 1.6, a stream before, and members of a tar archive
//! before 0.1.10. A pickle that `torch.save` did not write has the elements within it. A pickle is read
//! as data. Its objects may be of the globals that `torch.load(weights_only=True)` allows, of Python's own
//! collections and values, and of NumPy's arrays. An object of any other global is left out with a
//! warning, and the tensors in it are listed. A class that is only named is a text.
//!
//! Dicts and lists are flattened: keys and positions, joined by dots, name the tensors. Every tensor
//! is an object, even if several share a storage. A contiguous tensor is a range of the file, and
//! any other is put in order as it is read. A tensor that only holds others is a warning.
//!
//! Other values are attributes of the file. A Python attribute of a tensor, `w.extra = ...`, is an
//! attribute of its object; if it is a tensor, it is an object too. `requires_grad`, hooks, devices
//! and the attributes of dicts, such as `_metadata`, are dropped.
#![forbid(unsafe_code)]
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod archive;
mod arguments;
mod assemble;
mod attribute;
mod budget;
mod deferred;
mod element;
mod fault;
mod flatten;
mod global;
mod key;
mod kind;
mod legacy;
mod numpy;
mod others;
mod pickle;
mod plain;
mod quantized;
mod sparse;
mod tar;
mod tensor;
mod unknown;
mod view;
mod wrapper;

pub use kind::{PICKLE, PYTORCH, PlainPickle, PyTorch};
pub use zt;
pub use zt_foreign::{FileKind, Input, InputOptions};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
