//! B-trees of version 2: for links, attributes and chunks. Spec: III.A.2.
//!
//! ```text
//! header:   "BTHD", version, type, node size, record size, depth, split, merge, root, records in
//!           the root, records, checksum
//! leaf:     "BTLF", version, type, records, checksum
//! internal: "BTIN", version, type, records, (child, its records, [records below it]) ..., checksum
//! ```

use zt::Result;

use crate::cursor::{Cursor, encoded_len};
use crate::store::Store;

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
struct Capacity {
    /// Bytes of the number of records in a child, and from depth 2 on of all records below it.
    count_len: usize,
    total_len: usize,
}

/// Visits every record of the tree at `root`, which must be of `node_type`, in any order.
///
/// # Errors
///
/// Codes `header`, `version`, `bounds`; errors of `visit`.
pub(super) fn visit(
    store: &Store,
    root: u64,
    node_type: u8,
    what: &'static str,
    mut visit: impl FnMut(Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let sizes = store.sizes();
    let (offset, length) = (u64::from(sizes.offset), u64::from(sizes.length));
    let header_len = (4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + 2 + 4u64)
        .saturating_add(offset)
        .saturating_add(length);
    let header = store.fetch_checked(root, header_len, what)?;
    let mut cursor = header.signed(b"BTHD")?;
    expect(&mut cursor, node_type)?;
    let node_len = u64::from(cursor.u32()?);
    let record_len = cursor.u16()?;
    let depth = cursor.u16()?;
    cursor.check_fields(&[
        (
            record_len > 0,
            "the length of a tree's record",
            record_len.into(),
        ),
        (depth <= DEPTH, "the depth of a tree", depth.into()),
    ])?;
    cursor.skip(2)?;
    let Some(address) = cursor.address()? else {
        return Ok(());
    };
    let records = u64::from(cursor.u16()?);
    let capacities = capacities(node_len, record_len.into(), depth, offset);
    let mut pending = vec![Node {
        address,
        records,
        depth,
    }];
    while let Some(node) = pending.pop() {
        let record_bytes = node.records.saturating_mul(record_len.into());
        let below = node.depth.checked_sub(1);
        let capacity = capacities.get(usize::from(node.depth)).copied();
        let capacity = capacity.unwrap_or(Capacity {
            count_len: 0,
            total_len: 0,
        });
        let pointers = match below {
            None => 0,
            Some(_) => {
                let pointer = offset
                    .saturating_add(capacity.count_len as u64)
                    .saturating_add(capacity.total_len as u64);
                pointer.saturating_mul(node.records.saturating_add(1))
            }
        };
        let len = NODE_LEN
            .saturating_add(record_bytes)
            .saturating_add(pointers);
        let block = store.fetch_checked(node.address, len, what)?;
        let mut cursor = block.signed(if below.is_some() { b"BTIN" } else { b"BTLF" })?;
        expect(&mut cursor, node_type)?;
        for _ in 0..node.records {
            visit(cursor.part(record_len.into(), what)?)?;
        }
        let Some(depth) = below else {
            continue;
        };
        for _ in 0..=node.records {
            let address = cursor.defined_address()?;
            let records = cursor.uint(capacity.count_len)?;
            cursor.skip(capacity.total_len)?;
            pending.push(Node {
                address,
                records,
                depth,
            });
        }
    }
    Ok(())
}

fn expect(cursor: &mut Cursor<'_>, node_type: u8) -> Result<()> {
    match cursor.u8()? {
        0 => {}
        version => return Err(cursor.version(version)),
    }
    match cursor.u8()? {
        found if found == node_type => Ok(()),
        other => Err(cursor.field("the type of a tree's records", other.into())),
    }
}

/// The widths for every depth, from the leaves on: `H5B2__hdr_init`.
fn capacities(node_len: u64, record_len: u64, depth: u16, offset: u64) -> Vec<Capacity> {
    let room = node_len.saturating_sub(NODE_LEN);
    let in_leaf = room.checked_div(record_len).unwrap_or(0);
    let count_len = encoded_len(in_leaf);
    let mut below = in_leaf;
    let mut capacities = vec![Capacity {
        count_len,
        total_len: 0,
    }];
    for level in 1..=depth {
        let total_len = if level > 1 { encoded_len(below) } else { 0 };
        let pointer = offset
            .saturating_add(count_len as u64)
            .saturating_add(total_len as u64);
        let entry = record_len.saturating_add(pointer);
        let records = room.saturating_sub(pointer).checked_div(entry).unwrap_or(0);
        below = records
            .saturating_add(1)
            .saturating_mul(below)
            .saturating_add(records);
        capacities.push(Capacity {
            count_len,
            total_len,
        });
    }
    capacities
}
