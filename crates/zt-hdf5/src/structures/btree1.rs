//! B-trees of version 1: for the names of old groups, and for chunks. Spec: III.A.1.
//!
//! ```text
//! "TREE", type, level, entries, left sibling, right sibling, key, child, key, child, ..., key
//! ```

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::size::{product, sum};
use crate::bytes::store::Store;

/// The type of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Tree {
    pub(crate) what: &'static str,
    pub(crate) node_type: u8,
    /// Bytes of a key.
    pub(crate) key_len: u64,
}

/// More levels than any valid tree has.
const LEVELS: u8 = 64;

impl Tree {
    /// Visits the key and the child of every entry of the leaves in order.
    pub(crate) fn visit(
        self,
        store: &Store,
        root: u64,
        mut visit: impl FnMut(Cursor<'_>, u64) -> Result<()>,
    ) -> Result<()> {
        // The level decreases from parent to child, so that a tree cannot lead back to itself.
        let mut pending = vec![(root, None)];
        while let Some((address, expected)) = pending.pop() {
            let sizes = store.sizes;
            let head_len = sizes.bytes(2, 0, 8);
            let head = store.fetch(address, head_len, self.what)?;
            let mut cursor = head.signed(b"TREE")?;
            let (node_type, level) = (cursor.u8()?, cursor.u8()?);
            if node_type != self.node_type {
                return Err(cursor.field("the type of a tree's node", node_type.into()));
            }
            if level >= LEVELS || expected.is_some_and(|expected| level != expected) {
                return Err(cursor.field("the level of a tree's node", level.into()));
            }
            let entries = cursor.u16()?;
            let len = product([entries.into(), sum([self.key_len, sizes.offset])?])?;
            let block = store.fetch(sum([address, head_len])?, len, self.what)?;
            let mut cursor = block.cursor();
            let mut children = Vec::new();
            for _ in 0..entries {
                let key = cursor.part(self.key_len, self.what)?;
                let child = cursor.defined_address()?;
                match level.checked_sub(1) {
                    None => visit(key, child)?,
                    below => children.push((child, below)),
                }
            }
            pending.extend(children.into_iter().rev());
        }
        Ok(())
    }
}
