//! Room `write`: a `.zt` file, written from front to back.
//!
//! ```text
//! options > writer > stream (one object) > encode (its components) > tools, chain > the sink
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `writer`, `stream` | [`Writer`](crate::Writer), and objects that are larger than memory |
//! | `options` | how a file, an object and a component are stored |
//! | `encode` | chunks that are compressed on all cores and written in order |
//! | `choice` | compress or not: the decision by a sample |
//! | `chain`, `tools` | sha256 beside the writing; memory and compressors that are used again |
//! | `copy` | components of another file, copied with their storage |
//! | `share`, `split` | components that share a blob; dense objects stored as `zt.planes/1` |
//! | `directory` | the objects of the new file, by name |
//!
//! It knows the rooms `error`, `cores`, `disk` and `file`: an object can be copied from another file.
//!
//! It must not know the rooms `edit` and `repair`. An edit gives the writer a `writer::Tail`.

mod chain;
mod choice;
mod copy;
pub(crate) mod directory;
pub(crate) mod encode;
pub(crate) mod options;
mod share;
mod split;
pub(crate) mod stream;
mod tools;
pub(crate) mod writer;
