//! A position in CBOR bytes, and the only decoder of heads.

use std::borrow::Cow;

use super::MAX_KEY_LEN;
use super::float::{widen_half, widen_single};
use crate::error::{Error, LimitExceeded, Rule, abridged};

/// The head of a data item: its type, and its value or length. The bytes of a string and the items within
/// an array, a map or a tag follow it. A length of `None` is an indefinite one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Head {
    Unsigned(u64),
    Negative(u64),
    Bytes(Option<usize>),
    Text(Option<usize>),
    Array(Option<usize>),
    Map(Option<usize>),
    Tag(u64),
    Simple(u8),
    Float(f64),
    Break,
}

impl Head {
    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Head::Text(_))
    }

    pub(crate) const fn is_map(self) -> bool {
        matches!(self, Head::Map(_))
    }
}

/// An [`Error`] without its text. Boxed, because every step of the pass returns a `Result`: one of a
/// pointer's size makes the pass fast.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flaw(Box<Kind>);

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Cbor { at: usize, rule: Rule },
    Duplicate { at: usize },
    Nesting { at: usize, limit: usize },
    Key { at: usize },
    Allocation { byte_len: usize },
}

impl Flaw {
    #[cold]
    pub(crate) fn cbor(at: usize, rule: Rule) -> Self {
        Flaw(Box::new(Kind::Cbor { at, rule }))
    }

    #[cold]
    pub(crate) fn duplicate(at: usize) -> Self {
        Flaw(Box::new(Kind::Duplicate { at }))
    }

    #[cold]
    pub(crate) fn nesting(at: usize, limit: usize) -> Self {
        Flaw(Box::new(Kind::Nesting { at, limit }))
    }

    /// The key at `at` has parts and is longer than [`MAX_KEY_LEN`].
    #[cold]
    pub(crate) fn key(at: usize) -> Self {
        Flaw(Box::new(Kind::Key { at }))
    }

    #[cold]
    pub(crate) fn allocation<T>(len: usize) -> Self {
        // Saturates on purpose: the length of a failed allocation may exceed the address space.
        let byte_len = len.saturating_mul(size_of::<T>());
        Flaw(Box::new(Kind::Allocation { byte_len }))
    }

    /// The offset of the duplicate key, if that is the flaw.
    pub(crate) fn duplicate_at(&self) -> Option<usize> {
        match *self.0 {
            Kind::Duplicate { at } => Some(at),
            _ => None,
        }
    }

    /// The error, with the duplicate key's text from the manifest.
    #[cold]
    pub(crate) fn into_error(self, manifest: &[u8]) -> Error {
        match *self.0 {
            Kind::Cbor { at, rule } => Error::Cbor { offset: at as u64, rule },
            Kind::Duplicate { at } => {
                Error::DuplicateKey { offset: at as u64, key: text_at(manifest, at) }
            }
            Kind::Nesting { at, limit } => {
                Error::Limit(LimitExceeded::Nesting { offset: at as u64, limit })
            }
            Kind::Key { at } => {
                Error::Limit(LimitExceeded::Key { offset: at as u64, limit: MAX_KEY_LEN })
            }
            Kind::Allocation { byte_len } => Error::allocation(byte_len as u64),
        }
    }
}

/// The text at an offset, abridged for a message; empty if there is none.
pub(crate) fn text_at(manifest: &[u8], at: usize) -> String {
    match Cursor::at(manifest, at).text() {
        Ok(Some(text)) => abridged(&text),
        _ => String::new(),
    }
}

