//! Bytes in memory: borrowed, or owned and aligned for every element type.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::base::error::{Error, Result};

/// Owned bytes at an address that is a multiple of 8, so that slices of every element type can
/// borrow them.
///
/// A buffer does not grow: the length of a component is known before its bytes are read. With the
/// feature `huge-pages`, large buffers ask the system for large pages. Page faults limit how fast
/// fresh memory is filled, and large pages have 512 times fewer.
#[derive(Default)]
pub struct Buffer {
    memory: Memory,
    /// At most the length of `memory`.
    byte_len: usize,
}

enum Memory {
    Words(Box<[Word]>),
    /// A vector at a multiple of 8.
    Bytes(Vec<u8>),
    #[cfg(feature = "huge-pages")]
    Pages(memmap2::MmapMut),
    /// Memory that several buffers share, from this offset on, a multiple of 8.
    Part(Arc<Memory>, usize),
}

/// Eight bytes at a multiple of 8, which a `u64` is not on every system of 32 bits.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(8))]
struct Word([u8; 8]);

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Words(words) => bytemuck::cast_slice(words),
            Memory::Bytes(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Memory::Pages(pages) => pages,
            Memory::Part(memory, start) => memory.bytes().get(*start..).unwrap_or_default(),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::Words(Box::default())
    }
}

/// The least length for which large pages, of 2 MiB each, are worth it.
///
/// Pays: nothing for `zt convert` from and to planes, and `zt verify` of zstd. The library, which gives such memory
/// to its caller, is not measured.
#[cfg(feature = "huge-pages")]
const LARGE: usize = 8 << 20;

impl Buffer {
    /// `byte_len` zeros. Large buffers are untouched pages of the system, which cost nothing until
    /// they are written.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is no memory: a length in a file must not end the process.
    pub fn try_zeroed(byte_len: u64) -> Result<Self> {
        let refused = Error::Allocation { byte_len };
        let Ok(byte_len) = usize::try_from(byte_len) else {
            return Err(refused);
        };
        #[cfg(feature = "huge-pages")]
        if byte_len >= LARGE {
            let Ok(pages) = memmap2::MmapMut::map_anon(byte_len) else {
                return Err(refused);
            };
            // A system that ignores the advice gives small pages, which work as well.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage);
            let memory = Memory::Pages(pages);
            return Ok(Buffer { memory, byte_len });
        }
        let words = bytemuck::allocation::try_zeroed_slice_box(byte_len.div_ceil(8));
        let memory = Memory::Words(words.map_err(|()| refused)?);
        Ok(Buffer { memory, byte_len })
    }

    /// Zeros for `count` values of `value_len` bytes each.
    ///
    /// # Errors
    ///
    /// As [`Buffer::try_zeroed`]; also if the size is 2^64 or more.
    pub fn try_zeroed_values(count: u64, value_len: u64) -> Result<Self> {
        // No memory has 2^64 bytes.
        Buffer::try_zeroed(count.saturating_mul(value_len))
    }

    /// A copy of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`], as [`Buffer::try_zeroed`].
    pub fn try_from_slice(bytes: &[u8]) -> Result<Self> {
        let mut buffer = Buffer::try_zeroed(bytes.len() as u64)?;
        buffer.copy_from_slice(bytes);
        Ok(buffer)
    }

