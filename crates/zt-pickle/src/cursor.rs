//! The bytes of a pickle, one operand after another.

use crate::fault::PickleFault;

/// A position in a pickle. Every read is checked against the bytes that are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'p> {
    rest: &'p [u8],
    whole_len: usize,
}

impl<'p> Cursor<'p> {
    pub(super) const fn new(bytes: &'p [u8]) -> Self {
        Cursor {
            rest: bytes,
            whole_len: bytes.len(),
        }
    }

    pub(super) const fn at(&self) -> usize {
        self.whole_len.abs_diff(self.rest.len())
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
    #[expect(
        clippy::expect_used,
        reason = "Rust's slices are shorter than 2^63 bytes"
    )]
    pub(super) fn line(&mut self) -> Result<&'p [u8], PickleFault> {
        let mut parts = self.rest.splitn(2, |byte| *byte == b'\n');
        let (Some(line), Some(rest)) = (parts.next(), parts.next()) else {
            let needed = (self.rest.len() as u64).checked_add(1);
            return Err(self.truncated(needed.expect("a slice is shorter than 2^63 bytes")));
        };
        self.rest = rest;
        Ok(line)
    }

    /// A [`Cursor::line`] of UTF-8.
    pub(super) fn text_line(&mut self) -> Result<&'p str, PickleFault> {
        std::str::from_utf8(self.line()?).map_err(|_| PickleFault::NotUtf8)
    }

    const fn truncated(&self, needed: u64) -> PickleFault {
        PickleFault::Truncated {
            needed,
            available: self.rest.len() as u64,
        }
    }
}
