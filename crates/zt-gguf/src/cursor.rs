//! The bytes of a header, one item after the other.

use zt::container::memory::resize;
use zt::{ByteOrder, Error, Result, Source};

use crate::violation::Violation;

/// Bytes that are read at a time, unless an item is longer.
const WINDOW: u64 = 256 << 10;

/// A position in a file, and the bytes around it.
pub(super) struct Cursor<'s> {
    source: &'s dyn Source,
    order: ByteOrder,
    /// Whether lengths are u32, as in version 1.
    short: bool,
    /// Absolute, of the next byte.
    at: u64,
    window: Vec<u8>,
    /// Bytes of the window before the next byte.
    used: usize,
}

impl<'s> Cursor<'s> {
    /// At the beginning of the file.
    pub(super) fn new(source: &'s dyn Source) -> Self {
        Cursor {
            source,
            order: ByteOrder::Little,
            short: false,
            at: 0,
            window: Vec::new(),
            used: 0,
        }
    }

    /// Sets the byte order of the next items, and whether their lengths are u32.
    pub(super) fn set_layout(&mut self, order: ByteOrder, short: bool) {
        (self.order, self.short) = (order, short);
    }

    pub(super) const fn offset(&self) -> u64 {
        self.at
    }

    /// The bytes that a length or a count takes.
    pub(super) const fn length_len(&self) -> u64 {
        if self.short { 4 } else { 8 }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "within the file")]
    fn available(&self) -> u64 {
        self.source.byte_len() - self.at
    }

    pub(super) fn error(&self, violation: Violation) -> Error {
        Error::from(violation).with_offset(self.at)
    }

    /// The next `len` bytes, called `what` in errors. Allocates no more than the file has.
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "the file has the bytes, and the window holds them once it is loaded"
    )]
    pub(super) fn take(&mut self, len: u64, what: &'static str) -> Result<&[u8]> {
        let available = self.available();
        if len > available {
            return Err(self.error(Violation::Ends { what, needed: len, available }));
        }
        if len > (self.window.len() - self.used) as u64 {
            self.load(len.max(WINDOW).min(available))?;
        }
        let bytes = &self.window[self.used..][..len as usize];
        self.used += bytes.len();
        self.at += len;
        Ok(bytes)
    }

    /// Moves the window to the next byte. The file has `len` bytes from there.
    fn load(&mut self, len: u64) -> Result<()> {
        self.window.clear();
        self.used = 0;
        resize(&mut self.window, len)?;
        Ok(self.source.read_at(self.at, &mut self.window)?)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64, what)?);
        if self.order == ByteOrder::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A length, a count or a dimension: u32 in version 1, u64 since.
    pub(super) fn length(&mut self, what: &'static str) -> Result<u64> {
        if self.short { self.u32(what).map(u64::from) } else { self.u64(what) }
    }

    /// A count of items that take at least `least` bytes each.
    pub(super) fn count(&mut self, what: &'static str, least: u64, limit: u64) -> Result<u64> {
        let declared = self.length(what)?;
        self.check_count(what, declared, least, limit)
    }

    /// Refuses a count of more items than the bytes that follow can hold, or than `limit`.
    pub(super) fn check_count(
        &self,
        what: &'static str,
        declared: u64,
        least: u64,
        limit: u64,
    ) -> Result<u64> {
        let available = self.available();
        let needed = declared.checked_mul(least);
        if needed.is_none_or(|needed| needed > available) {
            return Err(self.error(Violation::Count { what, declared, available }));
        }
        if declared > limit {
            return Err(self.error(Violation::TooMany { what, declared, limit }));
        }
        Ok(declared)
    }

    /// The bytes after their length.
    pub(super) fn string(&mut self, what: &'static str) -> Result<&[u8]> {
        let len = self.length(what)?;
        self.take(len, what)
    }

    /// A string that has to be UTF-8.
    pub(super) fn text(&mut self, what: &'static str) -> Result<String> {
        let at = self.at;
        let bytes = self.string(what)?.to_vec();
        String::from_utf8(bytes)
            .map_err(|_| Error::from(Violation::NotUtf8 { what }).with_offset(at))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A source of zeros that counts its reads.
    struct Zeros(u64, AtomicUsize);

    impl Source for Zeros {
        fn byte_len(&self) -> u64 {
            self.0
        }

        fn read_at(&self, _: u64, buf: &mut [u8]) -> std::io::Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            buf.fill(0);
            Ok(())
        }
    }

    #[test]
    fn no_byte_is_read_twice() {
        let source = Zeros(2 * WINDOW, AtomicUsize::new(0));
        let mut cursor = Cursor::new(&source);
        for (len, reads) in [(1, 1), (WINDOW - 1, 1), (WINDOW, 2), (0, 2)] {
            assert_eq!(cursor.take(len, "zeros").unwrap().len() as u64, len);
            assert_eq!(source.1.load(Ordering::Relaxed), reads);
        }
        assert!(cursor.take(1, "zeros").is_err());
    }

    #[test]
    fn a_count_may_be_the_limit_and_no_more() {
        let source = zt::Memory::new([0; 16]);
        let cursor = Cursor::new(&source);
        let count = |declared| cursor.check_count("things", declared, 2, 3);
        assert_eq!(count(3).unwrap(), 3);
        assert_eq!(count(4).unwrap_err().kind(), zt::ErrorKind::Limit);
        // Nor more than the bytes can hold.
        let many = cursor.check_count("things", 9, 2, 100);
        assert_eq!(many.unwrap_err().kind(), zt::ErrorKind::Malformed);
        assert!(cursor.check_count("things", 8, 2, 100).is_ok());
    }
}
