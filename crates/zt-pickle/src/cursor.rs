//! The bytes of a pickle, one operand after another.

use crate::fault::PickleFault;

/// A byte string that was left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// How many bytes of the outline are before it.
    pub(super) at: usize,
    /// Its place in the source.
    pub(super) offset: u64,
}

/// A position in a pickle or in its outline. Every read is checked against the bytes that are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'p> {
    rest: &'p [u8],
    /// The bytes of the outline.
    held: usize,
    /// The strings that were left out of the rest.
    gaps: &'p [Gap],
    /// The bytes of those before.
    passed: u64,
    /// Bytes of the pickle and of the data after it.
    available: u64,
}

impl<'p> Cursor<'p> {
    pub(super) const fn new(bytes: &'p [u8]) -> Self {
        Cursor::of_outline(bytes, &[], bytes.len() as u64)
    }

    pub(super) const fn of_outline(bytes: &'p [u8], gaps: &'p [Gap], available: u64) -> Self {
        Cursor { rest: bytes, held: bytes.len(), gaps, passed: 0, available }
    }

    /// The position in the pickle.
    pub(super) const fn at(&self) -> u64 {
        (self.taken() as u64).strict_add(self.passed)
    }

    /// How many bytes were taken. Bytes that an outline leaves out are none of them.
    pub(super) const fn taken(&self) -> usize {
        self.held.abs_diff(self.rest.len())
    }

    /// Bytes of the pickle and of the data after it, without those that an outline leaves out.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// The place of the next `len` bytes, if the outline leaves them out. They are passed over.
    pub(super) fn left_out(&mut self, len: u64) -> Result<Option<u64>, PickleFault> {
        match self.gaps {
            [gap, rest @ ..] if gap.at == self.taken() => {
                self.check(len)?;
                self.gaps = rest;
                self.passed = self.passed.strict_add(len);
                Ok(Some(gap.offset))
            }
            _ => Ok(None),
        }
    }

    /// What follows the bytes that were taken.
    pub(super) const fn rest(&self) -> &'p [u8] {
        self.rest
    }

    /// Checks that the next `len` bytes exist.
    pub(super) fn check(&self, len: u64) -> Result<(), PickleFault> {
        if len > self.left() {
            return Err(self.truncated(len));
        }
        Ok(())
    }

    pub(super) fn take(&mut self, len: u64) -> Result<&'p [u8], PickleFault> {
        let len_here = usize::try_from(len).ok();
        let split = len_here.and_then(|len| self.rest.split_at_checked(len));
        let (taken, rest) = split.ok_or_else(|| self.truncated(len))?;
        self.rest = rest;
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
        let mut parts = self.rest.splitn(2, |byte| *byte == b'\n');
        let (Some(line), Some(rest)) = (parts.next(), parts.next()) else {
            return Err(self.truncated(self.left().strict_add(1)));
        };
        self.rest = rest;
        Ok(line)
    }

    /// A [`Cursor::line`] of UTF-8.
    pub(super) fn text_line(&mut self) -> Result<&'p str, PickleFault> {
        std::str::from_utf8(self.line()?).map_err(|_| PickleFault::NotUtf8)
    }

    fn left(&self) -> u64 {
        self.available.strict_sub(self.at())
    }

    fn truncated(&self, needed: u64) -> PickleFault {
        PickleFault::Truncated { needed, available: self.left() }
    }
}
