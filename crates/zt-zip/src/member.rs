//! One member of an archive: the span of its data, and its content.

use std::sync::Arc;
use zt_container::fields::Record;
use zt_container::memory::in_memory;
use zt_container::{Digest, Source, Span};

use crate::crc::crc32;
use crate::error::{Result, ZipViolation};
use crate::inflate::Inflated;
use crate::packed::{BZIP2, LZMA, Packed};
use crate::records::{LOCAL, LOCAL_LEN};

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// General purpose flags. APPNOTE.TXT §4.4.4.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const NAME_IS_UTF8: u16 = 1 << 11;

/// The order of x modulo the polynomial of CRC-32, which is primitive: 2^32 - 1.
const ORDER: u64 = 0xFFFF_FFFF;

/// The bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The bytes of a header in the content, as that of an array, and of the extra field before it.
const HEAD: u64 = 512;

/// The most bytes that one byte of deflate can inflate to: zlib's "Maximum Compression Factor".
const MAX_RATIO: u64 = 1032;

/// The limits for bzip2 and LZMA, whose ratio has none: 7,000 zeros are a byte of LZMA, a million one of bzip2.
/// Content up to `SMALL` may have any ratio.
const MAX_PACKED_RATIO: u64 = 8192;
const SMALL: u64 = 64 << 20;

/// A member as the directory declares it.
#[derive(Debug)]
pub struct Member {
    pub(super) name: String,
    /// The name as it is stored.
    pub(super) raw_name: Box<[u8]>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) stored_len: u64,
    pub(super) byte_len: u64,
    /// The offset of the local header.
    pub(super) header: u64,
    /// The offset of the next record, where the data ends at the latest.
    pub(super) limit: u64,
    /// Whether the directory has all numbers that the entry refers to.
    pub(super) is_whole: bool,
    /// Bytes of the data that are in the file, if it ends within them.
    pub(super) cut: Option<u64>,
}

/// The content of a member: a span of the archive if it is stored, else of the inflated bytes.
#[derive(Clone)]
pub struct Content {
    /// The archive or the inflated bytes.
    pub source: Arc<dyn Source>,
    /// The content's bytes in `source`.
    pub span: Span,
    /// Whether `source` is the archive.
    pub is_stored: bool,
    crc: u32,
}

impl Member {
    /// The name, decoded from UTF-8 if the member's flags declare it, else from code page 437. §D.1.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The declared length of the content.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The offset of the local header.
    pub fn header(&self) -> u64 {
        self.header
    }

    /// The declared length of the data in the archive.
    pub const fn stored_len(&self) -> u64 {
        self.stored_len
    }

    /// The local header and the first bytes of the content, for a reader that announces what it reads of
    /// many members. Nothing depends on its length.
    pub fn beginning(&self) -> Option<Span> {
        let first = match self.method {
            STORED => HEAD,
            _ => PIECE as u64,
        };
        let head = (LOCAL_LEN as u64).checked_add(self.raw_name.len() as u64)?;
        let len = head.checked_add(first)?;
        Span::new(self.header, len.min(self.limit.checked_sub(self.header)?))
    }

