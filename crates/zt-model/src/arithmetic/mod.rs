//! Files whose values are computed from those of other files.
//!
//! ```text
//! average   weighted means of the tensors of several files
//! lora      a file with the weights of a LoRA adapter added to its own
//! factors   the names and the factors of an adapter
//! config    adapter_config.json
//! computed  the values of one tensor as a source, which computes what is read
//! ```
//!
//! A file of computed values is opened without reading a value. Reading it computes some MiB of values at a
//! time, on all cores.
//!
//! It must not know: kinds of files, outputs, sets.

mod average;
mod computed;
mod config;
mod factors;
mod fault;
mod lora;

pub use average::average;
pub(crate) use computed::values;
pub(crate) use factors::Factor;
pub use lora::Lora;
