//! Room `filters`: the bytes of a chunk, decoded.
//!
//! | module | holds |
//! | --- | --- |
//! | `pipeline` | the filters of a dataset in order, and the limit of a chunk; deflate, fletcher32 |
//! | `lzf`, `shuffle`, `szip`, `nbit`, `scale_offset` | one decoder each |
//!
//! It must not know datasets, nor where a chunk is stored.

mod lzf;
mod nbit;
pub(crate) mod pipeline;
mod scale_offset;
mod shuffle;
mod szip;
