//! Fixed arrays: for chunks whose number cannot grow. Spec: VII.C.
//!
//! ```text
//! header: "FAHD", version, client, element size, bits of a page, elements, block, checksum
//! block:  "FADB", the head of `array`, [bitmap of pages], elements or pages
//! ```

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::store::Store;
use crate::structures::array::{Array, Elements};

/// Visits every element with its index.
pub(crate) fn visit(
    store: &Store,
    address: u64,
    mut visit: impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let what = "an array of chunks";
    let header = store.fetch_checked(address, store.sizes.bytes(1, 1, 12), what)?;
    let mut cursor = header.signed(b"FAHD")?;
    let mut array = Array::new(store, what, &mut cursor)?;
    let page_bits = cursor.u8()?;
    array.set_page(&cursor, page_bits)?;
    let count = cursor.length()?;
    let Some(address) = cursor.address()? else {
        return Ok(());
    };
    let block = Elements { address, signature: b"FADB", first: 0, count, written: None };
    array.visit_block(block, &mut visit)
}