    /// Several buffers of these lengths, in order, each at the next multiple of [`Buffer::APART`].
    ///
    /// Nothing is copied: the memory is freed with the last part. A part is copied before it is
    /// written. Parts beyond the end of this buffer are short or empty.
    pub fn into_parts(
        self,
        byte_lens: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = Buffer> {
        let (memory, end) = (Arc::new(self.memory), self.byte_len);
        let mut at = 0usize;
        let part = move |byte_len: usize| {
            let start = at.min(end);
            let len = byte_len.min(end.strict_sub(start));
            let next = byte_len.checked_next_multiple_of(Self::APART);
            at = next.and_then(|next| at.checked_add(next)).unwrap_or(end);
            Buffer { memory: Memory::Part(Arc::clone(&memory), start), byte_len: len }
        };
        byte_lens.map(part)
    }

    /// The alignment of parts in bytes: a cache line.
    pub const APART: usize = 64;

    /// A copy of bytes in memory. For a length that a file decides, use [`Buffer::try_from_slice`].
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        let words = vec![Word::zeroed(); bytes.len().div_ceil(8)].into();
        let mut buffer = Buffer { memory: Memory::Words(words), byte_len: bytes.len() };
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = self.memory.bytes();
        bytes.get(..self.byte_len).unwrap_or_default()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        if matches!(self.memory, Memory::Part(..)) {
            *self = Buffer::copied(self);
        }
        let bytes = match &mut self.memory {
            Memory::Words(words) => bytemuck::cast_slice_mut(words),
            Memory::Bytes(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Memory::Pages(pages) => pages,
            // It was copied just now.
            Memory::Part(..) => &mut [],
        };
        bytes.get_mut(..self.byte_len).unwrap_or_default()
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Buffer::copied(self)
    }
}

/// Keeps the vector's memory if it is at a multiple of 8, as allocators usually give it; else
/// copies.
impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        if !bytes.as_ptr().addr().is_multiple_of(8) {
            return Buffer::copied(&bytes);
        }
        Buffer { byte_len: bytes.len(), memory: Memory::Bytes(bytes) }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.byte_len)
    }
}

/// Bytes that are borrowed if they were in memory already, and owned if they were read, decoded or
/// computed.
#[derive(Clone)]
pub enum Bytes<'a> {
    /// Borrowed, at any alignment.
    Borrowed(&'a [u8]),
    /// Owned, aligned to 8.
    Owned(Buffer),
}

impl Bytes<'_> {
    /// The bytes, owned. Copies borrowed ones.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`] if there is no memory for the copy.
    pub fn into_owned(self) -> Result<Buffer> {
        match self {
            Bytes::Borrowed(bytes) => Buffer::try_from_slice(bytes),
            Bytes::Owned(buffer) => Ok(buffer),
        }
    }

    /// Whether the bytes are borrowed.
    pub const fn is_borrowed(&self) -> bool {
        matches!(self, Bytes::Borrowed(_))
    }
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(buffer) => buffer,
        }
    }
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Bytes::Borrowed(bytes)
    }
}

impl From<Buffer> for Bytes<'_> {
    fn from(buffer: Buffer) -> Self {
        Bytes::Owned(buffer)
    }
}

/// As [`Buffer::from`]: no copy if the vector's memory is at a multiple of 8.
///
/// ```
/// use zt_formats::{DType, Dense, Elements};
///
/// let bytes: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
/// let dense = Dense::from_elements([2], Elements::new(DType::F32, bytes))?;
/// assert_eq!(*dense.as_slice::<f32>()?, [1.5, 2.5]);
/// # Ok::<(), zt_formats::Error>(())
/// ```
impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::Owned(bytes.into())
    }
}

impl PartialEq for Bytes<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes<'_> {}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bytes::Borrowed(bytes) => write!(f, "Borrowed({} bytes)", bytes.len()),
            Bytes::Owned(buffer) => write!(f, "Owned({} bytes)", buffer.len()),
        }
    }
}

pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>> {
    let mut items = Vec::new();
    let byte_len = (len as u64).saturating_mul(size_of::<T>() as u64);
    let reserved = items.try_reserve_exact(len);
    reserved.map_err(|_| Error::Allocation { byte_len })?;
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_exist_is_an_error() {
        let refused = |byte_len| Error::Allocation { byte_len };
        let len = usize::MAX / 8;
        assert_eq!(reserved::<u64>(len), Err(refused(len as u64 * 8)));
        for byte_len in [u64::MAX, u64::MAX / 2, 1 << 62] {
            assert_eq!(Buffer::try_zeroed(byte_len), Err(refused(byte_len)));
        }
    }
}
