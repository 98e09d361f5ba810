//! The fields of one structure, one after the other.

use zt::{Error, Result};

use crate::violation::Violation;

/// Bytes of addresses and of lengths, as the superblock says. Spec: II.A, "Size of Offsets".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) offset: u8,
    pub(super) length: u8,
}

/// The bytes of a structure, and how far it has been read.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Where in the file the bytes begin.
    origin: u64,
    sizes: Sizes,
    /// The structure, for errors.
    what: &'static str,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8], origin: u64, sizes: Sizes, what: &'static str) -> Self {
        Cursor {
            bytes,
            at: 0,
            origin,
            sizes,
            what,
        }
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Where in the file the next byte is.
    pub(super) fn offset(&self) -> u64 {
        self.origin.saturating_add(self.at as u64)
    }

    /// Bytes that have been read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The violation, at the next byte.
    pub(super) fn error(&self, violation: Violation) -> Error {
        Error::from(violation).with_offset(self.offset())
    }

    /// A field of the structure that cannot have this value.
    pub(super) fn field(&self, what: &'static str, value: u64) -> Error {
        self.error(Violation::Field { what, value })
    }

    /// Refuses the first of some fields that is not sound: its name, and its value.
    pub(super) fn check_fields(&self, fields: &[(bool, &'static str, u64)]) -> Result<()> {
        match fields.iter().find(|(is_sound, ..)| !is_sound) {
            Some(&(_, what, value)) => Err(self.error(Violation::Field { what, value })),
            None => Ok(()),
        }
    }

    /// A version of the structure that this reader does not know.
    pub(super) fn version(&self, found: u8) -> Error {
        let what = self.what;
        self.error(Violation::Version { what, found })
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(bytes) => {
                self.at = self.at.saturating_add(len);
                Ok(bytes)
            }
            None => Err(self.error(Violation::Ends {
                what: self.what,
                needed: len as u64,
                available: self.remaining() as u64,
            })),
        }
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<()> {
        self.take(len).map(|_| ())
    }

    /// Whatever is left.
    pub(super) fn rest(&mut self) -> &'b [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    /// The next `len` bytes as a structure of their own.
    pub(super) fn part(&mut self, len: usize, what: &'static str) -> Result<Cursor<'b>> {
        let origin = self.offset();
        Ok(Cursor::new(self.take(len)?, origin, self.sizes, what))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?.first().copied().unwrap_or(0))
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(u16::try_from(self.uint(2)?).unwrap_or(0))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(u32::try_from(self.uint(4)?).unwrap_or(0))
    }

    /// A little-endian number of `len` bytes, 8 at most.
    pub(super) fn uint(&mut self, len: usize) -> Result<u64> {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.take(len)?) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(word))
    }

    /// A length, as wide as the superblock says.
    pub(super) fn length(&mut self) -> Result<u64> {
        self.uint(usize::from(self.sizes.length))
    }

    /// An address; `None` where it is undefined, which is written as all ones.
    pub(super) fn address(&mut self) -> Result<Option<u64>> {
        let bytes = self.take(usize::from(self.sizes.offset))?;
        if bytes.iter().all(|byte| *byte == u8::MAX) {
            return Ok(None);
        }
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(Some(u64::from_le_bytes(word)))
    }

    /// An address that has to be there.
    pub(super) fn defined_address(&mut self) -> Result<u64> {
        let at = self.offset();
        let what = "an address";
        let missing = || Error::from(Violation::Missing { what }).with_offset(at);
        self.address()?.ok_or_else(missing)
    }

    /// Bytes up to a zero, which is skipped.
    pub(super) fn c_string(&mut self) -> Result<&'b [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|byte| *byte == 0);
        let text = self.take(len.unwrap_or(usize::MAX))?;
        self.skip(1)?;
        Ok(text)
    }

    /// Skips to the next multiple of 8 from `start` on, counted like [`Cursor::position`].
    pub(super) fn align_8(&mut self, start: usize) -> Result<()> {
        let used = self.at.saturating_sub(start);
        self.skip(used.wrapping_neg() & 7)
    }
}

/// Bytes that a number up to `limit` takes: `H5VM_limit_enc_size`.
pub(super) fn encoded_len(limit: u64) -> usize {
    let bits = limit.checked_ilog2().unwrap_or(0);
    usize::try_from(bits / 8).unwrap_or(0).saturating_add(1)
}
