//! The names of `frame.rs` without the feature `zstd`: every call is [`Unsupported::Zstd`]. Its types
//! cannot be made, so no method of a value is ever called.
#![expect(missing_docs, reason = "documented in `frame.rs`")]

use crate::error::{Error, Result, Unsupported};

#[derive(Debug)]
pub struct FrameCompressor(Absent);

#[derive(Debug)]
pub struct FrameDecompressor(Absent);

/// Has no values.
#[derive(Debug)]
enum Absent {}

const fn unsupported<T>() -> Result<T> {
    Err(Error::Unsupported(Unsupported::Zstd))
}

impl FrameCompressor {
    pub const fn new(_level: i32) -> Result<Self> {
        unsupported()
    }

    pub const fn entropy_only() -> Result<Self> {
        unsupported()
    }

    pub const fn bound(content_len: usize) -> usize {
        content_len
    }

    pub const fn compress(&mut self, _content: &[u8], _frame: &mut Vec<u8>) -> Result<()> {
        match self.0 {}
    }
}

impl FrameDecompressor {
    pub const fn new() -> Result<Self> {
        unsupported()
    }

    pub const fn decode_into(&mut self, _stored: &[u8], _out: &mut [u8]) -> Result<()> {
        match self.0 {}
    }
}

pub const fn decode_into(_stored: &[u8], _out: &mut [u8]) -> Result<()> {
    unsupported()
}
