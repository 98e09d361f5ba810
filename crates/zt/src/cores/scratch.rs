//! Memory that work on pieces uses again and again.

use std::sync::{Mutex, PoisonError};

use zt_container::codec::FrameDecompressor;
use zt_container::{Error, LimitExceeded, Result, Source, Span};

/// What one piece takes: its stored bytes, its content, and a decoder's tables.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) stored: Vec<u8>,
    pub(crate) content: Vec<u8>,
    pub(crate) decompressor: Option<FrameDecompressor>,
}

impl Scratch {
    /// Decodes frames into `content`, which has `byte_len` bytes then.
    pub(crate) fn decode_here(&mut self, stored: &[u8], byte_len: u64) -> Result<()> {
        resize(&mut self.content, byte_len)?;
        decompressor(&mut self.decompressor)?.decode_into(stored, &mut self.content)
    }
}

/// The decoder in `slot`, made if there is none yet.
pub(crate) fn decompressor(slot: &mut Option<FrameDecompressor>) -> Result<&mut FrameDecompressor> {
    let decompressor = match slot.take() {
        Some(decompressor) => decompressor,
        None => FrameDecompressor::new()?,
    };
    Ok(slot.insert(decompressor))
}

/// The bytes of `span` in `buffer`.
pub(crate) fn fetch<'b>(
    buffer: &'b mut Vec<u8>,
    source: &dyn Source,
    span: Span,
) -> Result<&'b [u8]> {
    // Nothing is reserved for bytes that the source does not have.
    if span.end() > source.byte_len() {
        return Err(Error::Io(std::io::ErrorKind::UnexpectedEof.into()));
    }
    resize(buffer, span.byte_len())?;
    source.read_at(span.offset(), buffer)?;
    Ok(buffer)
}

/// Gives `bytes` this length. What they are is unspecified: only growth is paid for.
pub(crate) fn resize(bytes: &mut Vec<u8>, byte_len: u64) -> Result<()> {
    let refused = || Error::Limit(LimitExceeded::Allocation { byte_len });
    let len = usize::try_from(byte_len).map_err(|_| refused())?;
    if let Some(more) = len.checked_sub(bytes.len()) {
        bytes.try_reserve_exact(more).map_err(|_| refused())?;
    }
    bytes.resize(len, 0);
    Ok(())
}

/// So many zeros.
pub(crate) fn zeroed(len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    resize(&mut bytes, len as u64)?;
    Ok(bytes)
}

/// Longer memory is given back at once: what pieces of usual length take is less.
const KEPT: usize = 4 << 20;

/// Scratch memory for as many pieces as are worked on at a time.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    /// Lends some to `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> R {
        let mut scratch = self.take();
        let result = work(&mut scratch);
        self.give(scratch);
        result
    }

    pub(crate) fn take(&self) -> Scratch {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, scratch: Scratch) {
        if scratch.stored.capacity().max(scratch.content.capacity()) > KEPT {
            return;
        }
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(scratch);
    }
}
