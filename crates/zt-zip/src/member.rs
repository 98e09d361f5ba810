//! One member of an archive: where its bytes are, and how they become its content.

use std::sync::Arc;

use zt::{Digest, Error, Result, Source, Span};
use zt_foreign::fields::Fields;

use crate::crc::crc32;
use crate::inflate::Inflated;
use crate::{LOCAL, LOCAL_LEN, Violation};

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// General purpose flags. APPNOTE.TXT §4.4.4.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const NAME_IS_UTF8: u16 = 1 << 11;

/// A block of deflate holds at most 258 bytes for every two bits, and never more than this many
/// times its own length: zlib's documentation of its maximum compression.
const MAX_RATIO: u64 = 1032;

/// What the directory says of a member.
#[derive(Debug)]
pub struct Member {
    name: String,
    raw_name: Box<[u8]>,
    flags: u16,
    method: u16,
    crc: u32,
    stored_len: u64,
    byte_len: u64,
    header: u64,
    limit: u64,
    is_whole: bool,
}

/// The fields of a directory entry.
pub(super) struct Parts<'b> {
    pub(super) name: &'b [u8],
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) stored_len: u64,
    pub(super) byte_len: u64,
    pub(super) header: u64,
    /// Whether no number is missing.
    pub(super) is_whole: bool,
}

/// The content of a member: a range of the archive where it is stored, else of what it inflates to.
#[derive(Clone)]
pub struct Content {
    /// What the range is of.
    pub source: Arc<dyn Source>,
    /// The range.
    pub span: Span,
    /// Whether it is a range of the archive itself.
    pub is_stored: bool,
    crc: u32,
}

impl Member {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        Member {
            name: name(parts.name, parts.flags),
            raw_name: parts.name.into(),
            flags: parts.flags,
            method: parts.method,
            crc: parts.crc,
            stored_len: parts.stored_len,
            byte_len: parts.byte_len,
            header: parts.header,
            limit: 0,
            is_whole: parts.is_whole,
        }
    }

    /// Its name: UTF-8 where it says so, else of code page 437, as Python reads it. §D.1.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of its content, as declared.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Where its local header begins.
    pub fn header(&self) -> u64 {
        self.header
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Bytes that it takes in the archive, as that says.
    pub const fn stored_len(&self) -> u64 {
        self.stored_len
    }

    /// Its content, which is not read yet. Cost: the local header.
    ///
    /// # Errors
    ///
    /// Codes `header`, `bounds`, `decompression-limit`; `unsupported` where it is encrypted or
    /// compressed by anything but deflate.
    pub fn content(&self, archive: &Arc<dyn Source>) -> Result<Content> {
        let data = self.data(archive)?;
        let (stored, declared) = (self.stored_len, self.byte_len);
        match self.method {
            STORED if stored == declared => Ok(Content {
                source: Arc::clone(archive),
                span: data,
                is_stored: true,
                crc: self.crc,
            }),
            STORED => Err(Violation::StoredLength { stored, declared }.into()),
            DEFLATED if declared <= stored.saturating_mul(MAX_RATIO) => Ok(Content {
                source: Arc::new(Inflated::new(Arc::clone(archive), data, declared, self.crc)),
                span: Span::new(0, declared).unwrap_or_default(),
                is_stored: false,
                crc: self.crc,
            }),
            DEFLATED => Err(Violation::Ratio { stored, declared }.into()),
            method => Err(Violation::Method { method }.into()),
        }
    }

    /// The stored bytes, behind the local header.
    fn data(&self, archive: &dyn Source) -> Result<Span> {
        if self.flags & ENCRYPTED != 0 {
            return Err(Violation::Encrypted.into());
        }
        if !self.is_whole {
            return Err(Violation::Extra.into());
        }
        let offset = self.header;
        let nowhere = || Error::from(Violation::NoLocalHeader { offset }).with_offset(offset);
        let len = LOCAL_LEN.saturating_add(self.raw_name.len());
        let span = Span::new(offset, len as u64).filter(|span| span.end() <= self.limit);
        let header = zt::container::bytes_of(archive, span.ok_or_else(nowhere)?)?;
        let fields = Fields(header.strip_prefix(LOCAL).ok_or_else(nowhere)?);
        let number = |at| fields.u16(at).unwrap_or_default();
        let is_same = header.get(LOCAL_LEN..) == Some(&*self.raw_name)
            && usize::from(number(22)) == self.raw_name.len()
            && number(4) == self.method;
        if !is_same {
            return Err(Error::from(Violation::OtherLocalHeader).with_offset(offset));
        }
        let start = offset
            .checked_add(len as u64)
            .and_then(|start| start.checked_add(u64::from(number(24))));
        let data = start.and_then(|start| Span::new(start, self.stored_len));
        let end = data.map_or(u64::MAX, Span::end);
        match data.filter(|data| data.end() <= self.limit) {
            Some(data) => Ok(data),
            None => {
                let limit = self.limit;
                Err(Error::from(Violation::Bounds { end, limit }).with_offset(offset))
            }
        }
    }
}

impl Content {
    /// The digest of the content behind `head`, its first bytes: the archive has one of all of it,
    /// and checksums can be taken apart. `None` where it is checked in inflating.
    pub fn digest_behind(&self, head: &[u8]) -> Option<Digest> {
        let rest = self.span.byte_len().checked_sub(head.len() as u64)?;
        let mut front = crc32fast::Hasher::new();
        front.update(head);
        // That of the head, moved in front of `rest` bytes that add nothing.
        front.combine(&crc32fast::Hasher::new_with_initial_len(0, rest));
        self.is_stored.then(|| crc32(self.crc ^ front.finalize()))
    }
}

fn name(bytes: &[u8], flags: u16) -> String {
    if flags & NAME_IS_UTF8 != 0 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let character = |byte: &u8| match byte.checked_sub(0x80) {
        None => char::from(*byte),
        Some(above) => CODE_PAGE_437.chars().nth(usize::from(above)).unwrap_or('?'),
    };
    bytes.iter().map(character).collect()
}

/// The upper half of the code page.
const CODE_PAGE_437: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_page_has_128_characters() {
        assert_eq!(CODE_PAGE_437.chars().count(), 128);
        assert_eq!(name(b"\x80\xe1\xff", 0), "\u{c7}\u{df}\u{a0}");
        assert_eq!(name("\u{c7}".as_bytes(), NAME_IS_UTF8), "\u{c7}");
    }

    #[test]
    fn checksums_are_taken_apart() {
        let content = Content {
            source: Arc::new(zt::Memory::new(b"123456789")),
            span: Span::new(0, 9).unwrap(),
            is_stored: true,
            crc: 0xCBF4_3926,
        };
        let behind = |head: &[u8]| content.digest_behind(head);
        assert_eq!(behind(b""), Some(crc32(0xCBF4_3926)));
        assert_eq!(behind(b"1234"), Some(crc32(crc32fast::hash(b"56789"))));
        assert_eq!(behind(b"123456789"), Some(crc32(0)));
    }
}