/// A position in `bytes`. To look ahead, copy it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    byte_len: usize,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Cursor { byte_len: bytes.len(), rest: bytes }
    }

    /// A cursor at `offset`; at the end if `bytes` are shorter.
    pub(crate) fn at(bytes: &'a [u8], offset: usize) -> Self {
        Cursor { byte_len: bytes.len(), rest: bytes.get(offset..).unwrap_or_default() }
    }

    /// Bytes before the cursor.
    #[expect(clippy::arithmetic_side_effects, reason = "`rest` is the end of `byte_len` bytes")]
    pub(crate) const fn offset(&self) -> usize {
        self.byte_len - self.rest.len()
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next head, without moving the cursor.
    pub(crate) fn peek_head(mut self) -> Result<Head, Flaw> {
        self.head()
    }

    /// Decodes the next head. A definite length is checked against the bytes that are left: a string's
    /// bytes, one byte for each item, two for each pair.
    ///
    /// Written by hand: with `ciborium_ll::Decoder::pull` the whole pass takes more than four times as long
    /// (46 ms instead of 10 for `examples/scan_speed`). It also does not distinguish `f8 17` from `f7`, and
    /// loses the signalling bit of a NaN.
    #[inline(always)]
    pub(crate) fn head(&mut self) -> Result<Head, Flaw> {
        let at = self.offset();
        let [initial] = self.take::<1>()?;
        let info = initial & 0x1F;
        let argument = match info {
            0..=23 => u64::from(info),
            24 => self.take().map(u8::from_be_bytes)?.into(),
            25 => self.take().map(u16::from_be_bytes)?.into(),
            26 => self.take().map(u32::from_be_bytes)?.into(),
            27 => self.take().map(u64::from_be_bytes)?,
            _ => return indefinite(at, initial),
        };
        match initial >> 5 {
            0 => Ok(Head::Unsigned(argument)),
            1 => Ok(Head::Negative(argument)),
            2 => Ok(Head::Bytes(Some(self.fits(at, argument, 1)?))),
            3 => Ok(Head::Text(Some(self.fits(at, argument, 1)?))),
            4 => Ok(Head::Array(Some(self.fits(at, argument, 1)?))),
            5 => Ok(Head::Map(Some(self.fits(at, argument, 2)?))),
            6 => Ok(Head::Tag(argument)),
            _ => simple(at, info, argument),
        }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, byte_len: usize) -> Result<&'a [u8], Flaw> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(byte_len)
            .ok_or_else(|| Flaw::cbor(self.offset(), Rule::Truncated))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// The length of the next chunk of a string; `None` at the break code. `text` is true for a text, and
    /// false for a byte string.
    pub(crate) fn chunk(&mut self, text: bool) -> Result<Option<usize>, Flaw> {
        let at = self.offset();
        match self.head()? {
            Head::Break => Ok(None),
            Head::Text(Some(byte_len)) if text => Ok(Some(byte_len)),
            Head::Bytes(Some(byte_len)) if !text => Ok(Some(byte_len)),
            _ => Err(Flaw::cbor(at, Rule::Chunk)),
        }
    }

    /// Whether an array or a map has another item. Counts a definite length down, and passes over the break
    /// code that ends an indefinite one.
    #[inline]
    pub(crate) fn more(&mut self, left: &mut Option<usize>) -> bool {
        match left {
            Some(left) => match left.checked_sub(1) {
                Some(less) => {
                    *left = less;
                    true
                }
                None => false,
            },
            None => match self.rest.split_first() {
                Some((0xFF, rest)) => {
                    self.rest = rest;
                    false
                }
                // At the end of the bytes, the next head returns the error.
                _ => true,
            },
        }
    }

    /// The text of the next item, its chunks joined. Borrowed unless there are several chunks. `None`, and
    /// the cursor stays, if the item is not a text.
    pub(crate) fn text(&mut self) -> Result<Option<Cow<'a, str>>, Flaw> {
        let mut ahead = *self;
        let text = match ahead.head()? {
            Head::Text(Some(byte_len)) => Cow::Borrowed(ahead.utf8(byte_len)?),
            Head::Text(None) => {
                let mut joined = String::new();
                while let Some(byte_len) = ahead.chunk(true)? {
                    let chunk = ahead.utf8(byte_len)?;
                    let reserved = joined.try_reserve(byte_len);
                    reserved.map_err(|_| Flaw::allocation::<u8>(byte_len))?;
                    joined.push_str(chunk);
                }
                Cow::Owned(joined)
            }
            _ => return Ok(None),
        };
        *self = ahead;
        Ok(Some(text))
    }

    /// The next `byte_len` bytes, which must be UTF-8.
    #[inline]
    pub(crate) fn utf8(&mut self, byte_len: usize) -> Result<&'a str, Flaw> {
        let at = self.offset();
        let bytes = self.bytes(byte_len)?;
        std::str::from_utf8(bytes).map_err(|error| not_utf8(at, error))
    }

    /// As [`Cursor::utf8`], as bytes, and faster for short ASCII texts, which most texts in a manifest are.
    #[inline]
    pub(crate) fn utf8_bytes(&mut self, byte_len: usize) -> Result<&'a [u8], Flaw> {
        let at = self.offset();
        let bytes = self.bytes(byte_len)?;
        if !bytes.is_ascii() {
            std::str::from_utf8(bytes).map_err(|error| not_utf8(at, error))?;
        }
        Ok(bytes)
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(Flaw::cbor(self.byte_len, Rule::Truncated)),
        }
    }

    /// A declared length, checked against the bytes that are left: each part takes at least `unit` bytes.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`unit` is 1 or 2")]
    fn fits(&self, at: usize, declared: u64, unit: usize) -> Result<usize, Flaw> {
        let available = self.rest.len() / unit;
        match usize::try_from(declared) {
            Ok(declared) if declared <= available => Ok(declared),
            _ => Err(Flaw::cbor(at, Rule::Length { declared, available: available as u64 })),
        }
    }
}

