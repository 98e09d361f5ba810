//! The bytes of a pickle, one operand after another.

use crate::fault::PickleFault;

/// A position in a pickle. Every read is checked against the bytes that are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'p> {
    bytes: &'p [u8],
    at: usize,
}

impl<'p> Cursor<'p> {
    pub(super) const fn new(bytes: &'p [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'p [u8], PickleFault> {
        let rest = self.rest();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or(PickleFault::Truncated {
            needed: len,
            available: rest.len() as u64,
        })?;
        self.at = self.at.saturating_add(taken.len());
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleFault> {
        let taken = self.take(N as u64)?;
        taken.try_into().map_err(|_| PickleFault::Number)
    }

    pub(super) fn u8(&mut self) -> Result<u8, PickleFault> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, PickleFault> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, PickleFault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, PickleFault> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, PickleFault> {
        self.array().map(u64::from_le_bytes)
    }

    /// The bytes before the next line feed. The line feed is taken too.
    pub(super) fn line(&mut self) -> Result<&'p [u8], PickleFault> {
        let rest = self.rest();
        let Some(len) = rest.iter().position(|byte| *byte == b'\n') else {
            let available = rest.len() as u64;
            let needed = available.saturating_add(1);
            return Err(PickleFault::Truncated { needed, available });
        };
        let line = self.take(len as u64)?;
        self.take(1)?;
        Ok(line)
    }

    /// A [`Cursor::line`] of UTF-8.
    pub(super) fn text_line(&mut self) -> Result<&'p str, PickleFault> {
        std::str::from_utf8(self.line()?).map_err(|_| PickleFault::NotUtf8)
    }

    /// Checks that `len` bytes are left.
    pub(super) fn expect(&self, len: u64) -> Result<(), PickleFault> {
        let available = self.rest().len() as u64;
        if len <= available {
            return Ok(());
        }
        Err(PickleFault::Truncated {
            needed: len,
            available,
        })
    }

    fn rest(&self) -> &'p [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}
