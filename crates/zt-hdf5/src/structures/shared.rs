//! Messages that are in another place: named datatypes, and the file's table of shared messages. Spec:
//! IV.A.2, "Shared Message", and III.H.
//!
//! ```text
//! table: "SMTB", index, index, ..., checksum
//! index: version, type, kinds of messages, limits, count, address of the index, address of the heap
//! ```
//!
//! An ID in the heap is enough to find a message, so the indices, which find a message by its content,
//! are not read.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{product, sum};
use crate::bytes::store::{Block, Heap, Store};
use crate::structures::fractal_heap::FractalHeap;
use crate::structures::object_header::ObjectHeader;

/// The place of a shared message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The header at that address.
    Header(u64),
    /// The heap for its kind, by the bytes of its ID.
    Heap([u8; 8]),
}

impl Place {
    /// Reads the place from the message that refers to it.
    pub(crate) fn read(place: &mut Cursor<'_>) -> Result<Self> {
        const IN_HEAP: u8 = 1;
        let version = place.u8()?;
        let shared_type = place.u8()?;
        match version {
            // The offset of a name, as in an entry of a symbol table.
            1 => place.skip(place.sizes.bytes(0, 1, 6))?,
            2 => {}
            3 if shared_type == IN_HEAP => return id(place),
            3 => {}
            other => return Err(place.version(other)),
        }
        Ok(Place::Header(place.defined_address()?))
    }
}

/// The rest of a message as an ID in a heap.
pub(crate) fn id(cursor: &mut Cursor<'_>) -> Result<Place> {
    let mut id = [0; 8];
    id.copy_from_slice(cursor.take(8)?);
    Ok(Place::Heap(id))
}

pub(crate) fn read<T>(
    store: &Store,
    place: Place,
    kind: u16,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T>,
) -> Result<T> {
    match place {
        Place::Header(address) => {
            let header = ObjectHeader::read(store, address)?;
            match header.message(kind) {
                Some(mut body) if !body.is_shared => read(&mut body.cursor),
                _ => Err(Hdf5Fault::Missing("a shared message").into()),
            }
        }
        Place::Heap(id) => {
            let heap = store.heaps.iter().find(|heap| heap.has(kind));
            let heap = heap.ok_or(Hdf5Fault::Missing("the heap of a shared message"))?;
            let message: Block = FractalHeap::open(store, heap.address)?.object(&id)?;
            read(&mut message.cursor())
        }
    }
}

/// Reads the table that a message of the superblock's extension refers to.
pub(crate) fn read_table(store: &Store, message: &mut Cursor<'_>) -> Result<Vec<Heap>> {
    message.expect_version(0)?;
    let address = message.defined_address()?;
    let count = message.u8()?.into();
    let entry = store.sizes.bytes(2, 0, 14);
    let len = sum([4, product([count, entry])?, 4])?;
    let table = store.fetch_checked(address, len, "the table of shared messages")?;
    let mut cursor = table.signed(b"SMTB")?;
    let mut heaps = Vec::new();
    for _ in 0..count {
        cursor.skip(1 + 1)?;
        let kinds = cursor.u16()?;
        // Limits, the number of messages and the index.
        cursor.skip(4 + 2 + 2 + 2)?;
        cursor.address()?;
        if let Some(address) = cursor.address()? {
            heaps.push(Heap { kinds, address });
        }
    }
    Ok(heaps)
}
