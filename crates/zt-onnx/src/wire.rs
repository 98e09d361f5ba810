//! The wire format of Protocol Buffers, as ONNX uses it: fields with a number and a value, which is a
//! varint, 4 or 8 bytes, or bytes of a given length. A message is a value with such bytes.
//!
//! Values are not read unless they are needed, so a field of two gigabytes costs no more than its
//! length.

use zt::{Error, Result, Source, Span};

use crate::fault::OnnxFault;

/// Bytes that are read at a time: few after a jump, and more the longer a sequential read goes on.
///
/// Pays: not measured.
const NEAR: usize = 4 << 10;
const FAR: usize = 256 << 10;

/// Bytes of the longest varint: seven bits in each.
pub(super) const VARINT_MAX: u64 = 10;

/// The bytes of a file that were read last.
pub(super) struct Window<'s> {
    source: &'s dyn Source,
    bytes: Vec<u8>,
    /// The offset of the first byte.
    start: u64,
}

impl<'s> Window<'s> {
    pub(super) const fn new(source: &'s dyn Source) -> Self {
        Window { source, bytes: Vec::new(), start: 0 }
    }

    /// The bytes from `at` on, at least one, up to `end`, which is within the source.
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "`at` is within the source, and the window has at most FAR bytes"
    )]
    fn from(&mut self, at: u64, end: u64) -> Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if !held.contains(&at) {
            // A read that fails leaves no bytes.
            let mut bytes = std::mem::take(&mut self.bytes);
            let longer = if at == held.end { 2 * bytes.len() } else { 0 };
            let left = self.source.byte_len() - at;
            bytes.resize(left.min(longer.clamp(NEAR, FAR) as u64) as usize, 0);
            self.source.read_at(at, &mut bytes)?;
            (self.start, self.bytes) = (at, bytes);
        }
        let bytes = &self.bytes[(at - self.start) as usize..];
        let wanted = (end - at).min(bytes.len() as u64);
        Ok(&bytes[..wanted as usize])
    }

    /// The varint at `at`, which advances.
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`at` is below `end`, and a shift is below 64"
    )]
    pub(super) fn varint(&mut self, at: &mut u64, end: u64) -> Result<u64> {
        let start = *at;
        let fault = |fault: OnnxFault| Error::from(fault).with_offset(start);
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            if *at >= end {
                return Err(fault(OnnxFault::Ends));
            }
            let byte = self.from(*at, end)?[0];
            *at += 1;
            // The tenth byte has room for one bit; the others are dropped, as in every reader.
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(fault(OnnxFault::Varint))
    }

    /// Calls `each` with the bytes of `span`, piece by piece.
    fn pieces(&mut self, span: Span, mut each: impl FnMut(&[u8])) -> Result<()> {
        let mut at = span.offset();
        while at < span.end() {
            let bytes = self.from(at, span.end())?;
            each(bytes);
            at = at.strict_add(bytes.len() as u64);
        }
        Ok(())
    }

    fn bytes(&mut self, span: Span) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        self.pieces(span, |bytes| all.extend_from_slice(bytes))?;
        Ok(all)
    }

    pub(super) fn is(&mut self, span: Span, text: &str) -> Result<bool> {
        Ok(span.byte_len() == text.len() as u64 && self.bytes(span)? == text.as_bytes())
    }

    /// The number of varints that end in `span`.
    pub(super) fn varints(&mut self, span: Span) -> Result<u64> {
        let mut ends = 0u64;
        self.pieces(span, |bytes| {
            ends = ends.strict_add(bytes.iter().filter(|byte| **byte < 0x80).count() as u64);
        })?;
        Ok(ends)
    }

    /// Four or eight bytes as the lowest bytes of a little-endian number.
    pub(super) fn fixed(&mut self, span: Span) -> Result<[u8; 8]> {
        let mut number = [0; 8];
        let mut rest = number.iter_mut();
        self.pieces(span, |bytes| {
            bytes.iter().zip(rest.by_ref()).for_each(|(byte, to)| *to = *byte);
        })?;
        Ok(number)
    }

    /// A string of at most `limit` bytes. Errors call it `what`.
    pub(super) fn text(&mut self, span: Span, what: &'static str, limit: u64) -> Result<String> {
        let byte_len = span.byte_len();
        let fault = |fault: OnnxFault| Error::from(fault).with_span(span);
        if byte_len > limit {
            return Err(fault(OnnxFault::TooLong { what, byte_len, limit }));
        }
        String::from_utf8(self.bytes(span)?).map_err(|_| fault(OnnxFault::NotUtf8 { what }))
    }
}

/// The wire type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    Fixed32,
}

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) wire: Wire,
    /// The offset of its tag.
    pub(super) tag: u64,
    /// The value, without tag and length.
    pub(super) span: Span,
    /// The value of a varint.
    pub(super) varint: u64,
}

/// The remaining fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    at: u64,
    end: u64,
}

impl Fields {
    /// The fields of a message that lies within the source.
    pub(super) const fn of(message: Span) -> Self {
        Fields { at: message.offset(), end: message.end() }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.at
    }

    /// The next field; `None` at the end of the message. The fields after an invalid one cannot be
    /// found.
    #[expect(clippy::arithmetic_side_effects, reason = "a varint ends within the message")]
    pub(super) fn next(&mut self, window: &mut Window<'_>) -> Result<Option<Field>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let tag = self.at;
        let fault = |fault: OnnxFault| Error::from(fault).with_offset(tag);
        let key = window.varint(&mut self.at, self.end)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| fault(OnnxFault::Tag { key }))?;
        let mut varint = 0;
        let mut start = self.at;
        let (wire, byte_len) = match key & 7 {
            0 => {
                varint = window.varint(&mut self.at, self.end)?;
                (Wire::Varint, self.at - start)
            }
            1 => (Wire::Fixed64, 8),
            2 => {
                let byte_len = window.varint(&mut self.at, self.end)?;
                start = self.at;
                (Wire::Bytes, byte_len)
            }
            5 => (Wire::Fixed32, 4),
            // proto3 and ONNX have no groups.
            _ => return Err(fault(OnnxFault::Tag { key })),
        };
        let available = self.end - start;
        let span = Span::new(start, byte_len).filter(|_| byte_len <= available);
        let span = span.ok_or_else(|| fault(OnnxFault::Field { number, byte_len, available }))?;
        self.at = span.end();
        Ok(Some(Field { number, wire, tag, span, varint }))
    }
}

impl Field {
    /// The bytes of a field that must have this wire type.
    pub(super) fn bytes(&self) -> Result<Span> {
        self.expect(Wire::Bytes).map(|()| self.span)
    }

    /// The number of a field that must be a varint.
    pub(super) fn integer(&self) -> Result<i64> {
        self.expect(Wire::Varint).map(|()| self.varint.cast_signed())
    }

    pub(super) fn expect(&self, wire: Wire) -> Result<()> {
        if self.wire == wire {
            return Ok(());
        }
        let number = self.number;
        Err(Error::from(OnnxFault::WireType { number }).with_offset(self.tag))
    }
}
