//! Checking that the keys of a map are unique, in bounded memory and time.

use std::cmp::Ordering;

use super::MAX_KEY_LEN;
use super::canonical::canonical;
use super::cursor::{Cursor, Flaw, Head};
use crate::names::narrow;

/// The keys of one map. Their offsets are at the end of a stack that all open maps share.
///
/// Maps of real files have at most a dozen keys, and a mask of 64 bits usually shows that they differ.
/// Otherwise the keys are sorted and neighbours compared. That takes n log n steps for any map, and there
/// is no hash table to flood.
///
/// Large maps are also checked whenever they double. Many unique keys need many bytes, but a duplicate key
/// can be one byte: it is found before the list of offsets grows large.
#[derive(Debug)]
pub(crate) struct Unique {
    /// Where the keys of this map begin on the stack.
    base: usize,
    mask: u64,
    /// Two keys have the same bit, or a key has no bit.
    suspect: bool,
    texts: bool,
    /// The number of keys at which the next check is due.
    next_check: usize,
}

impl Unique {
    pub(super) const fn new(base: usize) -> Self {
        Unique { base, mask: 0, suspect: false, texts: true, next_check: 1024 }
    }

    /// Adds a text of one chunk that begins at `at`.
    #[inline]
    pub(super) fn add_text(
        &mut self,
        at: usize,
        text: &[u8],
        keys: &mut Vec<u32>,
        bytes: &[u8],
    ) -> Result<(), Flaw> {
        let bit = bit_of(text);
        self.suspect |= self.mask & bit != 0;
        self.mask |= bit;
        self.add(at, keys, bytes)
    }

    pub(super) fn add_other(
        &mut self,
        at: usize,
        keys: &mut Vec<u32>,
        bytes: &[u8],
    ) -> Result<(), Flaw> {
        self.suspect = true;
        self.texts &= bytes.get(at).is_some_and(|initial| initial >> 5 == 3);
        self.add(at, keys, bytes)
    }

    #[inline]
    fn add(&mut self, at: usize, keys: &mut Vec<u32>, bytes: &[u8]) -> Result<(), Flaw> {
        if keys.len() == keys.capacity() {
            let reserved = keys.try_reserve(1);
            reserved.map_err(|_| Flaw::allocation::<u32>(keys.len()))?;
        }
        keys.push(narrow(at));
        if keys.len().strict_sub(self.base) >= self.next_check {
            self.next_check = self.next_check.strict_mul(2);
            self.check(keys, bytes)?;
        }
        Ok(())
    }

    /// Takes the keys off the stack.
    #[inline]
    pub(super) fn close(self, keys: &mut Vec<u32>, bytes: &[u8]) -> Result<(), Flaw> {
        if self.suspect {
            self.check(keys, bytes)?;
        }
        keys.truncate(self.base);
        Ok(())
    }

    #[cold]
    fn check(&self, keys: &mut [u32], bytes: &[u8]) -> Result<(), Flaw> {
        let keys = keys.get_mut(self.base..).unwrap_or_default();
        if self.texts {
            return check_texts(keys, bytes);
        }
        // The start of each key in `encoded`.
        let mut starts: Vec<u32> = Vec::new();
        let reserved = starts.try_reserve_exact(keys.len());
        reserved.map_err(|_| Flaw::allocation::<u32>(keys.len()))?;
        let mut encoded = Vec::new();
        for at in keys.iter().copied() {
            let mut end = Cursor::at(bytes, at as usize);
            end.skip()?;
            // A key with parts may become longer, because heads of indefinite length are shorter, but
            // by less than `MAX_KEY_LEN`.
            let byte_len = end.offset().strict_sub(at as usize);
            let room = byte_len.strict_add(MAX_KEY_LEN);
            let reserved = encoded.try_reserve(room);
            reserved.map_err(|_| Flaw::allocation::<u8>(room))?;
            let start = u32::try_from(encoded.len());
            starts.push(start.map_err(|_| Flaw::allocation::<u8>(encoded.len()))?);
            canonical(&mut Cursor::at(bytes, at as usize), &mut encoded)?;
        }
        let key = |start: u32| item_at(&encoded, start as usize);
        // Compares without looking for the ends of keys. A difference found there is a difference of the
        // keys, because no encoding is a prefix of another. Bytes behind equal keys may differ, but no
        // other key sorts between those two.
        let near = |start: u32| {
            let behind = encoded.get(start as usize..).unwrap_or_default();
            behind.get(..MAX_KEY_LEN).unwrap_or(behind)
        };
        let order = |a: u32, b: u32| near(a).cmp(near(b)).then_with(|| key(a).cmp(key(b)));
        starts.sort_unstable_by(|a, b| order(*a, *b));
        let mut pairs = starts.windows(2);
        let repeated = pairs.find_map(|pair| match *pair {
            [a, b] if key(a) == key(b) => Some(a.max(b)),
            _ => None,
        });
        let Some(repeated) = repeated else {
            return Ok(());
        };
        // `encoded` has the order of `keys`.
        let before = starts.iter().filter(|start| **start < repeated).count();
        let at = keys.get(before).copied().unwrap_or_default();
        Err(Flaw::duplicate(at as usize))
    }
}

