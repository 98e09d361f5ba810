//! Global heaps, which have the strings of variable length and the mappings of virtual datasets.
//! Spec: III.E.
//!
//! ```text
//! "GCOL", version, length, (index, references, -, length, bytes) ...
//! ```
//!
//! Both heads and the bytes are padded to 8.

use std::collections::HashMap;
use std::ops::Range;

use zt::{Error, Result};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::store::{Block, Store};

const WHAT: &str = "a global heap";

/// The collections of a file that have been read.
#[derive(Default)]
pub(crate) struct GlobalHeaps(HashMap<u64, Collection>);

struct Collection {
    block: Block,
    objects: HashMap<u16, Range<u64>>,
}

impl GlobalHeaps {
    /// The string of a reference: a length, the address of a collection, and an index in it.
    pub(crate) fn text(&mut self, store: &Store, reference: &mut Cursor<'_>) -> Result<Vec<u8>> {
        let len = u64::from(reference.u32()?);
        let address = reference.address()?;
        let index = reference.u32()?;
        let Some(address) = address.filter(|address| *address != 0 && len > 0) else {
            return Ok(Vec::new());
        };
        store.charge(len)?;
        let mut cursor = self.object(store, address, index)?;
        if cursor.remaining() < len {
            return Err(missing(index));
        }
        Ok(cursor.take(len)?.to_vec())
    }

    /// The object with an index in the collection at `address`.
    pub(crate) fn object(&mut self, store: &Store, address: u64, index: u32) -> Result<Cursor<'_>> {
        let collection = match self.0.entry(address) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(Collection::read(store, address)?)
            }
        };
        let range = u16::try_from(index).ok();
        let range = range.and_then(|index| collection.objects.get(&index));
        let range = range.ok_or_else(|| missing(index))?;
        let mut cursor = collection.block.cursor();
        cursor.skip(range.start)?;
        cursor.part(range.end.abs_diff(range.start), "an object of a heap")
    }
}

fn missing(index: u32) -> Error {
    Hdf5Fault::field("the index of an object in its heap", index.into())
}

impl Collection {
    fn read(store: &Store, address: u64) -> Result<Self> {
        let head_len = store.sizes.bytes(0, 1, 8);
        let head = store.fetch(address, head_len, WHAT)?;
        let mut cursor = head.signed(b"GCOL")?;
        cursor.expect_version(1)?;
        cursor.skip(3)?;
        let len = cursor.length()?;
        let block = store.fetch(address, len, WHAT)?;
        let mut objects = HashMap::new();
        let mut cursor = block.cursor();
        cursor.skip(head_len)?;
        cursor.align_8(0)?;
        let head_len = head_len.next_multiple_of(8);
        while cursor.remaining() >= head_len {
            let index = cursor.u16()?;
            cursor.skip(2 + 4)?;
            let len = cursor.length()?;
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
