//! Room `cores`: work on all cores, and the memory and the bytes that this work needs.
//!
//! | module | use it for |
//! | --- | --- |
//! | `parallel` | a list of equal tasks, results in order (rayon) |
//! | `stretches` | many small items, summed up in bounded memory |
//! | `work` | tasks that are handed out now and awaited later; the writer's threads |
//! | `read_ahead` | one stream: a thread reads while the caller computes |
//! | `pieces` | one large component, read and decoded on all cores |
//! | `scan` | many blobs, checked in bounded memory |
//! | `region` | small blobs that are read together |
//! | `announce` | hints to a source about the next reads |
//! | `ledger` | the digest of a blob that is read in pieces, in any order |
//! | `scratch` | memory that is used again |
//! | `progress` | progress functions, and interruption |
//! | `forward` | a source that stands before another one |
//! | `debug` | `Debug` for types with fields that are large |
//!
//! It knows blobs, spans, sources and digests of `zt-container`, and the room `error`.
//!
//! It must not know objects, tensors, formats or files. Only this room starts threads, except that
//! a caller may run inside a rayon pool of its own.

pub(crate) mod announce;
pub(crate) mod debug;
pub(crate) mod forward;
pub(crate) mod ledger;
pub(crate) mod parallel;
pub(crate) mod pieces;
pub(crate) mod progress;
pub(crate) mod read_ahead;
pub(crate) mod region;
pub(crate) mod scan;
pub(crate) mod scratch;
pub(crate) mod stretches;

pub(crate) mod work;
