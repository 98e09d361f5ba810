//! Fractal heaps of links.

use zt::File;

use crate::draft::{LINK_INFO, Message, UNDEFINED, beside, bytes, code, link, message};
use crate::groups::{target, value};

/// The fields of a heap of links that a test can make invalid.
#[derive(Clone, Copy)]
struct Heap {
    info: u8,
    version: u8,
    filters: u16,
    width: u16,
    first_len: u64,
    direct_max: u64,
    bits: u16,
    rows: u16,
    /// Bytes of the largest object in a block.
    object_max: u32,
    /// The first byte of the ID of the one link, its offset, and its length.
    id: (u8, u32, u16),
}

const HEAP: Heap = Heap {
    info: 0,
    version: 0,
    filters: 0,
    width: 4,
    first_len: 512,
    direct_max: 1024,
    bits: 32,
    rows: 0,
    object_max: 4096,
    id: (0, 16, 12),
};

/// The rows of a heap with a nested table of one row or two.
const NESTED: u16 = 3;
const DEEPER: u16 = 4;

/// A group with one link, `t`, in that heap.
fn dense(heap: Heap) -> File {
    const BY_NAME: u8 = 5;
    beside(|draft| {
        let target = target(draft);
        let link: Message = link("t", target);
        let mut block = [vec![0; 16], link.body].concat();
        block.resize(512, 0);
        let mut root = draft.put(block);
        // From its third row on a table has tables, because the blocks are too large: the place of the
        // inner table in the root, and of the block in it.
        let place = match heap.rows {
            NESTED => Some((4, 0)),
            DEEPER => Some((6, 2)),
            _ => None,
        };
        if let Some((outer, inner)) = place {
            let table = |at: usize, block: u64| {
                let mut blocks = vec![UNDEFINED; at + 2];
                blocks[at] = block;
                let blocks: Vec<u8> = blocks.iter().flat_map(|it| it.to_le_bytes()).collect();
                [b"FHIB", &bytes!(0u8, 0u64, 0u32)[..], &blocks].concat()
            };
            let inner = draft.put_checked(&[&table(inner, root)]);
            root = draft.put_checked(&[&table(outer, inner)]);
        }
        let head = bytes!(heap.version, 7u16, heap.filters, 0u8, heap.object_max, 0u64, UNDEFINED);
        // Free space and statistics.
        let statistics = [bytes!(0u64, UNDEFINED), vec![0; 8 * 8]].concat();
        let table =
            bytes!(heap.width, heap.first_len, heap.direct_max, heap.bits, 1u16, root, heap.rows);
        let mut parts = [b"FRHP".to_vec(), head, statistics, table].concat();
        if heap.filters > 0 {
            // The checksum follows the filters.
            parts.extend([0; 16]);
        }
        let address = draft.put_checked(&[&parts]);
        let (kind, offset, len) = heap.id;
        let names = draft.tree2(BY_NAME, &[bytes!(0u32, kind, offset, len)]);
        vec![message(LINK_INFO, bytes!(heap.info, 0u8, address, names))]
    })
}

#[test]
fn invalid_sizes_of_a_heap_are_refused() {
    assert_eq!(value(&dense(HEAP), "x/t"), 7);
    let nested = Heap { width: 2, direct_max: 512, rows: NESTED, id: (0, 2048 + 16, 12), ..HEAP };
    assert_eq!(value(&dense(nested), "x/t"), 7);
    let deeper = Heap { rows: DEEPER, id: (0, 4096 + 1024 + 16, 12), ..nested };
    assert_eq!(value(&dense(deeper), "x/t"), 7);
    // Lengths have two bytes: the link, and other bytes after it.
    let padded = Heap { id: (0, 16, 256), ..HEAP };
    assert_eq!(value(&dense(padded), "x/t"), 7);
    // Lengths in IDs have two bytes, although the length of the block needs three.
    let long = Heap { direct_max: 1 << 16, object_max: 1 << 16, ..HEAP };
    assert_eq!(value(&dense(long), "x/t"), 7);
    for (heap, expected) in [
        (Heap { info: 1, ..HEAP }, "version"),
        (Heap { version: 1, ..HEAP }, "version"),
        (Heap { filters: 8, ..HEAP }, "unsupported"),
        (Heap { filters: 256, ..HEAP }, "unsupported"),
        (Heap { width: 3, ..HEAP }, "header"),
        (Heap { first_len: 500, ..HEAP }, "header"),
        (Heap { direct_max: 1000, ..HEAP }, "header"),
        (Heap { direct_max: 256, ..HEAP }, "header"),
        (Heap { bits: 65, ..HEAP }, "header"),
        // In the ID itself, of an unknown kind, and beyond the block or its rows.
        (Heap { id: (0x20, 16, 12), ..HEAP }, "version"),
        (Heap { id: (0x30, 16, 12), ..HEAP }, "header"),
        (Heap { id: (0, 505, 12), ..HEAP }, "header"),
        (Heap { id: (0, 1 << 20, 12), rows: 1, ..HEAP }, "header"),
        // In a table without written blocks.
        (Heap { id: (0, 16, 12), ..nested }, "header"),
        // A huge object without a tree of them.
        (Heap { id: (0x10, 16, 12), ..HEAP }, "header"),
    ] {
        assert_eq!(code(&dense(heap), "x"), expected);
    }
}

/// A wide ID has its place. For others, a tree has the places by number.
#[test]
fn a_huge_object_is_found_by_its_id_or_a_tree() {
    const NUMBERED: u8 = 1;
    const BY_NAME: u8 = 5;
    const HUGE: u8 = 0x10;
    for id_len in [9u16, 16, 17, 20] {
        let file = beside(|draft| {
            let link = link("t", target(draft)).body;
            let (number, len) = (5u64, link.len() as u64);
            let at = draft.put(link);
            let tree = draft.tree2(NUMBERED, &[bytes!(at, len, number)]);
            let mut id = match id_len > 16 {
                true => bytes!(0u32, HUGE, at, len),
                false => bytes!(0u32, HUGE, number),
            };
            id.resize(4 + usize::from(id_len), 0);
            let head = bytes!(0u8, id_len, 0u16, 0u8, 4096u32, 0u64, tree);
            let statistics = [bytes!(0u64, UNDEFINED), vec![0; 8 * 8]].concat();
            let table = bytes!(4u16, 512u64, 1024u64, 32u16, 1u16, UNDEFINED, 0u16);
            let heap = draft.put_checked(&[b"FRHP", &head, &statistics, &table]);
            let names = draft.tree2(BY_NAME, &[id]);
            vec![message(LINK_INFO, bytes!(0u8, 0u8, heap, names))]
        });
        assert_eq!(value(&file, "x/t"), 7, "{id_len}");
    }
}
