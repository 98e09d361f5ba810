//! The components of an object, read in parts.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::borrow::Cow;
use std::ops::Range;

use zt_manifest::{DType, Text};

use crate::base::buffer::Buffer;
use crate::base::elements::Elements;
use crate::base::error::{Error, Result};
use crate::base::format::ObjectFormat;
use crate::base::parts::Parts;
use crate::base::registry::Registry;
use crate::base::signature::Signature;

/// The components of one object, from which a format reads what it needs.
///
/// Bytes are decoded and little-endian, and positions count decoded bytes from the start of a
/// component. [`Parts::reader`] reads from memory; the crate `zt` reads from files.
pub trait ReadParts<'a> {
    /// The metadata of the object.
    fn signature(&self) -> Signature<'a>;

    /// The formats and logical types that are known.
    fn registry(&self) -> &'a Registry;

    /// The length of the component `role`.
    ///
    /// # Errors
    ///
    /// As [`ReadParts::copy`].
    fn byte_len(&mut self, role: &str) -> Result<u64>;

    /// Fills `out` with the bytes of the component `role` from `at` on.
    ///
    /// # Errors
    ///
    /// [`Error::Unread`] where the component is missing, cannot be read or ends before. The one who
    /// made the reader knows the cause; a format passes the error on.
    fn copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> Result<()>;

    /// The elements of the component `role` in a range of its bytes. They are borrowed where they
    /// are in memory.
    ///
    /// # Errors
    ///
    /// As [`ReadParts::copy`]; allocation.
    fn elements(&mut self, role: &str, bytes: Range<u64>) -> Result<Elements<'a>> {
        let byte_len = bytes.end.checked_sub(bytes.start).ok_or(Error::Unread)?;
        let mut buffer = Buffer::try_zeroed(byte_len)?;
        self.copy(role, bytes.start, &mut buffer)?;
        let signature = self.signature();
        let component = signature.get(role).ok_or(Error::Unread)?;
        Ok(Elements {
            // Files of 1.0 do not say the dtype of every role: those are bytes.
            dtype: component.dtype.unwrap_or(DType::U8),
            logical_type: component
                .logical_type
                .map(|name| Text::Owned(name.to_owned())),
            bytes: buffer.into(),
        })
    }
}

/// An object that is in memory.
struct InMemory<'a> {
    parts: &'a Parts<'a>,
    registry: &'a Registry,
}

impl Parts<'_> {
    /// Reads from these parts. Elements stay borrowed where they are.
    pub fn reader<'r>(&'r self, registry: &'r Registry) -> impl ReadParts<'r> + use<'r> {
        InMemory {
            parts: self,
            registry,
        }
    }
}

impl<'a> InMemory<'a> {
    fn of(&self, role: &str) -> Result<&'a Elements<'a>> {
        self.parts.get(role).ok_or(Error::Unread)
    }

    fn bytes(&self, role: &str, bytes: Range<u64>) -> Result<&'a [u8]> {
        let range = usize::try_from(bytes.start).ok();
        let range = range.zip(usize::try_from(bytes.end).ok());
        let found = range.and_then(|(start, end)| self.parts.get(role)?.bytes.get(start..end));
        found.ok_or(Error::Unread)
    }
}

impl<'a> ReadParts<'a> for InMemory<'a> {
    fn signature(&self) -> Signature<'a> {
        self.parts.signature()
    }

    fn registry(&self) -> &'a Registry {
        self.registry
    }

    fn byte_len(&mut self, role: &str) -> Result<u64> {
        Ok(self.of(role)?.bytes.len() as u64)
    }

    fn copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> Result<()> {
        let end = at.checked_add(out.len() as u64).ok_or(Error::Unread)?;
        out.copy_from_slice(self.bytes(role, at..end)?);
        Ok(())
    }

    fn elements(&mut self, role: &str, bytes: Range<u64>) -> Result<Elements<'a>> {
        let elements = self.of(role)?;
        Ok(Elements {
            dtype: elements.dtype,
            logical_type: elements.logical_type.clone(),
            bytes: self.bytes(role, bytes)?.into(),
        })
    }
}

/// See [`ObjectFormat::rows`].
pub(crate) fn rows<'a>(
    format: &(impl ObjectFormat + ?Sized),
    rows: Range<u64>,
    reader: &mut dyn ReadParts<'a>,
) -> Result<Option<Parts<'a>>> {
    let (whole, registry) = (reader.signature(), reader.registry());
    let mut shape = match format.is_flat() {
        true => vec![0],
        false => whole.shape.to_vec(),
    };
    let mut byte_len = |role: &str, rows: u64| {
        *shape.first_mut()? = rows;
        let up_to = Signature {
            shape: &shape,
            ..whole.clone()
        };
        format.expected_len(role, &up_to, registry)
    };
    let mut elements = Vec::new();
    let roles = whole.components.iter().map(|component| component.role);
    for role in roles.filter(|role| format.is_of_value(role, &whole)) {
        let (Some(start), Some(end)) = (byte_len(role, rows.start), byte_len(role, rows.end))
        else {
            return Ok(None);
        };
        if start > end || end > reader.byte_len(role)? {
            return Ok(None);
        }
        let role_of = Text::Owned(role.to_owned());
        elements.push((role_of, reader.elements(role, start..end)?));
    }
    if let Some(first) = shape.first_mut() {
        *first = rows.end.saturating_sub(rows.start);
    }
    Ok(Some(Parts {
        shape: Cow::Owned(shape),
        attributes: Cow::Borrowed(whole.attributes),
        elements,
    }))
}
