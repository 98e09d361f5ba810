//! Decoding values from bytes that have passed the scan.

use super::MAX_NESTING;
use super::cursor::{Cursor, Flaw, Head};
use super::scan::Scanner;
use crate::attributes::Attributes;
use crate::error::Rule;
use crate::list::ListBuilder;
use crate::value::Value;

impl Value {
    /// The only item in `bytes`, in any encoding. It takes at most 32 bytes of memory for each byte.
    ///
    /// # Errors
    ///
    /// As for attributes: code `cbor` for bytes that are not one well-formed item with unique keys; a nesting
    /// beyond `nesting`.
    pub fn from_cbor(bytes: &[u8], nesting: usize) -> crate::error::Result<Self> {
        let whole = |bytes: &[u8]| {
            // The scanner keeps offsets of four bytes.
            u32::try_from(bytes.len()).map_err(|_| Flaw::allocation::<u8>(bytes.len()))?;
            let mut scanner = Scanner::new(bytes, 0, nesting);
            scanner.item(0)?;
            scanner.end()?;
            Cursor::new(bytes).value()
        };
        whole(bytes).map_err(|flaw| flaw.into_error(bytes))
    }
}

impl Cursor<'_> {
    /// The next item. The value takes at most 32 bytes of memory for each encoded byte.
    pub(crate) fn value(&mut self) -> Result<Value, Flaw> {
        self.value_at(MAX_NESTING)
    }

    /// The pairs of a map whose head has just been decoded.
    pub(crate) fn map(&mut self, len: Option<usize>) -> Result<Attributes, Flaw> {
        self.pairs(len, MAX_NESTING)
    }

    pub(crate) fn skip(&mut self) -> Result<(), Flaw> {
        self.skip_at(MAX_NESTING)
    }

    fn value_at(&mut self, levels: usize) -> Result<Value, Flaw> {
        let start = *self;
        let at = self.offset();
        match self.head()? {
            Head::Unsigned(value) => Ok(Value::Unsigned(value)),
            Head::Negative(value) => Ok(Value::Negative(value)),
            Head::Float(value) => Ok(Value::Float(value)),
            Head::Simple(20) => Ok(Value::Bool(false)),
            Head::Simple(21) => Ok(Value::Bool(true)),
            Head::Simple(22) => Ok(Value::Null),
            Head::Simple(23) => Ok(Value::Undefined),
            Head::Simple(value) => Ok(Value::Simple(value)),
            Head::Text(Some(byte_len)) => {
                let text = self.utf8(byte_len)?;
                let mut owned = String::new();
                let reserved = owned.try_reserve_exact(byte_len);
                reserved.map_err(|_| Flaw::allocation::<u8>(byte_len))?;
                owned.push_str(text);
                Ok(Value::Text(owned))
            }
            Head::Text(None) => {
                // Back to the head: `text` joins the chunks.
                *self = start;
                let text = self.text()?;
                Ok(Value::Text(text.unwrap_or_default().into_owned()))
            }
            Head::Bytes(Some(byte_len)) => {
                let mut owned = Vec::new();
                self.append(byte_len, &mut owned)?;
                Ok(Value::Bytes(owned))
            }
            Head::Bytes(None) => {
                let mut owned = Vec::new();
                while let Some(byte_len) = self.chunk(false)? {
                    self.append(byte_len, &mut owned)?;
                }
                Ok(Value::Bytes(owned))
            }
            Head::Array(mut left) => {
                let levels = deeper(at, levels)?;
                let mut items = ListBuilder::default();
                while self.more(&mut left) {
                    let start = self.offset();
                    let item = self.value_at(levels)?;
                    let byte_len = self.offset().strict_sub(start);
                    let pushed = items.push(item);
                    pushed.map_err(|_| Flaw::allocation::<u8>(byte_len))?;
                }
                Ok(Value::Array(items.finish()))
            }
            Head::Map(len) => {
                let levels = deeper(at, levels)?;
                self.pairs(len, levels).map(Value::Map)
            }
            Head::Tag(tag) => {
                let levels = deeper(at, levels)?;
                let value = self.value_at(levels)?;
                Ok(Value::Tag(tag, Box::new(value)))
            }
            Head::Break => Err(Flaw::cbor(at, Rule::Break)),
        }
    }

    fn pairs(&mut self, mut left: Option<usize>, levels: usize) -> Result<Attributes, Flaw> {
        let mut pairs = Vec::new();
        reserve(&mut pairs, left.unwrap_or_default())?;
        while self.more(&mut left) {
            let key = self.value_at(levels)?;
            let value = self.value_at(levels)?;
            reserve(&mut pairs, 1)?;
            pairs.push((key, value));
        }
        Ok(Attributes::from_unique(pairs))
    }

    fn append(&mut self, byte_len: usize, owned: &mut Vec<u8>) -> Result<(), Flaw> {
        let bytes = self.bytes(byte_len)?;
        reserve(owned, byte_len)?;
        owned.extend_from_slice(bytes);
        Ok(())
    }

    fn skip_at(&mut self, levels: usize) -> Result<(), Flaw> {
        let at = self.offset();
        match self.head()? {
            Head::Text(Some(byte_len)) | Head::Bytes(Some(byte_len)) => {
                self.bytes(byte_len).map(drop)
            }
            Head::Text(None) => self.skip_chunks(true),
            Head::Bytes(None) => self.skip_chunks(false),
            Head::Array(mut left) => {
                let levels = deeper(at, levels)?;
                while self.more(&mut left) {
                    self.skip_at(levels)?;
                }
                Ok(())
            }
            Head::Map(mut left) => {
                let levels = deeper(at, levels)?;
                while self.more(&mut left) {
                    self.skip_at(levels)?;
                    self.skip_at(levels)?;
                }
                Ok(())
            }
            Head::Tag(_) => self.skip_at(deeper(at, levels)?),
            Head::Break => Err(Flaw::cbor(at, Rule::Break)),
            Head::Unsigned(_) | Head::Negative(_) | Head::Simple(_) | Head::Float(_) => Ok(()),
        }
    }

    fn skip_chunks(&mut self, text: bool) -> Result<(), Flaw> {
        while let Some(byte_len) = self.chunk(text)? {
            self.bytes(byte_len)?;
        }
        Ok(())
    }
}

