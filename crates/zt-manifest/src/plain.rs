//! Objects of the usual form, decoded and validated in one step. A file may have a million of them.
//!
//! Invariant: the result is the one that `schema` and `validate` would give. Where they refuse, warn, or
//! keep unknown fields, the result here is `None`.

use zt_container::{Blob, Digest, Encoding, Limits, Span, check_declared};

use crate::attributes::Attributes;
use crate::cbor::{Cursor, Head};
use crate::dtype::DType;
use crate::object::{Component, Object};
use crate::schema::CHUNKS;
use crate::text::{Text, intern};
use crate::validate::Placement;

/// Most components of an object of the usual form: memory for all of them is reserved at once.
const MOST: usize = 16;

/// The object at `at` of a scanned manifest of 1.1 or later. `None` if it has attributes, unknown fields,
/// or any fault.
pub(crate) fn object(
    bytes: &[u8],
    at: usize,
    placement: &Placement,
    limits: &Limits,
) -> Option<Object> {
    let mut cursor = Cursor::at(bytes, at);
    let (mut shape, mut format, mut components) = (None, None, None);
    for _ in 0..map(&mut cursor)? {
        match word(&mut cursor)? {
            b"shape" => shape = Some(self::shape(&mut cursor, limits.rank)?),
            b"format" => format = Some(intern(text(&mut cursor)?)),
            b"components" => {
                let most = limits.components.min(MOST);
                components = Some(self::components(&mut cursor, placement, most)?);
            }
            _ => return None,
        }
    }
    Some(Object {
        shape: shape?,
        format: format?,
        attributes: None,
        components: components?,
        extra: Attributes::new(),
    })
}

/// The lowest offset of a component of the object at `at`, and whether that component has bytes. `None`
/// also if a warning may be due: for an unknown digest, or a table of chunk digests.
pub(crate) fn beginning(bytes: &[u8], at: usize) -> Option<(u64, bool)> {
    let mut cursor = Cursor::at(bytes, at);
    let mut first = None;
    for _ in 0..map(&mut cursor)? {
        if word(&mut cursor)? != b"components" {
            cursor.skip().ok()?;
            continue;
        }
        for _ in 0..map(&mut cursor)? {
            word(&mut cursor)?;
            let place = place(&mut cursor)?;
            first = Some(first.map_or(place, |first: (u64, bool)| first.min(place)));
        }
    }
    first
}

/// The offset of a component, and whether it has bytes.
fn place(cursor: &mut Cursor<'_>) -> Option<(u64, bool)> {
    let (mut offset, mut length) = (None, None);
    for _ in 0..map(cursor)? {
        match word(cursor)? {
            b"offset" => offset = Some(unsigned(cursor)?),
            b"length" => length = Some(unsigned(cursor)?),
            b"digest" => {
                let digest = word(cursor)?;
                if !digest.starts_with(b"crc32c:") && !digest.starts_with(b"sha256:") {
                    return None;
                }
            }
            key if key == CHUNKS.as_bytes() => return None,
            _ => cursor.skip().ok()?,
        }
    }
    Some((offset?, length? != 0))
}

fn shape(cursor: &mut Cursor<'_>, most: usize) -> Option<Vec<u64>> {
    let Head::Array(Some(rank)) = cursor.head().ok()? else {
        return None;
    };
    let mut shape = Vec::new();
    if rank > most || shape.try_reserve_exact(rank).is_err() {
        return None;
    }
    for _ in 0..rank {
        shape.push(unsigned(cursor)?);
    }
    Some(shape)
}

fn components(
    cursor: &mut Cursor<'_>,
    placement: &Placement,
    most: usize,
) -> Option<Vec<(Text, Component)>> {
    let count = map(cursor)?;
    let mut components = Vec::new();
    if count > most || components.try_reserve_exact(count).is_err() {
        return None;
    }
    for _ in 0..count {
        let role = intern(text(cursor)?);
        components.push((role, component(cursor, placement)?));
    }
    Some(components)
}

fn component(cursor: &mut Cursor<'_>, placement: &Placement) -> Option<Component> {
    let (mut dtype, mut logical_type, mut digest) = (None, None, None);
    let (mut offset, mut length, mut decoded_len) = (None, None, None);
    let mut encoding = Encoding::Raw;
    for _ in 0..map(cursor)? {
        match word(cursor)? {
            b"dtype" => dtype = Some(DType::from_name(text(cursor)?)?),
            b"type" => logical_type = Some(intern(text(cursor)?)),
            b"offset" => offset = Some(unsigned(cursor)?),
            b"length" => length = Some(unsigned(cursor)?),
            b"digest" => digest = Some(text(cursor)?.parse().ok()?),
            b"encoding" => encoding = Encoding::from_name(text(cursor)?)?,
            b"uncompressed_length" => decoded_len = Some(unsigned(cursor)?),
            _ => return None,
        }
    }
    if encoding == Encoding::Raw {
        decoded_len = decoded_len.or(length);
    }
    let span = Span::new(offset?, length?)?;
    let blob = Blob { span, encoding, decoded_len: Some(decoded_len?), digest, chunks: None };
    let is_known = !matches!(blob.digest, Some(Digest::Unknown { .. }));
    let is_sound = placement.data.contains(span) && span.is_aligned() && is_known;
    if !is_sound || check_declared(&blob, &placement.limits).is_err() {
        return None;
    }
    let component = Component::new(dtype?, blob);
    Some(Component { logical_type, ..component })
}

/// The length of the next item, a map.
fn map(cursor: &mut Cursor<'_>) -> Option<usize> {
    match cursor.head().ok()? {
        Head::Map(len) => len,
        _ => None,
    }
}

/// The bytes of the next item, a text of one chunk.
fn word<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    match cursor.head().ok()? {
        Head::Text(Some(byte_len)) => cursor.bytes(byte_len).ok(),
        _ => None,
    }
}

fn text<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    std::str::from_utf8(word(cursor)?).ok()
}

fn unsigned(cursor: &mut Cursor<'_>) -> Option<u64> {
    match cursor.head().ok()? {
        Head::Unsigned(value) => Some(value),
        _ => None,
    }
}
