//! The components of an object, read in parts.

use std::borrow::Cow;
use std::ops::Range;

use zt_manifest::{DType, Text};

use crate::base::buffer::Buffer;
use crate::base::elements::Elements;
use crate::base::error::{Error, Result};
use crate::base::format::ObjectFormat;
use crate::base::parts::Parts;
use crate::base::registry::Registry;
use crate::base::shape::element_count;
use crate::base::signature::Signature;

/// A reader of the components of one object, which a format asks for the parts that it needs.
///
/// Bytes are decoded and little-endian. Positions count decoded bytes from the start of a
/// component. [`Parts::reader`] reads from memory; the crate `zt` has readers of files.
pub trait ReadParts<'a> {
    /// The metadata of the object.
    fn signature(&self) -> Signature<'a>;

    /// The known formats and logical types.
    fn registry(&self) -> &'a Registry;

    /// The decoded length of the component `role` in bytes.
    ///
    /// # Errors
    ///
    /// As [`ReadParts::copy`].
    fn byte_len(&mut self, role: &str) -> Result<u64>;

    /// Fills `out` with the bytes of the component `role` that begin at position `at`.
    ///
    /// # Errors
    ///
    /// [`Error::Unread`] if the component is missing, cannot be read, or is too short. The reader
    /// keeps the cause for its owner; a format returns the error.
    fn copy(&mut self, role: &str, at: u64, out: &mut [u8]) -> Result<()>;

    /// The elements of the component `role` in a range of its bytes; borrowed if they are in
    /// memory.
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
            // Layout 1.0 does not give the dtype of every role: those are bytes.
            dtype: component.dtype.unwrap_or(DType::U8),
            logical_type: component.logical_type.map(|name| name.to_owned().into()),
            bytes: buffer.into(),
        })
    }
}

struct InMemory<'a> {
    parts: &'a Parts<'a>,
    registry: &'a Registry,
}

impl Parts<'_> {
    /// A reader of these parts, whose elements are borrowed.
    pub fn reader<'r>(&'r self, registry: &'r Registry) -> impl ReadParts<'r> + use<'r> {
        InMemory { parts: self, registry }
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
        let part = self.bytes(role, bytes)?;
        Ok(self.of(role)?.of_same_type(part))
    }
}

/// See [`ObjectFormat::rows`].
pub(crate) fn rows<'a>(
    format: &(impl ObjectFormat + ?Sized),
    rows: Range<u64>,
    reader: &mut dyn ReadParts<'a>,
) -> Result<Option<Parts<'a>>> {
    let (whole, registry) = (reader.signature(), reader.registry());
    let mut shape = match element_count(whole.shape) {
        Some(count) if format.is_flat() => vec![count],
        _ => whole.shape.to_vec(),
    };
    let unit = format.row_unit(&Signature { shape: &shape, ..whole.clone() }, registry);
    let mut byte_len = |role: &str, rows: u64| {
        *shape.first_mut()? = rows;
        let mut up_to = whole.clone();
        up_to.shape = &shape;
        format.expected_len(role, &up_to, registry)
    };
    let mut elements = Vec::new();
    let roles = whole.components.iter().map(|component| component.role);
    for role in roles.filter(|role| format.is_of_value(role, &whole)) {
        let mut cut = (byte_len(role, rows.start), byte_len(role, rows.end));
        if cut.0.is_none()
            && let Some(unit) = unit
            && let Some(ends) = format.unit_ends(role, reader)?
        {
            cut = (end_of(&ends, unit, rows.start), end_of(&ends, unit, rows.end));
        }
        let (Some(start), Some(end)) = cut else {
            return Ok(None);
        };
        if start > end || end > reader.byte_len(role)? {
            return Ok(None);
        }
        let part = reader.elements(role, start..end)?;
        elements.push((Text::Owned(role.to_owned()), part));
    }
    if let Some(first) = shape.first_mut() {
        *first = rows.end.checked_sub(rows.start).ok_or(Error::Unread)?;
    }
    Ok(Some(Parts {
        shape: Cow::Owned(shape),
        attributes: Cow::Borrowed(whole.attributes),
        elements,
    }))
}

/// The end of the bytes of the first `rows` rows, by the ends of units of `unit` rows.
fn end_of(ends: &[u64], unit: u64, rows: u64) -> Option<u64> {
    let units = rows.checked_next_multiple_of(unit)?.checked_div(unit)?;
    let last = units.checked_sub(1).map(usize::try_from);
    last.map_or(Some(0), |last| ends.get(last.ok()?).copied())
}
