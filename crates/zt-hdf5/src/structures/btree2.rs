//! B-trees of version 2: for links, attributes and chunks. Spec: III.A.2.
//!
//! ```text
//! header:   "BTHD", version, type, node size, record size, depth, split, merge, root, records in
//!           the root, records, checksum
//! leaf:     "BTLF", version, type, records, checksum
//! internal: "BTIN", version, type, records, (child, its records, [records below it]) ..., checksum
//! ```

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{encoded_len, product, sum};
use crate::bytes::store::Store;

/// Bytes of a node beside its records: signature, version, type and checksum.
const NODE_LEN: u64 = 4 + 1 + 1 + 4;

/// The most levels of a tree; no valid one has as many.
const DEPTH: u16 = 32;

/// A node, and its number of records.
#[derive(Clone, Copy)]
struct Node {
    address: u64,
    records: u64,
    depth: u16,
}

/// The widths of the numbers in nodes of a depth.
#[derive(Clone, Copy)]
struct Level {
    /// Bytes of the number of records in a child, and from depth 2 on of all records below it.
    count_len: u64,
    total_len: u64,
    /// Bytes of these and of the child's address.
    pointer_len: u64,
}

/// Visits every record of the tree at `root`, which must be of `node_type`, in any order.
pub(crate) fn visit(
    store: &Store,
    root: u64,
    node_type: u8,
    what: &'static str,
    mut visit: impl FnMut(Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let sizes = store.sizes;
    let header_len = sizes.bytes(1, 1, 4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + 2 + 4);
    let header = store.fetch_checked(root, header_len, what)?;
    let mut cursor = header.signed(b"BTHD")?;
    expect(&mut cursor, node_type)?;
    let node_len = u64::from(cursor.u32()?);
    let record_len = u64::from(cursor.u16()?);
    let depth = cursor.u16()?;
    let invalid = |what, value| cursor.field(what, value);
    let room = node_len.checked_sub(NODE_LEN);
    let room = room.ok_or_else(|| invalid("the length of a tree's node", node_len))?;
    let fits = room.checked_div(record_len);
    let fits = fits.ok_or_else(|| invalid("the length of a tree's record", record_len))?;
    if depth > DEPTH {
        return Err(cursor.field("the depth of a tree", depth.into()));
    }
    cursor.skip(2)?;
    let Some(address) = cursor.address()? else {
        return Ok(());
    };
    let records = u64::from(cursor.u16()?);
    let levels = levels(room, record_len, fits, depth, sizes.offset)?;
    let mut pending = vec![Node { address, records, depth }];
    while let Some(node) = pending.pop() {
        let below = node.depth.checked_sub(1);
        let level = levels.get(usize::from(node.depth));
        let level = level.filter(|_| below.is_some()).copied();
        let children = match level {
            Some(level) => product([level.pointer_len, sum([node.records, 1])?])?,
            None => 0,
        };
        let records = product([node.records, record_len])?;
        let len = sum([NODE_LEN, records, children])?;
        let block = store.fetch_checked(node.address, len, what)?;
        let mut cursor = block.signed(if below.is_some() { b"BTIN" } else { b"BTLF" })?;
        expect(&mut cursor, node_type)?;
        for _ in 0..node.records {
            visit(cursor.part(record_len, what)?)?;
        }
        let Some((depth, level)) = below.zip(level) else {
            continue;
        };
        for _ in 0..=node.records {
            let address = cursor.defined_address()?;
            let records = cursor.uint(level.count_len)?;
            cursor.skip(level.total_len)?;
            pending.push(Node { address, records, depth });
        }
    }
    Ok(())
}

fn expect(cursor: &mut Cursor<'_>, node_type: u8) -> Result<()> {
    cursor.expect_version(0)?;
    match cursor.u8()? {
        found if found == node_type => Ok(()),
        other => Err(cursor.field("the type of a tree's records", other.into())),
    }
}

/// The widths for every depth, from the leaves on: `H5B2__hdr_init`. A leaf has room for `fits`
/// records. A tree that could have 2^64 records is refused.
fn levels(room: u64, record_len: u64, fits: u64, depth: u16, offset: u64) -> Result<Vec<Level>> {
    let count_len = encoded_len(fits);
    let mut below = fits;
    let mut levels = Vec::new();
    for depth in 0..=depth {
        let total_len = if depth > 1 { encoded_len(below) } else { 0 };
        let pointer_len = sum([offset, count_len, total_len])?;
        levels.push(Level { count_len, total_len, pointer_len });
        if depth > 0 {
            let entry_len = sum([record_len, pointer_len])?;
            let room = room.checked_sub(pointer_len);
            let room =
                room.ok_or_else(|| Hdf5Fault::field("the room of a tree's node", pointer_len))?;
            // A pointer has bytes.
            let records = room.strict_div(entry_len);
            below = sum([product([sum([records, 1])?, below])?, records])?;
        }
    }
    Ok(levels)
}
