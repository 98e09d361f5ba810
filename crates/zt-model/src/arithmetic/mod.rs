//! Files whose values are computed from those of other files.
//!
//! ```text
//! average   weighted means of the tensors of several files
//! lora      a file with the weights of a LoRA adapter added to its own
//! factors   the names and the factors of an adapter
//! config    adapter_config.json
//! computed  the values of one tensor as a source, which computes what is read
//! quantize  a file with quantized values
//! units     the quantized values of one tensor as a source, and their errors
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
mod quantize;
mod units;

pub use average::average;
pub(crate) use computed::{object_like, part_of, values};
pub(crate) use factors::Factor;
pub use lora::Lora;
pub use quantize::{Quantize, Quantized, QuantizedObject};
