//! The deterministic encoding of an item, made from its bytes. Two items are equal if and only if these
//! bytes are. Spec: §3.1 and §3.5.

use super::MAX_NESTING;
use super::cursor::{Cursor, Flaw, Head};
use super::decode::deeper;
use super::encode::{push, sort_pairs};
use crate::error::Rule;

/// Appends the deterministic encoding of the next item, in one pass over it. Sorting takes 64 bytes for
/// each pair of a map within it. The caller bounds an item with parts by
/// [`MAX_KEY_LEN`](super::MAX_KEY_LEN).
/// Fails if a map within the item has a duplicate key.
pub(super) fn canonical(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), Flaw> {
    canonical_at(cursor, out, MAX_NESTING)
}

fn canonical_at(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, levels: usize) -> Result<(), Flaw> {
    let at = cursor.offset();
    let start = out.len();
    let head = cursor.head()?;
    match head {
        Head::Unsigned(_) | Head::Negative(_) | Head::Simple(_) | Head::Float(_) => push(out, head),
        Head::Bytes(Some(byte_len)) | Head::Text(Some(byte_len)) => {
            push(out, head);
            out.extend_from_slice(cursor.bytes(byte_len)?);
        }
        Head::Bytes(None) => {
            join_chunks(cursor, out, false)?;
            let byte_len = out.len().strict_sub(start);
            prefix(out, start, Head::Bytes(Some(byte_len)));
        }
        Head::Text(None) => {
            join_chunks(cursor, out, true)?;
            let byte_len = out.len().strict_sub(start);
            prefix(out, start, Head::Text(Some(byte_len)));
        }
        Head::Tag(_) => {
            let levels = deeper(at, levels)?;
            push(out, head);
            canonical_at(cursor, out, levels)?;
        }
        Head::Array(mut left) => {
            let levels = deeper(at, levels)?;
            let mut len = 0usize;
            while cursor.more(&mut left) {
                canonical_at(cursor, out, levels)?;
                len = len.strict_add(1);
            }
            prefix(out, start, Head::Array(Some(len)));
        }
        Head::Map(mut left) => {
            let levels = deeper(at, levels)?;
            let (mut pairs, mut offsets) = (Vec::new(), Vec::new());
            while cursor.more(&mut left) {
                offsets.push(cursor.offset());
                let key = out.len();
                canonical_at(cursor, out, levels)?;
                pairs.push((key, out.len()));
                canonical_at(cursor, out, levels)?;
            }
            if let Some(at) = sort_pairs(out, &pairs).and_then(|pair| offsets.get(pair)) {
                return Err(Flaw::duplicate(*at));
            }
            prefix(out, start, Head::Map(Some(pairs.len())));
        }
        Head::Break => return Err(Flaw::cbor(at, Rule::Break)),
    }
    Ok(())
}

fn join_chunks(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, text: bool) -> Result<(), Flaw> {
    while let Some(byte_len) = cursor.chunk(text)? {
        out.extend_from_slice(cursor.bytes(byte_len)?);
    }
    Ok(())
}

/// Inserts a head before the bytes written since `start`.
fn prefix(out: &mut Vec<u8>, start: usize, head: Head) {
    let body = out.len();
    push(out, head);
    let head = out.len().strict_sub(body);
    if let Some(tail) = out.get_mut(start..) {
        tail.rotate_right(head);
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;
    use crate::cbor::Cursor;
    use crate::cbor::cursor::Flaw;

    #[test]
    fn the_canonical_form_is_that_of_the_value() {
        for bytes in [
            &b"\x18\x05"[..],
            b"\x7F\x61a\x61b\xFF",
            b"\x5F\x41a\x40\xFF",
            b"\x9F\x01\xFB\x3F\xF0\x00\x00\x00\x00\x00\x00\xFF",
            b"\xBF\x62bb\x9F\x01\xFF\x61a\xBF\x02\x03\x01\x04\xFF\xFF",
            b"\xA3\x03\x9F\x00\xFF\x02\x81\x00\x18\x01\x80",
            b"\xC1\x1A\x00\x00\x00\x01",
            b"\xFA\x7F\xC0\x00\x00",
        ] {
            let mut out = b"before".to_vec();
            canonical(&mut Cursor::new(bytes), &mut out).unwrap();
            let value = Cursor::new(bytes).value().unwrap().to_cbor().unwrap();
            assert_eq!(out.strip_prefix(b"before"), Some(&value[..]), "{bytes:x?}");
        }
    }

    #[test]
    fn the_later_of_two_equal_keys_is_found() {
        for (bytes, at) in [
            (&b"\xA2\x01\x00\x01\x00"[..], 3),
            (b"\xA3\x02\x00\x01\x00\x18\x02\x00", 5),
            (b"\x81\xA2\xA0\x00\xBF\xFF\x00", 4),
        ] {
            let flaw = canonical(&mut Cursor::new(bytes), &mut Vec::new()).unwrap_err();
            assert_eq!(flaw, Flaw::duplicate(at), "{bytes:x?}");
        }
    }
}
