//! The offsets where a manifest may begin.

use std::cmp::Ordering;

use zt_container::{ALIGNMENT, HEADER_LEN, MAGIC, SIZE_LEN, Source, Span, bytes_of};

use super::needles::Needles;
use crate::cores::progress::{Progress, report};
use crate::error::{Error, Result};

/// Bytes that are searched at a time.
const PIECE: u64 = 1 << 20;

/// A manifest may begin this many bytes before a needle: a size, the head of a map, and the head of
/// the array around it.
const BEFORE: u64 = 8;

/// The length of the longest needle.
const LONGEST: u64 = 11;

/// The number of places of each sort that are kept, the last ones of the file. Otherwise a blob
/// full of magics would take memory in proportion to it.
const MOST: usize = 1 << 16;

/// The text that each map of a manifest of layout 0.1 begins with.
const NAME: &[u8] = b"\x64name";

/// The first key of all other manifests, with the head of its text, if the root has only keys of
/// the specification. Unknown keys may come first; then only a trailer, or its beginning, leads to
/// the root.
const ROOT_KEYS: [&[u8]; 5] =
    [b"\x67version", b"\x67objects", b"\x67tensors", b"\x6Aattributes", b"\x69generator"];

/// The results of one pass over a file, the last of each sort first.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Magics after the file's first byte. A file may begin at each: this one, if bytes were put
    /// before it, or one within a blob.
    pub(super) headers: Vec<u64>,
    /// The manifests that trailers of layout 1.1 and 1.2 lead to. They are within the file.
    pub(super) trailers: Vec<Span>,
    /// Offsets where the root of a manifest may begin, with or without a trailer.
    pub(super) roots: Vec<Root>,
    /// The manifests that the end of the file leads to if it is the beginning of a trailer, longest
    /// beginning first.
    pub(super) endings: Vec<Ending>,
    /// Whether there were more than are kept.
    pub(super) is_cut: bool,
}

/// A manifest that the last bytes of a file lead to, if they are the beginning of its trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) root: Root,
    pub(super) manifest: Span,
    /// The number of bytes of the trailer that exist. If the size is cut, its other bytes count as
    /// zeros.
    pub(super) kept: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// A map, of layout 1.0 and later.
    Map(u64),
    /// An array of maps, of layout 0.1.
    Array(u64),
}

impl Places {
    /// One pass over the file from its end, in pieces. The time is proportional to the bytes that are
    /// stored, since holes of a sparse file are not read. The memory is constant.
    ///
    /// Manifests of layout 0.1 have no magic of their own. They are searched only if the header has
    /// that layout.
    pub(super) fn of(
        source: &dyn Source,
        is_0_1: bool,
        progress: Option<Progress<'_>>,
    ) -> Result<Self> {
        let needles = Needles::new(if is_0_1 {
            vec![NAME]
        } else {
            [&[&MAGIC[..]], &ROOT_KEYS[..]].concat()
        });
        let mut places = Places { endings: endings(source, is_0_1)?, ..Places::default() };
        let mut end = source.byte_len();
        while end > 0 {
            end = before_hole(source, end);
            let start = end.saturating_sub(PIECE);
            let from = start.saturating_sub(BEFORE);
            let to = end.strict_add(LONGEST).min(source.byte_len());
            let span = Span::between(from, to).ok_or_else(Error::out_of_order)?;
            let bytes = bytes_of(source, span)?;
            let mut found = Vec::new();
            needles.find_in(&bytes, |at, text| found.push((at, text)));
            for (at, text) in found.into_iter().rev() {
                let offset = from.strict_add(at as u64);
                // The others are found in the pieces around this one.
                if (start..end).contains(&offset) {
                    let before = bytes.get(..at).unwrap_or_default();
                    places.add(offset, text, before);
                }
            }
            report(progress, end.strict_sub(start))?;
            end = start;
        }
        Ok(places)
    }

