//! Zstandard with bounds: the length of the output is known before decoding starts. Without the feature
//! `zstd`, frames are located, but compressing and decoding them is [`Unsupported`](crate::Unsupported).
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
pub use seek::{Frame, SeekTable, frames, table_span};
#[cfg(feature = "zstd")]
pub(crate) use stream::FrameDecoder;

/// Bytes of content in each frame of a component with several frames.
pub const FRAME_CONTENT: usize = 1 << 20;

/// A component of at most this many bytes is one frame, so that Python's `zstandard.decompress` can read
/// it: that function silently returns only the first frame.
pub const SINGLE_FRAME_MAX: usize = 4 << 20;
