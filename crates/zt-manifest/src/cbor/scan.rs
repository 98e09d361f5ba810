//! The pass that decides whether bytes are acceptable CBOR. Builds no values.

use super::cursor::{Cursor, Flaw, Head};
use super::unique::Unique;
use super::{MAX_KEY_LEN, MAX_NESTING};
use crate::error::Rule;

/// Checks items: well-formed, valid UTF-8, unique keys, nesting within the limit. Spec: §3.1.
///
/// Recursive, and at most [`MAX_NESTING`] levels deep. It keeps the offset of each key in the open maps,
/// four bytes each.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    pub(crate) cursor: Cursor<'a>,
    bytes: &'a [u8],
    limit: usize,
    /// Offsets of the keys of every open map, the innermost last.
    keys: Vec<u32>,
    within_key: bool,
}

impl<'a> Scanner<'a> {
    /// A scanner at `offset` of `bytes`, at most `u32::MAX` of them.
    pub(crate) fn new(bytes: &'a [u8], offset: usize, limit: usize) -> Self {
        Scanner {
            cursor: Cursor::at(bytes, offset),
            bytes,
            limit: limit.min(MAX_NESTING),
            keys: Vec::new(),
            within_key: false,
        }
    }

    /// Checks the next item, which lies within `depth` other items.
    #[inline]
    pub(crate) fn item(&mut self, depth: usize) -> Result<(), Flaw> {
        let at = self.cursor.offset();
        match self.cursor.head()? {
            Head::Text(Some(byte_len)) => self.cursor.utf8_bytes(byte_len).map(drop),
            Head::Bytes(Some(byte_len)) => self.cursor.bytes(byte_len).map(drop),
            Head::Unsigned(_) | Head::Negative(_) | Head::Simple(_) | Head::Float(_) => Ok(()),
            head => self.parts(at, head, depth),
        }
    }

    /// Checks an item with parts. It is a function of its own, so that other items are checked without a
    /// call.
    fn parts(&mut self, at: usize, head: Head, depth: usize) -> Result<(), Flaw> {
        match head {
            Head::Text(None) => {
                while let Some(byte_len) = self.cursor.chunk(true)? {
                    self.cursor.utf8_bytes(byte_len)?;
                }
                Ok(())
            }
            Head::Bytes(None) => {
                while let Some(byte_len) = self.cursor.chunk(false)? {
                    self.cursor.bytes(byte_len)?;
                }
                Ok(())
            }
            Head::Array(mut left) => {
                let depth = self.enter(at, depth)?;
                while self.cursor.more(&mut left) {
                    self.item(depth)?;
                }
                Ok(())
            }
            Head::Map(mut left) => {
                let depth = self.enter(at, depth)?;
                if self.within_key {
                    // The keys of a map within a key are compared later, once, when the outermost
                    // key is compared with its neighbours.
                    while self.cursor.more(&mut left) {
                        self.item(depth)?;
                        self.item(depth)?;
                    }
                    return Ok(());
                }
                let mut keys = self.open_map();
                while self.cursor.more(&mut left) {
                    self.key(depth, &mut keys)?;
                    self.item(depth)?;
                }
                self.close_map(keys)
            }
            Head::Tag(_) => {
                let depth = self.enter(at, depth)?;
                self.item(depth)
            }
            _ => Err(Flaw::cbor(at, Rule::Break)),
        }
    }

    /// The depth within the item at `at`, which lies within `depth` other items itself.
    pub(crate) fn enter(&self, at: usize, depth: usize) -> Result<usize, Flaw> {
        if depth >= self.limit {
            return Err(Flaw::nesting(at, self.limit));
        }
        Ok(depth.strict_add(1))
    }

    pub(crate) fn open_map(&self) -> Unique {
        Unique::new(self.keys.len())
    }