fn item_at(bytes: &[u8], start: usize) -> &[u8] {
    let mut end = Cursor::at(bytes, start);
    let skipped = end.skip().ok();
    let item = skipped.and_then(|()| bytes.get(start..end.offset()));
    item.unwrap_or_default()
}

/// Sorts the offsets of texts by content, and refuses duplicates.
fn check_texts(keys: &mut [u32], bytes: &[u8]) -> Result<(), Flaw> {
    keys.sort_unstable_by(|a, b| compare_texts(bytes, *a, *b));
    for (&a, &b) in keys.iter().zip(keys.iter().skip(1)) {
        if compare_texts(bytes, a, b).is_eq() {
            let at = a.max(b) as usize;
            return Err(Flaw::duplicate(at));
        }
    }
    Ok(())
}

/// One of 64 bits, chosen so that the specification's keys of one map have different bits.
#[inline]
fn bit_of(bytes: &[u8]) -> u64 {
    let first = bytes.first().copied().unwrap_or_default();
    let last = bytes.last().copied().unwrap_or_default();
    let mixed = bytes
        .len()
        .wrapping_add(usize::from(first).wrapping_mul(2))
        .wrapping_add(usize::from(last));
    1 << (mixed & 63)
}

/// Compares two texts in `bytes` by their joined content.
#[inline]
pub(crate) fn compare_texts(bytes: &[u8], a: u32, b: u32) -> Ordering {
    match (whole(bytes, a), whole(bytes, b)) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => compare_chunked(bytes, a, b),
    }
}

/// The text at `at`, if it has one chunk.
#[inline]
pub(crate) fn whole(bytes: &[u8], at: u32) -> Option<&[u8]> {
    let mut cursor = Cursor::at(bytes, at as usize);
    match cursor.head() {
        Ok(Head::Text(Some(byte_len))) => cursor.bytes(byte_len).ok(),
        _ => None,
    }
}

#[cold]
fn compare_chunked(bytes: &[u8], a: u32, b: u32) -> Ordering {
    let mut left = Chunks::new(bytes, a);
    let mut right = Chunks::new(bytes, b);
    let (mut a, mut b) = (&[][..], &[][..]);
    loop {
        while a.is_empty() {
            match left.next() {
                Some(chunk) => a = chunk,
                // The left one has ended: they are equal if the right one has no more bytes.
                None if b.is_empty() && right.all(<[u8]>::is_empty) => return Ordering::Equal,
                None => return Ordering::Less,
            }
        }
        while b.is_empty() {
            match right.next() {
                Some(chunk) => b = chunk,
                None => return Ordering::Greater,
            }
        }
        let shared = a.len().min(b.len());
        let (head, tail) = a.split_at_checked(shared).unwrap_or_default();
        let (other_head, other_tail) = b.split_at_checked(shared).unwrap_or_default();
        match head.cmp(other_head) {
            Ordering::Equal => (a, b) = (tail, other_tail),
            order => return order,
        }
    }
}

