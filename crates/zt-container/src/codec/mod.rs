//! Zstandard, bounded: what a decoder may produce is known before it starts. Without the feature
//! `zstd`, frames are found, and compressing and decoding them is [`Unsupported`](crate::Unsupported).
//!
//! Spec: §5.

#[cfg(feature = "zstd")]
mod frame;
#[cfg(not(feature = "zstd"))]
#[path = "absent.rs"]
mod frame;
mod header;
mod seek;
#[cfg(feature = "zstd")]
mod stream;
mod walk;

pub use frame::{FrameCompressor, FrameDecompressor, decode_into};
pub use seek::{Frame, SeekTable, frames};
#[cfg(feature = "zstd")]
pub(crate) use stream::FrameDecoder;

/// Bytes of content in one frame of a component that has several.
pub const FRAME_CONTENT: usize = 1 << 20;

/// A component of at most this many bytes is one frame: Python's `zstandard.decompress` silently
/// returns the first frame alone, so small components stay readable to it.
pub const SINGLE_FRAME_MAX: usize = 4 << 20;
