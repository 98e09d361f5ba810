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

/// Reads into `buf` at `offset` from a source of `byte_len` bytes whose elements, of `width` bytes, are
/// made whole. `make` fills memory for some elements, which begin with the one of this number. An element
/// that lies in `buf` in part is made in memory of its own: readers ask for one only at the ends of their
/// pieces.
///
/// # Errors
///
/// Those of `make`; [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the source ends first.
pub fn read_whole<E: From<std::io::Error>>(
    byte_len: u64,
    width: usize,
    offset: u64,
    buf: &mut [u8],
    mut make: impl FnMut(u64, &mut [u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    end_of_read(byte_len, offset, buf)?;
    let wide = width as u64;
    let (mut number, mut skipped) = (offset.strict_div(wide), in_memory(offset.strict_rem(wide)));
    let mut rest = buf;
    while !rest.is_empty() {
        let whole = rest.len().strict_sub(rest.len().strict_rem(width));
        let len = if skipped == 0 && whole > 0 {
            make(number, rest.split_at_mut(whole).0)?;
            whole
        } else {
            let mut element = vec![0; width];
            make(number, &mut element)?;
            let part = element.split_at(skipped).1;
            rest.iter_mut().zip(part).for_each(|(byte, made)| *byte = *made);
            part.len().min(rest.len())
        };
        number = number.strict_add(len.div_ceil(width) as u64);
        rest = rest.split_at_mut(len).1;
        skipped = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Elements of three bytes, which are their number three times.
    fn read(offset: u64, len: usize) -> io::Result<(Vec<u8>, Vec<u64>)> {
        let (mut bytes, mut made) = (vec![0xff; len], Vec::new());
        read_whole(12, 3, offset, &mut bytes, |first, elements| {
            assert!(!elements.is_empty() && elements.len().is_multiple_of(3));
            for (number, element) in (first..).zip(elements.chunks_mut(3)) {
                element.fill(u8::try_from(number).map_err(io::Error::other)?);
                made.push(number);
            }
            Ok::<(), io::Error>(())
        })?;
        Ok((bytes, made))
    }

    #[test]
    fn elements_are_made_whole_and_once() {
        let all = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3];
        for start in 0..=12usize {
            for end in start..=12 {
                let (bytes, made) = read(start as u64, end.strict_sub(start)).unwrap();
                assert_eq!(Some(&bytes[..]), all.get(start..end), "{start}..{end}");
                let touched = (start as u64 / 3..(end as u64).div_ceil(3)).collect::<Vec<_>>();
                assert_eq!(made, if start == end { vec![] } else { touched }, "{start}..{end}");
            }
        }
        for (offset, len) in [(12, 1), (0, 13), (u64::MAX, 1)] {
            assert_eq!(read(offset, len).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
