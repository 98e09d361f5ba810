//! Fixed arrays: for chunks whose number cannot grow. Spec: VII.C.
//!
//! ```text
//! header: "FAHD", version, client, element size, bits of a page, elements, block, checksum
//! block:  "FADB", version, client, header, elements, checksum
//! or:     "FADB", version, client, header, bitmap of pages, checksum, (elements, checksum) ...
//! ```

use zt::Result;

use crate::cursor::Cursor;
use crate::pages::{Element, has_page, visit_elements};
use crate::store::Store;

const WHAT: &str = "an array of chunks";

/// Visits every element with its index.
///
/// # Errors
///
/// Codes `header`, `version`, `bounds`; errors of `visit`.
pub(super) fn visit(
    store: &Store,
    address: u64,
    mut visit: impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let sizes = store.sizes();
    let (offset, length) = (u64::from(sizes.offset), u64::from(sizes.length));
    let header_len = 12u64.saturating_add(offset).saturating_add(length);
    let header = store.fetch_checked(address, header_len, WHAT)?;
    let mut cursor = header.signed(b"FAHD")?;
    let client = super::pages::client(&mut cursor)?;
    let element_len = u64::from(cursor.u8()?);
    let page_bits = u32::from(cursor.u8()?);
    let count = cursor.length()?;
    let Some(block) = cursor.address()? else {
        return Ok(());
    };
    let element = Element {
        byte_len: element_len,
        what: WHAT,
    };
    let page = 1u64.checked_shl(page_bits).unwrap_or(u64::MAX);
    let head_len = 6u64.saturating_add(offset);
    if count <= page {
        let len = element
            .bytes(count)
            .saturating_add(head_len)
            .saturating_add(4);
        let block = store.fetch_checked(block, len, WHAT)?;
        let mut cursor = block.signed(b"FADB")?;
        client.expect(&mut cursor)?;
        cursor.address()?;
        return visit_elements(&mut cursor, 0, count, element, &mut visit);
    }
    let pages = count.div_ceil(page);
    // Every page has a place, even if it was not written.
    store.span(block, element.bytes(count), WHAT)?;
    let head_len = head_len.saturating_add(pages.div_ceil(8)).saturating_add(4);
    let head = store.fetch_checked(block, head_len, WHAT)?;
    let mut cursor = head.signed(b"FADB")?;
    client.expect(&mut cursor)?;
    cursor.address()?;
    let bitmap = cursor.rest();
    let mut at = block.saturating_add(head_len);
    for number in 0..pages {
        let first = number.saturating_mul(page);
        let count = count.saturating_sub(first).min(page);
        let len = element.bytes(count).saturating_add(4);
        if has_page(bitmap, number) {
            let elements = store.fetch_checked(at, len, WHAT)?;
            visit_elements(&mut elements.cursor(), first, count, element, &mut visit)?;
        }
        at = at.saturating_add(len);
    }
    Ok(())
}