pub(super) fn deeper(at: usize, levels: usize) -> Result<usize, Flaw> {
    let deeper = levels.checked_sub(1);
    deeper.ok_or_else(|| Flaw::nesting(at, MAX_NESTING))
}

/// Memory for `additional` elements, or an error where there is none.
fn reserve<T>(vec: &mut Vec<T>, additional: usize) -> Result<(), Flaw> {
    let reserved = vec.try_reserve(additional);
    reserved.map_err(|_| Flaw::allocation::<T>(additional))
}

#[cfg(test)]
mod tests {
    use super::super::canonical::canonical;
    use super::{Cursor, MAX_NESTING};
    use crate::value::Value;

    #[test]
    fn a_value_is_the_only_item() {
        let value = Value::array(vec![Value::from(1u64), Value::from("a")]);
        let bytes = value.to_cbor().unwrap();
        assert_eq!(Value::from_cbor(&bytes, 1).unwrap(), value);
        Value::from_cbor(&bytes, 0).unwrap_err();
        let behind = [&bytes[..], b"\0"].concat();
        for wrong in
            [&bytes[..2], &behind, b"\xA2\0\0\0\0", b"\x9B\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"]
        {
            assert_eq!(Value::from_cbor(wrong, 8).unwrap_err().code(), "cbor", "{wrong:x?}");
        }
    }

    /// The scan refuses deeper items. A caller that forgets to scan must not overflow the stack either.
    #[test]
    fn the_limit_on_nesting_holds_without_a_scan() {
        for opening in [&b"\x81"[..], b"\xA1\x00", b"\xC1"] {
            for (levels, is_taken) in [(MAX_NESTING, true), (MAX_NESTING + 1, false)] {
                let bytes = [&opening.repeat(levels)[..], b"\x00"].concat();
                let cursor = || Cursor::new(&bytes);
                assert_eq!(cursor().value().is_ok(), is_taken, "{opening:x?}");
                assert_eq!(cursor().skip().is_ok(), is_taken, "{opening:x?}");
                let written = canonical(&mut cursor(), &mut Vec::new());
                assert_eq!(written.is_ok(), is_taken, "{opening:x?}");
            }
        }
    }
}
