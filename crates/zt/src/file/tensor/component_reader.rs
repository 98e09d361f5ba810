//! The bytes of one component, in order and in bounded memory.

use zt_container::BlobReader;
use zt_manifest::DType;

use super::{Located, Tensor, to_little_endian};
use crate::cores::read_ahead::for_each_piece;
use crate::error::{Error, Result};

/// Yields the decoded little-endian bytes of one component in order. See [`Tensor::reader`].
#[derive(Debug)]
pub struct ComponentReader<'f> {
    tensor: Tensor<'f>,
    part: Located<'f>,
    blob: BlobReader<'f>,
    verify: bool,
}

impl<'f> ComponentReader<'f> {
    pub(super) const fn new(
        tensor: Tensor<'f>,
        part: Located<'f>,
        blob: BlobReader<'f>,
        verify: bool,
    ) -> Self {
        ComponentReader {
            tensor,
            part,
            blob,
            verify,
        }
    }

    /// Reads as many whole elements into `out` as fit, and returns the number of bytes; 0 at the end. The
    /// digest has been checked when the end is reported.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`]; [`crate::ErrorKind::Misuse`] where not one element fits.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let component = self.part.component;
        let out = whole_elements(out, component.dtype.map_or(1, DType::byte_len))?;
        let read = self.blob.read(out);
        let len = read.map_err(|error| self.tensor.blame(error, self.part))?;
        if len < out.len() && self.verify {
            self.tensor.set_verified(self.part);
        }
        to_little_endian(component, out.get_mut(..len).unwrap_or_default());
        Ok(len)
    }

    /// Calls `take` with all that is left, `piece_len` bytes at a time. If pieces have 256 KiB or
    /// more and the first is full, a thread reads the next ones while `take` runs. Digests have been
    /// checked when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// As [`ComponentReader::read`], after `take` has had every piece before; the error of `take`, which ends
    /// the loop. `E` may be [`Error`], [`std::io::Error`] or your own.
    pub fn for_each_piece<E: From<Error>>(
        &mut self,
        piece_len: usize,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for_each_piece(|piece| self.read(piece), piece_len, take)
    }
}

/// The part of `out` that whole elements of `width` bytes take, at least one.
pub(crate) fn whole_elements(out: &mut [u8], width: usize) -> Result<&mut [u8]> {
    let room = out.len() - out.len() % width;
    let out = out.get_mut(..room).unwrap_or_default();
    if out.is_empty() {
        let expected = width as u64;
        let misuse = zt_container::Misuse::Destination { expected, found: 0 };
        return Err(zt_container::Error::Misuse(misuse).into());
    }
    Ok(out)
}
