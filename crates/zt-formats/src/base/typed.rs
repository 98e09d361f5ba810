//! Elements as a slice of a Rust type.

use std::fmt;
use std::ops::Deref;

use crate::base::buffer::{Buffer, Bytes, reserved};
use crate::base::element::Element;
use crate::base::error::{FormatViolation, Result, SizeMismatch};

/// A slice of elements: borrowed if the bytes are aligned for `T` and the host is little-endian,
/// else a copy in the host's byte order.
///
/// Dereferences to `[T]`. A `Typed<bool>` holds only the bytes 0 and 1.
#[derive(Clone)]
pub struct Typed<'a, T>(Repr<'a, T>);

#[derive(Clone)]
enum Repr<'a, T> {
    Borrowed(&'a [T]),
    /// A whole number of elements in the host's order. Never bool, whose bytes every use would have
    /// to check again.
    Buffer(Buffer),
    Vec(Vec<T>),
}

impl<'a, T: Element> Typed<'a, T> {
    /// Little-endian `bytes` as elements.
    /// Malformed if the last element is not whole, or a bool is neither 0 nor 1.
    pub(crate) fn from_le_bytes(bytes: Bytes<'a>) -> Result<Self> {
        let value_len = size_of::<T>();
        if !bytes.len().is_multiple_of(value_len) {
            return Err(SizeMismatch::partial(bytes.len(), value_len as u64).of_object());
        }
        if T::DTYPE == zt_manifest::DType::Bool {
            check_bools(&bytes)?;
        }
        if cfg!(target_endian = "little")
            && let Bytes::Borrowed(lent) = bytes
            && let Some(elements) = T::view(lent)
        {
            return Ok(Typed(Repr::Borrowed(elements)));
        }
        let mut buffer = bytes.into_owned()?;
        to_le(&mut buffer, T::DTYPE.byte_len());
        if T::DTYPE == zt_manifest::DType::Bool {
            let mut elements = reserved(buffer.len())?;
            elements.extend_from_slice(T::view(&buffer).unwrap_or_default());
            return Ok(Typed(Repr::Vec(elements)));
        }
        Ok(Typed(Repr::Buffer(buffer)))
    }

    /// Whether the elements are borrowed and not a copy.
    pub const fn is_borrowed(&self) -> bool {
        matches!(self.0, Repr::Borrowed(_))
    }

    /// The elements as a vector. Copies, unless they were made from a vector.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Repr::Vec(elements) => elements,
            _ => self.to_vec(),
        }
    }

    /// As [`Typed::into_vec`], for a number of elements that a file decides.
    ///
    /// # Errors
    ///
    /// [`Allocation`](crate::base::error::Error::Allocation) if there is no memory for the copy.
    pub fn try_into_vec(self) -> Result<Vec<T>> {
        if let Repr::Vec(elements) = self.0 {
            return Ok(elements);
        }
        let mut elements = reserved(self.len())?;
        elements.extend_from_slice(&self);
        Ok(elements)
    }
}

#[cfg(feature = "ndarray")]
impl<'a, T: Element> Typed<'a, T> {
    /// The elements: borrowed, else as a vector.
    pub(crate) fn into_cow(self) -> Result<std::borrow::Cow<'a, [T]>> {
        match self.0 {
            Repr::Borrowed(elements) => Ok(elements.into()),
            _ => Ok(self.try_into_vec()?.into()),
        }
    }
}

impl<T: Element> Deref for Typed<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::Borrowed(elements) => elements,
            // Never `None`: a buffer is aligned to 8, enough for every element.
            Repr::Buffer(buffer) => T::view(buffer).unwrap_or_default(),
            Repr::Vec(elements) => elements,
        }
    }
}

impl<T: Element> AsRef<[T]> for Typed<'_, T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<'a, T> From<&'a [T]> for Typed<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        Typed(Repr::Borrowed(elements))
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Typed<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        Typed(Repr::Borrowed(elements))
    }
}

impl<'a, T> From<&'a Vec<T>> for Typed<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        Typed(Repr::Borrowed(elements))
    }
}

impl<T> From<Vec<T>> for Typed<'_, T> {
    fn from(elements: Vec<T>) -> Self {
        Typed(Repr::Vec(elements))
    }
}

impl<T: Element> PartialEq for Typed<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Element> fmt::Debug for Typed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Refuses bytes other than 0 and 1.
///
/// A Rust `bool` of another byte is undefined behaviour. If readers took any byte as true, two
/// files with equal values could differ.
///
/// # Errors
///
/// `bool-value`, with the position of the first such byte.
pub fn check_bools(bytes: &[u8]) -> Result<()> {
    check_bools_from(0, bytes)
}

/// As [`check_bools`], for bytes that begin at position `start` of their component.
///
/// # Errors
///
/// As [`check_bools`]; the position is counted from the start of the component.
pub fn check_bools_from(start: u64, bytes: &[u8]) -> Result<()> {
    // All bits of a block at once; the position is searched only if there is a fault.
    let faulty = |block: &&[u8]| block.iter().fold(0, |bits, byte| bits | byte) > 1;
    if !bytes.chunks(4096).any(|block| faulty(&block)) {
        return Ok(());
    }
    let fault = bytes.iter().zip(0u64..).find(|(byte, _)| **byte > 1);
    fault.map_or(Ok(()), |(&value, position)| {
        let position = start.strict_add(position);
        Err(FormatViolation::BoolValue { position, value }.of_object())
    })
}

/// Converts elements of `width` bytes between the host's order and little-endian, in place. A
/// complex value is two elements.
pub(crate) fn to_le(bytes: &mut [u8], width: usize) {
    if cfg!(target_endian = "big") && width > 1 {
        for element in bytes.chunks_exact_mut(width) {
            element.reverse();
        }
    }
}
