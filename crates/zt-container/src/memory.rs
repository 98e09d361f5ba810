//! Allocation that returns an error, instead of an abort, if the system has no memory.

use std::borrow::Cow;

use crate::error::{Error, LimitExceeded, Result};
use crate::source::Source;
use crate::span::Span;

/// The length or position of something in memory, as a `usize`.
///
/// # Panics
///
/// If it exceeds the address space, which nothing in memory does.
#[inline]
#[track_caller]
#[expect(clippy::expect_used, reason = "memory has no longer parts")]
pub fn in_memory(len: u64) -> usize {
    usize::try_from(len).expect("what is in memory fits the address space")
}

/// Resizes `values`, which are unspecified then: only growth costs time.
///
/// # Errors
///
/// [`LimitExceeded::Allocation`].
pub fn resize<T: Clone + Default>(values: &mut Vec<T>, len: u64) -> Result<()> {
    // Saturates beyond every memory.
    let byte_len = len.saturating_mul(size_of::<T>() as u64);
    let refused = || Error::Limit(LimitExceeded::Allocation { byte_len });
    let len = usize::try_from(len).map_err(|_| refused())?;
    if let Some(more) = len.checked_sub(values.len()) {
        values.try_reserve_exact(more).map_err(|_| refused())?;
    }
    values.resize(len, T::default());
    Ok(())
}

/// `len` zeros. The caller has compared `len` with the length of the file.
///
/// # Errors
///
/// [`LimitExceeded::Allocation`].
pub fn zeroed<T: Clone + Default>(len: u64) -> Result<Vec<T>> {
    let mut values = Vec::new();
    resize(&mut values, len)?;
    Ok(values)
}

/// The stored bytes of `span`, read into `buffer`, which is resized to their length.
///
/// # Errors
///
/// [`Error::Io`] if the source ends first; [`LimitExceeded::Allocation`].
pub fn fetch<'b>(
    buffer: &'b mut Vec<u8>,
    source: &(impl Source + ?Sized),
    span: Span,
) -> Result<&'b [u8]> {
    // No memory is reserved for bytes that the source does not have.
    if span.end() > source.byte_len() {
        return Err(Error::Io(std::io::ErrorKind::UnexpectedEof.into()));
    }
    resize(buffer, span.byte_len())?;
    source.read_at(span.offset(), buffer)?;
    Ok(buffer)
}

/// The stored bytes of `span`: borrowed if the source lends them, otherwise read into new memory.
///
/// # Errors
///
/// As [`fetch`].
pub fn bytes_of<'a>(source: &'a (impl Source + ?Sized), span: Span) -> Result<Cow<'a, [u8]>> {
    if let Some(bytes) = source.slice(span) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut bytes = Vec::new();
    fetch(&mut bytes, source, span)?;
    Ok(Cow::Owned(bytes))
}

/// The end of a read into `buf` at `offset`, which lies within a source of `byte_len` bytes.
///
/// # Errors
///
/// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the source ends first.
pub fn end_of_read(byte_len: u64, offset: u64, buf: &[u8]) -> std::io::Result<u64> {
    let end = offset.checked_add(buf.len() as u64);
    let end = end.filter(|end| *end <= byte_len);
    end.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}
