//! Room `filters`: the bytes of a chunk, decoded.
//!
//! | module | holds |
//! | --- | --- |
//! | `pipeline` | the filters of a dataset in order, and the limit of a chunk; deflate, fletcher32 |
//! | `blosc`, `blosc2` | chunks of Blosc; the frame and the blocks in several dimensions of Blosc 2 |
//! | `bitshuffle`, `blosclz`, `lz4` | one decoder each, for their own filters and for Blosc |
//! | `bzip2`, `lzf`, `shuffle`, `szip`, `nbit`, `scale_offset`, `zstd` | one decoder each |
//!
//! It must not know datasets, nor where a chunk is stored.

mod bitshuffle;
mod blosc;
mod blosc2;
mod blosclz;
mod bzip2;
mod lz4;
mod lzf;
mod nbit;
pub(crate) mod pipeline;
mod scale_offset;
mod shuffle;
mod szip;
mod zstd;
