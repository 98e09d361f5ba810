//! The names of `frame.rs` without the feature `zstd`: every call is [`Unsupported::Zstd`].

use crate::error::{Error, Result, Unsupported};

/// Compresses contents into frames. Without the feature `zstd` it cannot be made.
#[derive(Debug)]
pub struct FrameCompressor(Absent);

/// Decodes frames. Without the feature `zstd` it cannot be made.
#[derive(Debug)]
pub struct FrameDecompressor(Absent);

/// Has no values.
#[derive(Debug)]
enum Absent {}

const fn unsupported<T>() -> Result<T> {
    Err(Error::Unsupported(Unsupported::Zstd))
}

impl FrameCompressor {
    /// A compressor of zstd's `level`.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Zstd`], always.
    pub const fn new(_level: i32) -> Result<Self> {
        unsupported()
    }

    /// A compressor that codes bytes by their frequency.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Zstd`], always.
    pub const fn entropy_only() -> Result<Self> {
        unsupported()
    }

    /// The most bytes that a frame of `content_len` bytes takes.
    #[must_use]
    pub const fn bound(content_len: usize) -> usize {
        content_len
    }

    /// Replaces `frame` by one frame of `content`.
    ///
    /// # Errors
    ///
    /// None: there is no compressor to call this on.
    pub const fn compress(&mut self, _content: &[u8], _frame: &mut Vec<u8>) -> Result<()> {
        match self.0 {}
    }
}

impl FrameDecompressor {
    /// A decompressor for any number of frames.
    ///
    /// # Errors
    ///
    /// [`Unsupported::Zstd`], always.
    pub const fn new() -> Result<Self> {
        unsupported()
    }

    /// Decodes all frames of `stored` into exactly `out`.
    ///
    /// # Errors
    ///
    /// None: there is no decompressor to call this on.
    pub const fn decode_into(&mut self, _stored: &[u8], _out: &mut [u8]) -> Result<()> {
        match self.0 {}
    }
}

/// Decodes all frames of `stored` into exactly `out`.
///
/// # Errors
///
/// [`Unsupported::Zstd`], always.
pub const fn decode_into(_stored: &[u8], _out: &mut [u8]) -> Result<()> {
    unsupported()
}