#[cold]
fn not_utf8(at: usize, error: std::str::Utf8Error) -> Flaw {
    Flaw::cbor(at.strict_add(error.valid_up_to()), Rule::Utf8)
}

/// Additional information 28 to 31: an item of indefinite length, a break code, or a reserved number.
fn indefinite(at: usize, initial: u8) -> Result<Head, Flaw> {
    match initial {
        0x5F => Ok(Head::Bytes(None)),
        0x7F => Ok(Head::Text(None)),
        0x9F => Ok(Head::Array(None)),
        0xBF => Ok(Head::Map(None)),
        0xFF => Ok(Head::Break),
        _ => Err(Flaw::cbor(at, Rule::Reserved(initial & 0x1F))),
    }
}

/// Major type 7: simple values and floats. Spec: RFC 8949 §3.3.
#[expect(clippy::expect_used, reason = "the head read 1, 2, 4 or 8 bytes for the argument")]
fn simple(at: usize, info: u8, argument: u64) -> Result<Head, Flaw> {
    let narrow = |bits: u64| u32::try_from(bits).expect("4 bytes at most were read");
    match info {
        25 => Ok(Head::Float(widen_half(narrow(argument)))),
        26 => Ok(Head::Float(widen_single(narrow(argument)))),
        27 => Ok(Head::Float(f64::from_bits(argument))),
        _ => match u8::try_from(argument).expect("1 byte at most was read") {
            value if info == 24 && value < 32 => Err(Flaw::cbor(at, Rule::Simple(value))),
            value => Ok(Head::Simple(value)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Flaw, Head};
    use crate::error::{Error, Rule};

    fn rule(flaw: Flaw) -> Rule {
        match flaw.into_error(&[]) {
            Error::Cbor { rule, .. } => rule,
            other => panic!("{other}"),
        }
    }

    fn head(bytes: &[u8]) -> Result<Head, Flaw> {
        Cursor::new(bytes).head()
    }

    #[test]
    fn agrees_with_ciborium_on_every_head_of_three_bytes() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                for third in [0, 1, 0x7E, 0xFF] {
                    let bytes = [first, second, third, 0, 0, 0, 0, 0, 0];
                    let theirs = ciborium_ll::Decoder::from(&bytes[..]).pull();
                    agree(&bytes, head(&bytes), theirs.ok());
                }
            }
        }
    }

    /// We accept the same heads as ciborium, except lengths beyond the bytes and `f8 00..1f`.
    fn agree(bytes: &[u8], ours: Result<Head, Flaw>, theirs: Option<ciborium_ll::Header>) {
        use ciborium_ll::Header;
        let (ours, theirs) = match (ours, theirs) {
            (Ok(ours), Some(theirs)) => (ours, theirs),
            (Err(flaw), Some(Header::Simple(value))) => {
                assert_eq!(rule(flaw), Rule::Simple(value), "{bytes:x?}");
                return;
            }
            (Err(flaw), Some(_)) => {
                assert!(matches!(rule(flaw), Rule::Length { .. }), "{bytes:x?}");
                return;
            }
            (ours, None) => {
                assert!(ours.is_err(), "{bytes:x?}");
                return;
            }
        };
        let same = match (ours, theirs) {
            (Head::Unsigned(a), Header::Positive(b))
            | (Head::Negative(a), Header::Negative(b))
            | (Head::Tag(a), Header::Tag(b)) => a == b,
            (Head::Bytes(a), Header::Bytes(b))
            | (Head::Text(a), Header::Text(b))
            | (Head::Array(a), Header::Array(b))
            | (Head::Map(a), Header::Map(b)) => a == b,
            (Head::Simple(a), Header::Simple(b)) => a == b,
            (Head::Float(a), Header::Float(b)) => {
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
            }
            (Head::Break, Header::Break) => true,
            _ => false,
        };
        assert!(same, "{bytes:x?}: {ours:?}, expected {theirs:?}");
    }

    #[test]
    fn refuses_a_length_beyond_the_bytes_before_using_it() {
        for (bytes, declared, available) in [
            (&[0x63, b'a', b'b'][..], 3, 2),
            (&[0x9B, 255, 0, 0, 0, 0, 0, 0, 0], 255 << 56, 0),
            (&[0xA2, 0, 0, 0], 2, 1),
        ] {
            let length = Rule::Length { declared, available };
            assert_eq!(head(bytes), Err(Flaw::cbor(0, length)));
        }
        assert_eq!(head(&[0xA1, 0, 0]), Ok(Head::Map(Some(1))));
    }
}