    /// The manifest at the end of the file, if its last bytes are credible: a whole size and some
    /// of the magic, or a size that leads to the beginning of a manifest.
    pub(super) fn last(&self) -> Option<Span> {
        let is_found = |ending: &&Ending| match ending.kept.cmp(&SIZE_LEN) {
            Ordering::Greater => true,
            Ordering::Equal => self.roots.contains(&ending.root),
            Ordering::Less => false,
        };
        let found = self.endings.iter().find(is_found);
        found.map(|ending| ending.manifest)
    }

    /// Handles a needle at `offset`, after the bytes `before`.
    fn add(&mut self, offset: u64, text: &[u8], before: &[u8]) {
        if text == MAGIC {
            // Headers at these offsets decide whose manifest lies next to its blobs. They are few.
            if (1..ALIGNMENT).contains(&offset) {
                self.headers.push(offset);
            } else if offset > 0 {
                keep(&mut self.headers, offset, &mut self.is_cut);
            }
            if let Some(manifest) = declared(offset, before) {
                keep(&mut self.trailers, manifest, &mut self.is_cut);
            }
            return;
        }
        let Some(map_len) = map_head(before) else {
            return;
        };
        let at = offset.checked_sub(map_len as u64);
        let before = before.get(..before.len().strict_sub(map_len));
        let root = match (text == NAME, at, before) {
            (false, Some(at), _) => Some(Root::Map(at)),
            (true, Some(at), Some(before)) => {
                array_head(before).and_then(|len| at.checked_sub(len as u64).map(Root::Array))
            }
            _ => None,
        };
        if let Some(root) = root.filter(|root| root.offset() >= HEADER_LEN) {
            keep(&mut self.roots, root, &mut self.is_cut);
        }
    }
}

/// The end of the last piece before `end` that is not all hole, found by steps that double and
/// halve: a hole of 8 TiB takes some fifty questions.
fn before_hole(source: &dyn Source, mut end: u64) -> u64 {
    let mut step = PIECE;
    while end > 0 && step >= PIECE {
        let start = end.saturating_sub(step);
        let to = end.strict_add(LONGEST).min(source.byte_len());
        if source.data_from(start.saturating_sub(BEFORE)) >= to {
            end = start;
            step = step.saturating_mul(2);
        } else {
            step /= 2;
        }
    }
    end
}

impl Root {
    pub(super) const fn offset(self) -> u64 {
        match self {
            Root::Map(offset) | Root::Array(offset) => offset,
        }
    }
}

fn keep<T>(places: &mut Vec<T>, place: T, is_cut: &mut bool) {
    if places.len() < MOST {
        places.push(place);
    } else {
        *is_cut = true;
    }
}

/// The manifests that the last bytes of a file lead to, for each number of bytes of a trailer.
fn endings(source: &dyn Source, is_0_1: bool) -> Result<Vec<Ending>> {
    let trailer_len = SIZE_LEN.strict_add(MAGIC.len() as u64);
    let len = source.byte_len().min(trailer_len);
    let start = source.byte_len().strict_sub(len);
    let span = Span::new(start, len).ok_or_else(Error::out_of_order)?;
    let bytes = bytes_of(source, span)?;
    let mut endings = Vec::new();
    for at in 0..bytes.len() {
        let kept = bytes.get(at..).unwrap_or_default();
        let (size, magic) = kept.split_at_checked(8).unwrap_or((kept, &[]));
        let mut declared = [0; 8];
        for (byte, is) in declared.iter_mut().zip(size) {
            *byte = *is;
        }
        let end = start.strict_add(at as u64);
        let first = end.checked_sub(u64::from_le_bytes(declared));
        let first = first.filter(|first| *first >= HEADER_LEN);
        let manifest = first.and_then(|first| Span::between(first, end));
        let is_one = |manifest: &Span| !manifest.is_empty() && MAGIC.starts_with(magic);
        if let Some(manifest) = manifest.filter(is_one) {
            let root = if is_0_1 { Root::Array } else { Root::Map };
            endings.push(Ending {
                root: root(manifest.offset()),
                manifest,
                kept: kept.len() as u64,
            });
        }
    }
    Ok(endings)
}

