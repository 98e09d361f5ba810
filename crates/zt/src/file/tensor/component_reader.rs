//! The bytes of one component, in order and in bounded memory.

use std::io::{self, Read};
use std::ops::Range;

use zt_container::BlobReader;
use zt_manifest::DType;

use super::{Located, Tensor, to_little_endian};
use crate::cores::read_ahead::for_each_piece;
use crate::error::{Error, Result};

/// Yields the decoded little-endian bytes of one component in order. See [`Tensor::reader`].
///
/// It is a [`Read`]: `read` fills memory with whole elements, as many as fit. An element that does not
/// fit into the memory comes in parts. At the end, `read` returns 0 once the digest was found right.
///
/// An error of `read` carries the [`Error`]: `zt::Error::from` gets it back, and `?` does so in a
/// function that returns [`crate::Result`].
///
/// ```
/// # use zt::{Dense, File, Writer};
/// # let mut bytes = Vec::new();
/// # let mut writer = Writer::new(&mut bytes)?;
/// # writer.add("bias", &Dense::from_slice(&[2], &[0.5f32, 1.0])?)?;
/// # writer.finish()?;
/// # let file = File::from_bytes(bytes)?;
/// let mut copy = Vec::new();
/// let copied = std::io::copy(&mut file.tensor("bias")?.reader("data")?, &mut copy)?;
/// assert_eq!((copied, &copy[..4]), (8, &0.5f32.to_le_bytes()[..]));
/// # Ok::<(), zt::Error>(())
/// ```
#[derive(Debug)]
pub struct ComponentReader<'f> {
    tensor: Tensor<'f>,
    part: Located<'f>,
    blob: BlobReader<'f>,
    verify: bool,
    split: SplitElement,
}

impl<'f> ComponentReader<'f> {
    pub(super) fn new(
        tensor: Tensor<'f>,
        part: Located<'f>,
        blob: BlobReader<'f>,
        verify: bool,
    ) -> Self {
        ComponentReader { tensor, part, blob, verify, split: SplitElement::default() }
    }

    pub(crate) fn element_len(&self) -> usize {
        self.part.component.dtype.map_or(1, DType::byte_len)
    }

    /// Reads as many whole elements into `out` as fit, and returns the number of bytes; 0 at the end. The
    /// digest has been checked when the end is reported.
    /// Where not one element fits, it fails as [`crate::ErrorKind::Misuse`].
    pub(crate) fn read_elements(&mut self, out: &mut [u8]) -> Result<usize> {
        let component = self.part.component;
        let out = whole_elements(out, self.element_len())?;
        let read = self.blob.read(out);
        let is_compared = self.verify && read.as_ref().is_ok_and(|len| *len < out.len());
        let len = self.tensor.verified(self.part, is_compared, || Ok(read?))?;
        to_little_endian(component, out.get_mut(..len).unwrap_or_default());
        Ok(len)
    }

    /// Calls `take` with all that is left, `piece_len` bytes at a time. If pieces have more than 256 KiB
    /// and the first is full, a thread reads the next ones while `take` runs. Digests have been
    /// checked when this returns `Ok`.
    ///
    /// # Errors
    ///
    /// As [`Tensor::bytes`], after `take` has had every piece before; [`crate::ErrorKind::Misuse`] where
    /// a piece has no room for an element; the error of `take`, which ends the loop. `E` may be
    /// [`Error`], [`std::io::Error`] or your own.
    pub fn for_each_piece<E: From<Error>>(
        &mut self,
        piece_len: usize,
        take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut split = std::mem::take(&mut self.split);
        let read = |piece: &mut [u8]| split.read(piece, |piece| self.read_elements(piece));
        for_each_piece(read, piece_len, take)
    }
}

impl Read for ComponentReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut split = std::mem::take(&mut self.split);
        let width = self.element_len();
        let read = split.read_bytes(out, width, |elements| self.read_elements(elements));
        self.split = split;
        Ok(read?)
    }
}

/// The rest of an element that was longer than the memory for it.
#[derive(Debug, Default)]
pub(crate) struct SplitElement {
    element: [u8; 8],
    /// What has yet to be read.
    rest: Range<usize>,
}

impl SplitElement {
    /// The rest of the element, or what `read` gives.
    pub(crate) fn read(
        &mut self,
        out: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        let rest = self.element.get(self.rest.clone()).unwrap_or_default();
        if rest.is_empty() {
            return read(out);
        }
        let len = copy_some(rest, out);
        self.rest.start = self.rest.start.strict_add(len);
        Ok(len)
    }

    /// The same for memory of any length. `read` gets room for an element of `width` bytes.
    pub(crate) fn read_bytes(
        &mut self,
        out: &mut [u8],
        width: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if out.len() >= width || !self.rest.is_empty() {
            return self.read(out, read);
        }
        let element = self.element.get_mut(..width).unwrap_or_default();
        self.rest = 0..read(element)?;
        self.read(out, |_| Ok(0))
    }
}

/// Copies as many bytes as fit, and returns their number.
pub(crate) fn copy_some(bytes: &[u8], out: &mut [u8]) -> usize {
    let len = bytes.len().min(out.len());
    let (bytes, out) = (bytes.get(..len), out.get_mut(..len));
    out.unwrap_or_default().copy_from_slice(bytes.unwrap_or_default());
    len
}

/// The part of `out` that whole elements of `width` bytes take, at least one.
pub(crate) fn whole_elements(out: &mut [u8], width: usize) -> Result<&mut [u8]> {
    let room = out.len().strict_sub(out.len().strict_rem(width));
    let out = out.get_mut(..room).unwrap_or_default();
    if out.is_empty() {
        let expected = width as u64;
        let misuse = zt_container::Misuse::Destination { expected, found: 0 };
        return Err(zt_container::Error::Misuse(misuse).into());
    }
    Ok(out)
}
