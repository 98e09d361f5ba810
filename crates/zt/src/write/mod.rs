//! Room `write`: a `.zt` file, written from front to back.
//!
//! ```text
//! options > writer > object > component > encode > tools, chain > the sink
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | `writer`, `sink` | [`Writer`](crate::Writer), and where its bytes go |
//! | `object`, `component` | objects larger than memory, written component by component |
//! | `options` | how a file, an object and a component are stored |
//! | `encode` | chunks that are compressed on all cores and written in order |
//! | `choice` | compress or not: the decision by a sample |
//! | `chain`, `tools` | sha256 beside the writing; memory and compressors that are used again |
//! | `copy`, `by_system` | whole objects of another file; bytes that the system copies |
//! | `share` | components that share a blob |
//! | `split`, `coded` | dense objects stored as `zt.planes/1` or `zt.planes/2`; plane 0 of the latter |
//! | `directory` | the objects of the new file, by name |
//!
//! It knows the rooms `error`, `cores`, `disk` and `file`: an object can be copied from another file.
//!
//! It must not know the rooms `edit` and `repair`. An edit gives the writer a `sink::Tail`.

mod by_system;
mod chain;
mod choice;
pub(crate) mod component;
mod copy;
pub(crate) mod directory;
pub(crate) mod encode;
pub(crate) mod object;
pub(crate) mod options;
mod share;
mod sink;
mod split;
mod tools;
pub(crate) mod writer;
