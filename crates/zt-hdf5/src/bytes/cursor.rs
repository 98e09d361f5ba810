//! Reads the fields of one structure in order.

use zt::{ByteOrder, Error, Result};

use crate::bytes::bits::number;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{Sizes, in_memory};

/// The bytes of a structure, and the position of the next field.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The offset of the bytes in the source.
    origin: u64,
    /// Those of the file, once the superblock's are known.
    pub(crate) sizes: Sizes,
    /// The name of the structure, for errors.
    what: &'static str,
}

impl<'b> Cursor<'b> {
    pub(crate) fn new(bytes: &'b [u8], origin: u64, sizes: Sizes, what: &'static str) -> Self {
        Cursor { bytes, at: 0, origin, sizes, what }
    }

    /// The offset of the next byte in the source.
    pub(crate) fn offset(&self) -> u64 {
        self.origin.strict_add(self.at as u64)
    }

    /// Bytes that have been read.
    pub(crate) fn position(&self) -> u64 {
        self.at as u64
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.left().len() as u64
    }

    /// The fault, at the next byte.
    pub(crate) fn error(&self, fault: Hdf5Fault) -> Error {
        Error::from(fault).with_offset(self.offset())
    }

    /// A field with an invalid value.
    pub(crate) fn field(&self, what: &'static str, value: u64) -> Error {
        self.error(Hdf5Fault::Field { what, value })
    }

    /// An unknown version of the structure.
    pub(crate) fn version(&self, found: u8) -> Error {
        let what = self.what;
        self.error(Hdf5Fault::Version { what, found })
    }

    fn left(&self) -> &'b [u8] {
        self.bytes.split_at(self.at).1
    }

    /// Reads the version of the structure, which must be `known`.
    pub(crate) fn expect_version(&mut self, known: u8) -> Result<()> {
        match self.u8()? {
            found if found == known => Ok(()),
            found => Err(self.version(found)),
        }
    }

    pub(crate) fn take(&mut self, len: u64) -> Result<&'b [u8]> {
        let wanted = in_memory(len).ok();
        match wanted.and_then(|len| self.left().split_at_checked(len)) {
            Some((bytes, rest)) => {
                self.at = self.bytes.len().strict_sub(rest.len());
                Ok(bytes)
            }
            None => Err(self.error(Hdf5Fault::Ends {
                what: self.what,
                needed: len,
                available: self.remaining(),
            })),
        }
    }

    pub(crate) fn skip(&mut self, len: u64) -> Result<()> {
        self.take(len).map(|_| ())
    }

    pub(crate) fn rest(&mut self) -> &'b [u8] {
        let rest = self.left();
        self.at = self.bytes.len();
        rest
    }

    /// The next `len` bytes as a structure of their own.
    pub(crate) fn part(&mut self, len: u64, what: &'static str) -> Result<Cursor<'b>> {
        let origin = self.offset();
        Ok(Cursor::new(self.take(len)?, origin, self.sizes, what))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64)?);
        Ok(bytes)
    }

    /// A little-endian number of `len` bytes, 8 at most.
    pub(crate) fn uint(&mut self, len: u64) -> Result<u64> {
        Ok(number(self.take(len)?, ByteOrder::Little))
    }

    /// A length, which is as wide as the superblock declares.
    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(self.sizes.length)
    }

    /// An address; `None` if it is undefined, which is written as all ones.
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let bytes = self.take(self.sizes.offset)?;
        let is_defined = bytes.iter().any(|byte| *byte != u8::MAX);
        Ok(is_defined.then(|| number(bytes, ByteOrder::Little)))
    }

    pub(crate) fn defined_address(&mut self) -> Result<u64> {
        let at = self.offset();
        let missing = || Error::from(Hdf5Fault::Missing("an address")).with_offset(at);
        self.address()?.ok_or_else(missing)
    }

    /// The bytes before the next zero, which is skipped.
    pub(crate) fn c_string(&mut self) -> Result<&'b [u8]> {
        let rest = self.left();
        let len = rest.iter().position(|byte| *byte == 0);
        // Without a zero, the zero after all bytes is missing.
        let text = self.take(len.unwrap_or(rest.len()) as u64)?;
        self.skip(1)?;
        Ok(text)
    }

    /// Skips to the next multiple of 8, counted from the position `start`.
    pub(crate) fn align_8(&mut self, start: u64) -> Result<()> {
        let used = self.position().strict_sub(start);
        self.skip(used.wrapping_neg() & 7)
    }
}
