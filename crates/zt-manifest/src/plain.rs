//! Objects of the usual form, decoded and validated in one step. A file may have a million of them.
//!
//! Invariant: the result is the one that `schema` and `validate` would give. Where they refuse, warn, or
//! keep unknown fields, the result here is `None`.

use zt_container::{Blob, Digest, Encoding, Limits, Span, check_declared};

use crate::attributes::Attributes;
use crate::cbor::{Cursor, Head};
use crate::dtype::DType;
use crate::object::{Component, Object};
use crate::text::intern;
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
    let mut components = Vec::new();
    let add = |left: usize, role, part| {
        if components.is_empty() {
            let most = limits.components.min(MOST);
            components.try_reserve_exact((left <= most).then_some(left)?).ok()?;
        }
        components.push((intern(role), component(part, placement)?));
        Some(())
    };
    let (mut shape, format) = fields(&mut Cursor::at(bytes, at), add)?;
    Some(Object {
        shape: self::shape(&mut shape, limits.rank)?,
        format: intern(format),
        attributes: None,
        components,
        extra: Attributes::new(),
    })
}

/// Passes over an object of one component that needs no scanner: it is well-formed, and its keys differ.
/// It nests [`NESTING`] maps.
pub(crate) fn pass(cursor: &mut Cursor<'_>) -> Option<()> {
    fields(cursor, |left, _, _| (left == 1).then_some(())).map(drop)
}

/// Maps in an object of the usual form, one in the other.
pub(crate) const NESTING: usize = 3;

/// Shows each component to `add`, with the number of those that are left. The result is the place of the
/// shape, and the format.
fn fields<'a>(
    cursor: &mut Cursor<'a>,
    mut add: impl FnMut(usize, &'a str, Part<'a>) -> Option<()>,
) -> Option<(Cursor<'a>, &'a str)> {
    let (mut shape, mut format, mut components) = (None, None, None);
    for _ in 0..map(cursor)? {
        match word(cursor)? {
            b"shape" => {
                once(&mut shape, *cursor)?;
                for _ in 0..rank(cursor)? {
                    unsigned(cursor)?;
                }
            }
            b"format" => once(&mut format, text(cursor)?)?,
            b"components" => {
                let count = map(cursor)?;
                once(&mut components, count)?;
                for left in (1..=count).rev() {
                    add(left, text(cursor)?, part(cursor)?)?;
                }
            }
            _ => return None,
        }
    }
    components.and(shape.zip(format))
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
            let part = part(&mut cursor)?;
            let is_known =
                |digest: &&str| digest.starts_with("crc32c:") || digest.starts_with("sha256:");
            if !part.digest.as_ref().is_none_or(is_known) {
                return None;
            }
            let place = (part.offset?, part.length? != 0);
            first = Some(first.map_or(place, |first: (u64, bool)| first.min(place)));
        }
    }
    first
}

fn shape(cursor: &mut Cursor<'_>, most: usize) -> Option<Vec<u64>> {
    let rank = rank(cursor)?;
    let mut shape = Vec::new();
    if rank > most || shape.try_reserve_exact(rank).is_err() {
        return None;
    }
    for _ in 0..rank {
        shape.push(unsigned(cursor)?);
    }
    Some(shape)
}

/// The fields of a component, as they are spelled.
#[derive(Default)]
struct Part<'a> {
    dtype: Option<&'a str>,
    logical_type: Option<&'a str>,
    offset: Option<u64>,
    length: Option<u64>,
    digest: Option<&'a str>,
    encoding: Option<&'a str>,
    decoded_len: Option<u64>,
}

/// The next item, a component without unknown fields.
fn part<'a>(cursor: &mut Cursor<'a>) -> Option<Part<'a>> {
    let mut part = Part::default();
    for _ in 0..map(cursor)? {
        match word(cursor)? {
            b"dtype" => once(&mut part.dtype, text(cursor)?)?,
            b"type" => once(&mut part.logical_type, text(cursor)?)?,
            b"offset" => once(&mut part.offset, unsigned(cursor)?)?,
            b"length" => once(&mut part.length, unsigned(cursor)?)?,
            b"digest" => once(&mut part.digest, text(cursor)?)?,
            b"encoding" => once(&mut part.encoding, text(cursor)?)?,
            b"uncompressed_length" => once(&mut part.decoded_len, unsigned(cursor)?)?,
            _ => return None,
        }
    }
    Some(part)
}

fn component(part: Part<'_>, placement: &Placement) -> Option<Component> {
    let digest = match part.digest {
        Some(digest) => Some(digest.parse().ok()?),
        None => None,
    };
    let encoding = match part.encoding {
        Some(encoding) => Encoding::from_name(encoding)?,
        None => Encoding::Raw,
    };
    let (mut decoded_len, length) = (part.decoded_len, part.length);
    if encoding == Encoding::Raw {
        decoded_len = decoded_len.or(length);
    }
    let span = Span::new(part.offset?, length?)?;
    let blob = Blob { span, encoding, decoded_len: Some(decoded_len?), digest, chunks: None };
    let is_known = !matches!(blob.digest, Some(Digest::Unknown { .. }));
    let is_sound = placement.data.contains(span) && span.is_aligned() && is_known;
    if !is_sound || check_declared(&blob, &placement.limits).is_err() {
        return None;
    }
    let component = Component::new(DType::from_name(part.dtype?)?, blob);
    let logical_type = part.logical_type.map(intern);
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
#[inline]
fn word<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    // Most are shorter than 24 bytes, and their head is one byte.
    let byte_len = match cursor.peek()? {
        short @ 0x60..=0x77 => {
            cursor.bytes(1).ok()?;
            usize::from(short & 0x1F)
        }
        _ => match cursor.head().ok()? {
            Head::Text(Some(byte_len)) => byte_len,
            _ => return None,
        },
    };
    cursor.bytes(byte_len).ok()
}

#[inline]
fn text<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    std::str::from_utf8(word(cursor)?).ok()
}

/// The number of items of the next item, an array.
fn rank(cursor: &mut Cursor<'_>) -> Option<usize> {
    match cursor.head().ok()? {
        Head::Array(rank) => rank,
        _ => None,
    }
}

/// Fills the place; `None` if it is filled already: the key is there twice.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn unsigned(cursor: &mut Cursor<'_>) -> Option<u64> {
    match cursor.head().ok()? {
        Head::Unsigned(value) => Some(value),
        _ => None,
    }
}