    /// Checks the next key.
    #[inline]
    pub(crate) fn key(&mut self, depth: usize, keys: &mut Unique) -> Result<(), Flaw> {
        let at = self.cursor.offset();
        let head = self.cursor.head()?;
        if let Head::Text(Some(byte_len)) = head {
            let text = self.cursor.utf8_bytes(byte_len)?;
            return keys.add_text(at, text, &mut self.keys, self.bytes);
        }
        self.cursor = Cursor::at(self.bytes, at);
        self.within_key = true;
        self.item(depth)?;
        self.within_key = false;
        let has_parts = matches!(head, Head::Array(_) | Head::Map(_) | Head::Tag(_));
        if has_parts && self.cursor.offset().strict_sub(at) > MAX_KEY_LEN {
            return Err(Flaw::key(at));
        }
        keys.add_other(at, &mut self.keys, self.bytes)
    }

    #[inline]
    pub(crate) fn close_map(&mut self, keys: Unique) -> Result<(), Flaw> {
        keys.close(&mut self.keys, self.bytes)
    }

    /// Refuses bytes after the item.
    pub(crate) fn end(&self) -> Result<(), Flaw> {
        match self.cursor.remaining() {
            0 => Ok(()),
            byte_len => {
                Err(Flaw::cbor(self.cursor.offset(), Rule::Trailing { byte_len: byte_len as u64 }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEY_LEN, Scanner};
    use crate::error::{Error, LimitExceeded, Rule};

    fn scan(bytes: &[u8]) -> Result<(), Error> {
        let mut scanner = Scanner::new(bytes, 0, 8);
        let item = scanner.item(0).and_then(|()| scanner.end());
        item.map_err(|flaw| flaw.into_error(bytes))
    }

    fn rule(bytes: &[u8]) -> (u64, Rule) {
        match scan(bytes) {
            Err(Error::Cbor { offset, rule }) => (offset, rule),
            other => panic!("{bytes:x?}: {other:?}"),
        }
    }

    #[test]
    fn accepts_everything_that_is_well_formed() {
        for bytes in [
            &b"\x00"[..],
            b"\x1B\x00\x00\x00\x00\x00\x00\x00\x01",
            b"\x3B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
            b"\x5F\x41a\x40\xFF",
            b"\x7F\x61a\x60\xFF",
            b"\x9F\xFF",
            b"\xBF\xFF",
            b"\xBF\x61a\x01\x61b\x02\xFF",
            b"\xC2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00",
            b"\xF7",
            b"\xE0",
            b"\xF8\x20",
            b"\xF9\x7E\x00",
            b"\xA3\x01\x00\x61\x31\x00\x41\x31\x00",
            b"\xA2\xA1\x01\x02\x00\xA1\x01\x03\x00",
        ] {
            assert!(scan(bytes).is_ok(), "{bytes:x?}");
        }
    }

    #[test]
    fn names_the_rule_and_the_offset() {
        assert_eq!(rule(b""), (0, Rule::Truncated));
        assert_eq!(rule(b"\x19\x01"), (2, Rule::Truncated));
        assert_eq!(rule(b"\x9F\x01"), (2, Rule::Truncated));
        assert_eq!(rule(b"\xC1"), (1, Rule::Truncated));
        assert_eq!(rule(b"\x1C"), (0, Rule::Reserved(28)));
        assert_eq!(rule(b"\x81\x1F"), (1, Rule::Reserved(31)));
        assert_eq!(rule(b"\xFF"), (0, Rule::Break));
        assert_eq!(rule(b"\xBF\x01\xFF"), (2, Rule::Break));
        assert_eq!(rule(b"\xA1\x01\xFF"), (2, Rule::Break));
        assert_eq!(rule(b"\xC1\xFF"), (1, Rule::Break));
        assert_eq!(rule(b"\x7F\x41a\xFF"), (1, Rule::Chunk));
        assert_eq!(rule(b"\x7F\x7F\xFF\xFF"), (1, Rule::Chunk));
        assert_eq!(rule(b"\x5F\x61a\xFF"), (1, Rule::Chunk));
        assert_eq!(rule(b"\x5F\x00\xFF"), (1, Rule::Chunk));
        assert_eq!(rule(b"\xF8\x14"), (0, Rule::Simple(20)));
        assert_eq!(rule(b"\x62a\xC3"), (2, Rule::Utf8));
        assert_eq!(rule(b"\x7F\x61\xC3\x61\xA9\xFF"), (2, Rule::Utf8));
        assert_eq!(rule(b"\x00\x00"), (1, Rule::Trailing { byte_len: 1 }));
    }

    #[test]
    fn finds_equal_keys_however_they_are_spelled() {
        for bytes in [
            &b"\xA2\x61a\x00\x61a\x00"[..],
            b"\xA2\x61a\x00\x7F\x61a\xFF\x00",
            b"\xA2\x62ab\x00\x7F\x61a\x60\x61b\xFF\x00",
            b"\xA2\x01\x00\x18\x01\x00",
            b"\xA2\x20\x00\x38\x00\x00",
            b"\xA2\x41a\x00\x5F\x41a\xFF\x00",
            b"\xA2\xF9\x3C\x00\x00\xFB\x3F\xF0\x00\x00\x00\x00\x00\x00\x00",
            b"\xA2\x80\x00\x9F\xFF\x00",
            b"\xA2\xA2\x01\x00\x02\x00\x00\xBF\x02\x00\x01\x00\xFF\x00",
            b"\xA2\xC1\x01\x00\xC1\x18\x01\x00",
            b"\xA2\xF6\x00\xF6\x00",
            b"\x81\xA1\x00\xA2\x61a\x00\x61a\x00",
            // Within a key, at any depth of it.
            b"\xA1\xA2\x61a\x00\x61a\x00\x00",
            b"\xA1\x81\xC1\xA1\xA2\x01\x00\x01\x00\x00\x00",
            b"\xA1\xA1\x00\xA2\x61a\x00\x7F\x61a\xFF\x00\x00",
        ] {
            let error = scan(bytes).unwrap_err();
            let is_duplicate = matches!(error, Error::DuplicateKey { .. });
            assert!(is_duplicate, "{bytes:x?}: {error}");
        }
    }

    #[test]
    fn a_key_with_parts_has_a_limit() {
        let string = |byte_len: usize| {
            let head = u16::try_from(byte_len - 3).unwrap().to_be_bytes();
            [&b"\x59"[..], &head, &vec![7; byte_len - 3]].concat()
        };
        let keyed = |key: &[u8]| [b"\xA1", key, b"\x00"].concat();
        for opening in [&b"\x81"[..], b"\xC2", b"\xA1\x01"] {
            let of = |byte_len: usize| [opening, &string(byte_len - opening.len())].concat();
            assert!(scan(&keyed(&of(MAX_KEY_LEN))).is_ok());
            let bytes = keyed(&of(MAX_KEY_LEN + 1));
            let error = scan(&bytes).unwrap_err();
            let limit = LimitExceeded::Key { offset: 1, limit: MAX_KEY_LEN };
            assert!(matches!(error, Error::Limit(it) if it == limit), "{error}");
            assert_eq!((error.code(), error.offset()), ("cbor", Some(1)));
            // As a value it may be of any length.
            assert!(scan(&[&b"\xA1\x00"[..], &of(MAX_KEY_LEN + 1)].concat()).is_ok());
        }
        assert!(scan(&keyed(&string(MAX_KEY_LEN + 1))).is_ok());
    }

    #[test]
    fn stops_at_the_limit_however_deep_the_input() {
        for opening in [&b"\x81"[..], b"\x9F", b"\xA1\x00", b"\xC1", b"\xA1"] {
            let deep = opening.repeat(100_000);
            let error = scan(&deep).unwrap_err();
            assert_eq!(error.code(), "cbor");
        }
        assert!(scan(b"\x81\x81\x81\x81\x81\x81\x81\x80").is_ok());
        assert!(scan(b"\x81\x81\x81\x81\x81\x81\x81\x81\x80").is_err());
    }
}
