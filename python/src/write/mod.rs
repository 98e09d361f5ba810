//! Room `write`: values of Python, and the files that they are written to.
//!
//! | module | holds |
//! | --- | --- |
//! | `array`, `packed`, `quantized`, `incoming` | values that can be written |
//! | `options` | what the arguments of writing calls mean |
//! | `writer`, `editor` | `zt.Writer` and `zt.edit` |
//! | `save` | a dict of tensors as a file of any kind |
//!
//! It knows the tensors of open files, because they can be written. It must not know the work on
//! whole files.

pub(crate) mod array;
pub(crate) mod editor;
pub(crate) mod incoming;
pub(crate) mod options;
mod packed;
pub(crate) mod quantized;
pub(crate) mod save;
pub(crate) mod writer;