/// Compares the text at `at` with `name`, by bytes.
pub(crate) fn text_cmp(bytes: &[u8], at: u32, name: &str) -> Ordering {
    if let Some(text) = whole(bytes, at) {
        return text.cmp(name.as_bytes());
    }
    let mut name = name.as_bytes();
    for chunk in Chunks::new(bytes, at) {
        let shared = chunk.len().min(name.len());
        let (head, tail) = name.split_at_checked(shared).unwrap_or_default();
        match chunk.cmp(head) {
            Ordering::Equal => name = tail,
            order => return order,
        }
    }
    if name.is_empty() { Ordering::Equal } else { Ordering::Less }
}

/// The chunks of a scanned text; a text of definite length has one.
struct Chunks<'a> {
    cursor: Cursor<'a>,
    chunked: bool,
    done: bool,
}

impl<'a> Chunks<'a> {
    fn new(bytes: &'a [u8], at: u32) -> Self {
        let mut cursor = Cursor::at(bytes, at as usize);
        // 7F begins a text of indefinite length.
        let chunked = cursor.peek() == Some(0x7F);
        if chunked {
            let _ = cursor.bytes(1);
        }
        Chunks { cursor, chunked, done: false }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.done {
            return None;
        }
        let byte_len = self.cursor.chunk(true).ok().flatten();
        self.done = !self.chunked || byte_len.is_none();
        self.cursor.bytes(byte_len?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Unique, bit_of, compare_texts, text_cmp};
    use crate::cbor::cursor::Flaw;
    use std::cmp::Ordering;

    #[test]
    fn the_later_of_two_equal_keys_is_found_among_keys_of_any_kind() {
        // Of keys at these offsets, the one at 6 is the one at 1, spelled in another way.
        let bytes = b"\x09\x81\x01\x62zz\x9F\x01\xFF\x05";
        let mut keys = vec![0, 1, 3, 6, 9];
        let mut unique = Unique::new(0);
        (unique.suspect, unique.texts) = (true, false);
        assert_eq!(unique.close(&mut keys, bytes), Err(Flaw::duplicate(6)));
    }

    #[test]
    fn the_keys_of_the_schema_have_bits_of_their_own() {
        for keys in [
            "version attributes objects tensors generator",
            "shape format attributes components dtype",
            "dtype type offset length uncompressed_length encoding digest",
            "packed_weight scales zeros",
            "values indices indptr",
            "name offset size dtype layout shape encoding data_endianness checksum",
        ] {
            let bits = keys.split(' ').map(|key| bit_of(key.as_bytes()));
            let (count, mask) = bits.fold((0, 0), |(count, mask), bit| (count + 1, mask | bit));
            assert_eq!(mask.count_ones(), count, "{keys}");
        }
    }

    #[test]
    fn compares_texts_by_content() {
        let bytes = b"\x62ab\x7F\x61a\x60\x61b\xFF\x61a\x7F\xFF\x60\x63abc";
        let (ab, chunked, a, none, empty, abc) = (0, 3, 10, 12, 14, 15);
        assert_eq!(compare_texts(bytes, ab, chunked), Ordering::Equal);
        assert_eq!(compare_texts(bytes, chunked, ab), Ordering::Equal);
        assert_eq!(compare_texts(bytes, none, empty), Ordering::Equal);
        assert_eq!(compare_texts(bytes, a, chunked), Ordering::Less);
        assert_eq!(compare_texts(bytes, chunked, abc), Ordering::Less);
        assert_eq!(compare_texts(bytes, abc, chunked), Ordering::Greater);
        assert_eq!(compare_texts(bytes, empty, a), Ordering::Less);
        assert_eq!(text_cmp(bytes, chunked, "ab"), Ordering::Equal);
        assert_eq!(text_cmp(bytes, chunked, "a"), Ordering::Greater);
        assert_eq!(text_cmp(bytes, chunked, "abc"), Ordering::Less);
        assert_eq!(text_cmp(bytes, none, ""), Ordering::Equal);
    }
}