/// The manifest of the size before a footer magic at `offset`. Spec: §2.1.
fn declared(offset: u64, before: &[u8]) -> Option<Span> {
    let size = u64::from_le_bytes(*before.last_chunk()?);
    let end = offset.checked_sub(SIZE_LEN)?;
    let start = end.checked_sub(size)?;
    Span::between(start, end).filter(|span| start >= HEADER_LEN && !span.is_empty())
}

/// The length of the head of a map that ends `before`, for up to 255 pairs.
fn map_head(before: &[u8]) -> Option<usize> {
    match before {
        [.., 0xA1..=0xB7 | 0xBF] => Some(1),
        [.., 0xB8, _] => Some(2),
        _ => None,
    }
}

/// The length of the head of an array that ends `before` and is not empty.
fn array_head(before: &[u8]) -> Option<usize> {
    match before {
        [.., 0x81..=0x97 | 0x9F] => Some(1),
        [.., 0x98, _] => Some(2),
        [.., 0x99, _, _] => Some(3),
        [.., 0x9A, _, _, _, _] => Some(5),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use zt_container::Memory;

    fn places(bytes: &[u8], is_0_1: bool) -> Places {
        Places::of(&Memory::new(bytes), is_0_1, None).unwrap()
    }

    /// The border between two pieces may lie anywhere, also within a needle.
    #[test]
    fn finds_each_place_once_across_the_borders_of_pieces() {
        let parts: [&[u8]; 3] =
            [b"\xA2\x67objects\xA0\x67version\x651.2.0", &24_u64.to_le_bytes(), b"ZTEN1000"];
        let trailer = parts.concat();
        let piece = usize::try_from(PIECE).unwrap();
        for behind in (piece - 60..piece + 60).chain([0]) {
            let bytes = [&[0; 64][..], &trailer, &vec![0; behind]].concat();
            let places = places(&bytes, false);
            let manifest = Span::new(64, 24).unwrap();
            assert_eq!(places.trailers, [manifest], "{behind}");
            assert_eq!(places.roots, [Root::Map(64)], "{behind}");
            assert_eq!(places.headers, [64 + 24 + 8], "{behind}");
        }
    }

    #[test]
    fn finds_the_array_of_layout_0_1_and_not_each_of_its_maps() {
        for head in [&b"\x82"[..], b"\x9F", b"\x98\x02", b"\x99\x00\x02", b"\x9A\x00\x00\x00\x02"] {
            let bytes = [b"ZTEN0001", head, b"\xBF\x64name\x60\xFF\xA1\x64name\x60"].concat();
            assert_eq!(places(&bytes, true).roots, [Root::Array(8)]);
        }
    }

    #[test]
    fn finds_the_map_of_more_keys_than_its_first_byte_counts() {
        let bytes = [&[0; 64][..], b"\xB8\x18\x67objects\xA0"].concat();
        assert_eq!(places(&bytes, false).roots, [Root::Map(64)]);
    }

    #[test]
    fn a_manifest_is_not_empty_and_not_in_the_header() {
        for (size, is_one) in [(0_u64, false), (1, true), (56, true), (57, false)] {
            let bytes = [&[0; 64][..], &size.to_le_bytes(), &MAGIC].concat();
            assert_eq!(places(&bytes, false).trailers.len(), usize::from(is_one));
        }
    }

    #[test]
    fn keeps_only_the_last_places() {
        let fake = [&1_u64.to_le_bytes()[..], &MAGIC].concat();
        let bytes = fake.repeat(MOST + 10);
        let places = places(&bytes, false);
        assert!(places.is_cut);
        assert_eq!(places.trailers.len(), MOST);
        let last = bytes.len() as u64 - 16;
        assert_eq!(places.trailers.first(), Span::new(last - 1, 1).as_ref());
        // Those at 8, 24, 40 and 56 are kept, too.
        assert_eq!(places.headers.len(), MOST + 4);
        assert_eq!(places.headers.last(), Some(&8));
    }
}