    /// The content, which is not read yet. Cost: the local header.
    ///
    /// # Errors
    ///
    /// Codes `header`, `bounds`, `decompression-limit`; `unsupported` if the member is encrypted or
    /// compressed with another method than deflate, bzip2 and LZMA.
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
            STORED => Err(ZipViolation::StoredLength { stored, declared }.into()),
            DEFLATED => {
                let span = self.unpacked(MAX_RATIO, 0)?;
                let source = Inflated::new(Arc::clone(archive), data, declared, self.crc);
                Ok(Content { source: Arc::new(source), span, is_stored: false, crc: self.crc })
            }
            method @ (BZIP2 | LZMA) => {
                let span = self.unpacked(MAX_PACKED_RATIO, SMALL)?;
                let source = Packed::new(Arc::clone(archive), method, data, declared, self.crc);
                Ok(Content { source: Arc::new(source), span, is_stored: false, crc: self.crc })
            }
            method => Err(ZipViolation::Method { method }.into()),
        }
    }

    /// The span of the content: up to `ratio` bytes of each stored byte, or `least` bytes.
    fn unpacked(&self, ratio: u64, least: u64) -> Result<Span> {
        let (stored, declared) = (self.stored_len, self.byte_len);
        let most = stored.checked_mul(ratio).map(|most| most.max(least));
        let span = Span::new(0, declared).filter(|_| most.is_none_or(|most| declared <= most));
        Ok(span.ok_or(ZipViolation::Ratio { stored, declared })?)
    }

    /// The data, which follows the local header.
    fn data(&self, archive: &dyn Source) -> Result<Span> {
        if self.flags & ENCRYPTED != 0 {
            return Err(ZipViolation::Encrypted.into());
        }
        if !self.is_whole {
            return Err(ZipViolation::Extra.into());
        }
        let offset = self.header;
        if let Some(found) = self.cut {
            let declared = Some(self.stored_len).filter(|len| *len > 0);
            return Err(ZipViolation::Cut { offset, found, declared }.into());
        }
        let nowhere = || ZipViolation::NoLocalHeader { offset };
        let len = LOCAL_LEN.strict_add(self.raw_name.len());
        let span = Span::new(offset, len as u64).filter(|span| span.end() <= self.limit);
        let header = zt_container::bytes_of(archive, span.ok_or_else(nowhere)?)?;
        let fields = Record(header.strip_prefix(LOCAL).ok_or_else(nowhere)?);
        let is_same = header.get(LOCAL_LEN..) == Some(&*self.raw_name)
            && usize::from(fields.u16(22)) == self.raw_name.len()
            && fields.u16(4) == self.method;
        if !is_same {
            return Err(ZipViolation::OtherLocalHeader { offset }.into());
        }
        let start = offset
            .checked_add(len as u64)
            .and_then(|start| start.checked_add(u64::from(fields.u16(24))));
        let data = start.and_then(|start| Span::new(start, self.stored_len));
        let limit = self.limit;
        // Beyond every file, if it has no 64 bits.
        let end = data.map_or(u64::MAX, Span::end);
        let bounds = ZipViolation::Bounds { offset, end, limit };
        Ok(data.filter(|_| end <= limit).ok_or(bounds)?)
    }
}

impl Content {
    /// The CRC-32 in the archive; `None` for 0, which writers of PyTorch files leave there if they computed none.
    pub fn digest(&self) -> Option<Digest> {
        (self.crc != 0).then(|| crc32(self.crc))
    }

    /// The digest of the content between its first bytes, `head`, and its last ones, `rest`, derived from
    /// the CRC-32 in the archive. Reads `rest`. `None` for a compressed member: its CRC-32 is checked when
    /// its end is decoded, which reading `rest` does.
    ///
    /// # Errors
    ///
    /// [`zt_container::Error::Io`]; as reading inflated bytes.
    pub fn digest_between(&self, head: &[u8], rest: Span) -> Result<Option<Digest>> {
        let mut behind = crc32fast::Hasher::new();
        let mut piece = vec![0; in_memory(rest.byte_len().min(PIECE as u64))];
        let mut at = rest.offset();
        while at < rest.end() {
            let len = in_memory(rest.end().strict_sub(at).min(PIECE as u64));
            let bytes = piece.get_mut(..len).unwrap_or_default();
            self.source.read_at(at, bytes)?;
            behind.update(bytes);
            at = at.strict_add(len as u64);
        }
        let rest_len = rest.byte_len();
        let before_rest = self.span.byte_len().checked_sub(rest_len);
        let len = before_rest.and_then(|len| len.checked_sub(head.len() as u64));
        let Some(len) = len.filter(|_| self.is_stored) else {
            return Ok(None);
        };
        // A byte shifts by x^8. The other bytes of a round shift back.
        let back = ORDER.strict_sub(rest_len % ORDER);
        let whole = shifted(self.crc ^ behind.finalize(), back);
        let mut front = crc32fast::Hasher::new();
        front.update(head);
        Ok(Some(crc32(whole ^ shifted(front.finalize(), len))))
    }
}

/// The CRC-32 of some bytes, shifted by the length of the bytes that follow.
fn shifted(crc: u32, len: u64) -> u32 {
    let mut sum = crc32fast::Hasher::new_with_initial_len(crc, 0);
    sum.combine(&crc32fast::Hasher::new_with_initial_len(0, len));
    sum.finalize()
}

/// The name of a member with these flags.
pub(super) fn decoded(bytes: &[u8], flags: u16) -> String {
    if flags & NAME_IS_UTF8 != 0 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let character = |byte: &u8| match byte.checked_sub(0x80) {
        None => char::from(*byte),
        Some(above) => CODE_PAGE_437.chars().nth(usize::from(above)).unwrap_or('?'),
    };
    bytes.iter().map(character).collect()
}

/// The upper half of code page 437.
const CODE_PAGE_437: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_page_has_128_characters() {
        assert_eq!(CODE_PAGE_437.chars().count(), 128);
        assert_eq!(decoded(b"\x80\xe1\xff", 0), "\u{c7}\u{df}\u{a0}");
        assert_eq!(decoded("\u{c7}".as_bytes(), NAME_IS_UTF8), "\u{c7}");
    }
}
