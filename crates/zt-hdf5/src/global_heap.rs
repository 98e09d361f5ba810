//! Global heaps, which have the strings of variable length. Spec: III.E.
//!
//! ```text
//! "GCOL", version, length, (index, references, -, length, bytes) ...
//! ```
//!
//! Both heads and the bytes are padded to 8.

use std::collections::HashMap;
use std::ops::Range;

use zt::{Error, Result};

use crate::cursor::Cursor;
use crate::store::{Block, Store};
use crate::violation::Violation;

const WHAT: &str = "a heap of strings";

/// The collections of a file that have been read.
#[derive(Default)]
pub(super) struct GlobalHeaps(HashMap<u64, Collection>);

struct Collection {
    block: Block,
    objects: HashMap<u16, Range<usize>>,
}

impl GlobalHeaps {
    /// The string of a reference: a length, the address of a collection, and an index in it.
    ///
    /// # Errors
    ///
    /// Codes `header`, `version`, `bounds`.
    pub(super) fn text(&mut self, store: &Store, reference: &mut Cursor<'_>) -> Result<Vec<u8>> {
        let len = u64::from(reference.u32()?);
        let address = reference.address()?;
        let index = reference.u32()?;
        let Some(address) = address.filter(|address| *address != 0 && len > 0) else {
            return Ok(Vec::new());
        };
        store.charge(len)?;
        let collection = match self.0.entry(address) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Collection::read(store, address)?)
            }
        };
        let missing = || {
            let (what, value) = ("the index of a string in its heap", index.into());
            Error::from(Violation::Field { what, value })
        };
        let range = u16::try_from(index).ok();
        let range = range.and_then(|index| collection.objects.get(&index));
        let range = range.cloned().ok_or_else(missing)?;
        let mut cursor = collection.block.cursor();
        cursor.skip(range.start)?;
        let len = usize::try_from(len).map_err(|_| missing())?;
        if len > range.len() {
            return Err(missing());
        }
        Ok(cursor.take(len)?.to_vec())
    }
}

impl Collection {
    fn read(store: &Store, address: u64) -> Result<Self> {
        let length = u64::from(store.sizes().length);
        let head = store.fetch(address, length.saturating_add(8), WHAT)?;
        let mut cursor = head.signed(b"GCOL")?;
        match cursor.u8()? {
            1 => {}
            version => return Err(cursor.version(version)),
        }
        cursor.skip(3)?;
        let len = cursor.length()?;
        let block = store.fetch(address, len, WHAT)?;
        let mut objects = HashMap::new();
        let mut cursor = block.cursor();
        cursor.skip(head.cursor().remaining())?;
        cursor.align_8(0)?;
        let head_len = usize::from(store.sizes().length).saturating_add(8);
        let head_len = head_len.next_multiple_of(8);
        while cursor.remaining() >= head_len {
            let index = cursor.u16()?;
            cursor.skip(2 + 4)?;
            // A length above `usize::MAX` is beyond the block.
            let len = usize::try_from(cursor.length()?).unwrap_or(usize::MAX);
            // The free space reaches to the end.
            if index == 0 {
                break;
            }
            cursor.align_8(0)?;
            let start = cursor.position();
            cursor.skip(len)?;
            objects.insert(index, start..cursor.position());
            cursor.skip((len.wrapping_neg() & 7).min(cursor.remaining()))?;
        }
        Ok(Collection { block, objects })
    }
}
