//! An index of the names of a manifest's objects: twelve bytes each, of any length.

use std::cmp::Ordering;

use crate::cbor::{Cursor, Flaw, Head, compare_texts, text_cmp, whole};

/// The offsets of names and objects, in the order of the file, and the lookup by name.
///
/// A lookup is a binary search, so hostile names cannot make it slow. Real files have their names in one
/// of two orders; for any other order, a sorted list of positions is kept.
#[derive(Debug, Default)]
pub(crate) struct Names {
    entries: Vec<Entry>,
    order: Order,
    /// For names in chunks: the entry, and the end of its joined name in `joined`.
    chunked: Vec<(u32, u32)>,
    joined: String,
}

/// Offsets in the manifest.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: u32,
    object: u32,
}

#[derive(Debug, Default)]
enum Order {
    /// By bytes, as other writers of 1.0 to 1.2 sort them.
    #[default]
    Bytes,
    /// By length and then by bytes, as deterministic CBOR and our writer sort them.
    LengthFirst,
    /// Neither: the positions of the entries, sorted by the bytes of their names.
    Sorted(Vec<u32>),
}

impl Names {
    /// Reserves memory for the objects that a map declares. The cursor has checked that the bytes suffice.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), Flaw> {
        let reserved = self.entries.try_reserve_exact(len);
        reserved.map_err(|_| Flaw::allocation::<Entry>(len))
    }

    pub(crate) fn push(&mut self, name: usize, object: usize) -> Result<(), Flaw> {
        let reserved = self.entries.try_reserve(1);
        reserved.map_err(|_| Flaw::allocation::<Entry>(self.entries.len()))?;
        self.entries.push(Entry { name: narrow(name), object: narrow(object) });
        Ok(())
    }

    /// Finds the order of the names, or sorts them. Two equal names are a flaw.
    pub(crate) fn finish(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        let is_chunked = |entry: &Entry| bytes.get(entry.name as usize) == Some(&0x7F);
        if self.entries.iter().any(is_chunked) {
            // Sorted first, so that duplicate names are refused before names are joined in memory.
            self.sort(bytes)?;
            return self.join_chunked(bytes);
        }
        let (mut by_bytes, mut by_length) = (true, true);
        let mut names = self.entries.iter().map(|entry| whole(bytes, entry.name));
        let mut previous = names.next().flatten().unwrap_or_default();
        for name in names {
            let name = name.unwrap_or_default();
            let order = previous.cmp(name);
            by_bytes &= order.is_lt();
            by_length &= previous.len().cmp(&name.len()).then(order).is_lt();
            if !by_bytes && !by_length {
                return self.sort(bytes);
            }
            previous = name;
        }
        if !by_bytes {
            self.order = Order::LengthFirst;
        }
        Ok(())
    }

    fn sort(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        let mut sorted = Vec::new();
        let reserved = sorted.try_reserve_exact(self.entries.len());
        reserved.map_err(|_| Flaw::allocation::<u32>(self.entries.len()))?;
        sorted.extend((0..self.entries.len()).map(narrow));
        let entry = |index: u32| self.entries.get(index as usize);
        let name = |index: u32| entry(index).map_or(0, |entry| entry.name);
        sorted.sort_unstable_by(|a, b| compare_texts(bytes, name(*a), name(*b)));
        for (&a, &b) in sorted.iter().zip(sorted.iter().skip(1)) {
            if compare_texts(bytes, name(a), name(b)).is_eq() {
                let at = name(a).max(name(b)) as usize;
                return Err(Flaw::duplicate(at));
            }
        }
        self.order = Order::Sorted(sorted);
        Ok(())
    }

    fn join_chunked(&mut self, bytes: &[u8]) -> Result<(), Flaw> {
        for (index, entry) in self.entries.iter().enumerate() {
            let mut cursor = Cursor::at(bytes, entry.name as usize);
            if cursor.peek() != Some(0x7F) {
                continue;
            }
            let name = cursor.text()?.unwrap_or_default();
            let reserved = self.joined.try_reserve(name.len());
            reserved.map_err(|_| Flaw::allocation::<u8>(name.len()))?;
            self.joined.push_str(&name);
            let reserved = self.chunked.try_reserve(1);
            reserved.map_err(|_| Flaw::allocation::<(u32, u32)>(self.chunked.len()))?;
            let end = narrow(self.joined.len());
            self.chunked.push((narrow(index), end));
        }
        Ok(())
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn object(&self, index: usize) -> Option<usize> {
        self.entries.get(index).map(|entry| entry.object as usize)
    }

    /// Bytes of the name of the `index`th object; `None` if it is in chunks.
    pub(crate) fn byte_len(&self, bytes: &[u8], index: usize) -> Option<usize> {
        let entry = self.entries.get(index)?;
        whole(bytes, entry.name).map(<[u8]>::len)
    }

    pub(crate) fn name<'a>(&'a self, bytes: &'a [u8], index: usize) -> Option<&'a str> {
        let entry = self.entries.get(index)?;
        let mut cursor = Cursor::at(bytes, entry.name as usize);
        match cursor.head().ok()? {
            Head::Text(Some(byte_len)) => cursor.utf8(byte_len).ok(),
            _ => {
                let of = |(of, _): &(u32, u32)| *of as usize;
                let place = self.chunked.binary_search_by_key(&index, of).ok()?;
                let (_, end) = self.chunked.get(place)?;
                let before = place.checked_sub(1).and_then(|at| self.chunked.get(at));
                let start = before.map_or(0, |(_, end)| *end);
                self.joined.get(start as usize..*end as usize)
            }
        }
    }

    pub(crate) fn find(&self, bytes: &[u8], name: &str) -> Option<usize> {
        let by_bytes = |entry: &Entry| text_cmp(bytes, entry.name, name);
        match &self.order {
            Order::Bytes => self.entries.binary_search_by(by_bytes).ok(),
            Order::LengthFirst => {
                let order = |entry: &Entry| {
                    let found = whole(bytes, entry.name).unwrap_or_default();
                    let by_length = found.len().cmp(&name.len());
                    by_length.then_with(|| found.cmp(name.as_bytes()))
                };
                self.entries.binary_search_by(order).ok()
            }
            Order::Sorted(sorted) => {
                let order = |index: &u32| {
                    let entry = self.entries.get(*index as usize);
                    entry.map_or(Ordering::Less, by_bytes)
                };
                let place = sorted.binary_search_by(order).ok()?;
                sorted.get(place).map(|index| *index as usize)
            }
        }
    }
}

/// `at` as a `u32`: a manifest is at most `u32::MAX` bytes long.
#[expect(clippy::expect_used, reason = "`Index::parse` refuses longer manifests")]
pub(crate) fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("a manifest is at most `u32::MAX` bytes")
}
