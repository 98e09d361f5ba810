//! Memory for chunks, and compressors with their large tables, which workers use again.

use std::borrow::Cow;
use std::sync::Mutex;

use zt_container::LimitExceeded;
use zt_container::codec::{FRAME_CONTENT, FrameCompressor, SINGLE_FRAME_MAX};
use zt_formats::HuffmanEncoder;

use crate::cores::work::lock;
use crate::error::Result;

/// Bytes that may wait to be hashed. The next component's chain starts only when the previous one
/// is complete in memory, so two chains share this.
pub(crate) const BACKLOG: usize = 64 << 20;

/// Free memory and compressors, shared by the threads of one writer.
pub(crate) struct Tools {
    buffers: Mutex<Vec<Vec<u8>>>,
    compressors: Mutex<Vec<(Effort, FrameCompressor)>>,
    coders: Mutex<Vec<HuffmanEncoder>>,
    /// The largest number of each that is kept.
    kept: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// By zstd at that level.
    Level(i32),
    /// By the frequency of bytes only.
    EntropyOnly,
}

impl Effort {
    fn compressor(self) -> Result<FrameCompressor> {
        Ok(match self {
            Effort::Level(level) => FrameCompressor::new(level)?,
            Effort::EntropyOnly => FrameCompressor::entropy_only()?,
        })
    }
}

/// Smaller buffers are cheaper to allocate than to keep.
///
/// Pays: `zt convert --planes` of 75 MB takes 0.93 of the CPU time of keeping none, and `--zstd` 0.98. `--zstd` of
/// 100,000 tensors of 160 bytes takes 0.92 of the CPU time of keeping all.
const WORTH_KEEPING: usize = 64 << 10;

impl Tools {
    /// Keeps as much memory as the threads use and as may wait to be hashed. Fresh memory costs
    /// more, page by page, than writing it.
    pub(crate) fn new(threads: usize) -> Self {
        Tools {
            buffers: Mutex::default(),
            compressors: Mutex::default(),
            coders: Mutex::default(),
            kept: threads.saturating_mul(8).saturating_add(BACKLOG / FRAME_CONTENT),
        }
    }

    pub(crate) fn buffer(&self, capacity: usize) -> Result<Vec<u8>> {
        let mut buffer = self.used_buffer(capacity)?;
        buffer.clear();
        Ok(buffer)
    }

    /// As [`Tools::buffer`], with old bytes in it, as many as possible. Zeros would be written for nothing.
    ///
    /// Larger buffers come in two sizes, so that they fit again later. Their unused pages cost no
    /// memory.
    pub(crate) fn used_buffer(&self, capacity: usize) -> Result<Vec<u8>> {
        let sizes = [FRAME_CONTENT, SINGLE_FRAME_MAX].map(FrameCompressor::bound);
        let mut capacity = capacity;
        if capacity >= WORTH_KEEPING {
            let size = sizes.into_iter().find(|size| *size >= capacity);
            capacity = size.unwrap_or(capacity);
            let mut buffers = lock(&self.buffers);
            let fitting = buffers.iter().enumerate();
            let fitting = fitting.filter(|(_, buffer)| buffer.capacity() == capacity);
            if let Some((at, _)) = fitting.max_by_key(|(_, buffer)| buffer.len()) {
                return Ok(buffers.swap_remove(at));
            }
        }
        let mut buffer = Vec::new();
        let reserved = buffer.try_reserve_exact(capacity);
        reserved.map_err(|_| no_memory(capacity))?;
        Ok(buffer)
    }

    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        if buffer.capacity() < WORTH_KEEPING {
            return;
        }
        let mut buffers = lock(&self.buffers);
        if buffers.len() < self.kept {
            buffers.push(buffer);
        }
    }

    /// As [`Tools::give_back`], for memory that may be lent by the caller.
    pub(crate) fn take_back(&self, content: Cow<'_, [u8]>) {
        if let Cow::Owned(buffer) = content {
            self.give_back(buffer);
        }
    }

    pub(crate) fn compress(&self, effort: Effort, content: &[u8]) -> Result<Vec<u8>> {
        let mut frame = self.buffer(FrameCompressor::bound(content.len()))?;
        let mut compressor = self.compressor(effort)?;
        compressor.compress(content, &mut frame)?;
        let mut compressors = lock(&self.compressors);
        if compressors.len() < self.kept {
            compressors.push((effort, compressor));
        }
        Ok(frame)
    }

    /// The chunk of these symbols.
    pub(crate) fn code(&self, symbols: &[u8]) -> Result<Vec<u8>> {
        let mut chunk = self.buffer(symbols.len().strict_add(1))?;
        let coder = lock(&self.coders).pop();
        let mut coder = coder.map_or_else(HuffmanEncoder::new, Ok)?;
        coder.encode(symbols, &mut chunk);
        lock(&self.coders).push(coder);
        Ok(chunk)
    }

    fn compressor(&self, effort: Effort) -> Result<FrameCompressor> {
        let mut compressors = lock(&self.compressors);
        let found = compressors.iter().position(|(of, _)| *of == effort);
        match found {
            Some(at) => Ok(compressors.swap_remove(at).1),
            None => {
                drop(compressors);
                effort.compressor()
            }
        }
    }
}

fn no_memory(byte_len: usize) -> zt_container::Error {
    let byte_len = byte_len as u64;
    zt_container::Error::Limit(LimitExceeded::Allocation { byte_len })
}
