//! What fixed and extensible arrays share: the header's fields, and data blocks of elements.
//!
//! ```text
//! block:  signature, version, client, address of the header, [more], elements, checksum
//! pages:  signature, version, client, address of the header, [more], checksum, (elements, checksum) ...
//! ```
//!
//! A bitmap has the pages that were written: `more` of a fixed array, or in an extensible array a part
//! of the super block.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::size::{product, sum};
use crate::bytes::store::{Block, Store};

/// Bytes of a checksum.
const CHECKSUM: u64 = 4;

/// An array whose header has been read.
pub(crate) struct Array<'s> {
    pub(crate) store: &'s Store,
    pub(crate) what: &'static str,
    /// The type of the elements, which is the same in all structures of an array.
    client: u8,
    /// Bytes of an element.
    element_len: u64,
    /// Elements of a page.
    pub(crate) page: u64,
    /// Bytes before the elements of a data block, beside its common head.
    pub(crate) more: u64,
}

/// The elements of a data block.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'b> {
    pub(crate) address: u64,
    pub(crate) signature: &'static [u8; 4],
    /// The index of the first element.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The bitmap of pages, and the block's first bit; `None` if the block itself has the bitmap.
    pub(crate) written: Option<(&'b [u8], u64)>,
}

fn client(cursor: &mut Cursor<'_>) -> Result<u8> {
    cursor.expect_version(0)?;
    cursor.u8()
}

impl<'s> Array<'s> {
    /// Reads the first fields of a header after its signature.
    pub(crate) fn new(
        store: &'s Store,
        what: &'static str,
        header: &mut Cursor<'_>,
    ) -> Result<Self> {
        Ok(Array {
            store,
            what,
            client: client(header)?,
            element_len: header.u8()?.into(),
            page: 0,
            more: 0,
        })
    }

    /// Sets the elements of a page from their bits in an index.
    pub(crate) fn set_page(&mut self, header: &Cursor<'_>, bits: u8) -> Result<()> {
        let page = 1u64.checked_shl(bits.into());
        self.page =
            page.ok_or_else(|| header.field("the bits of an array's pages", bits.into()))?;
        Ok(())
    }

    pub(crate) fn bytes(&self, count: u64) -> Result<u64> {
        Ok(product([self.element_len, count])?)
    }

    /// A block of `len` bytes between the common head and the checksum.
    pub(crate) fn fetch(&self, address: u64, len: u64) -> Result<Block> {
        let head_len = self.store.sizes.bytes(1, 0, 6);
        let len = sum([head_len, len, CHECKSUM])?;
        self.store.fetch_checked(address, len, self.what)
    }

    /// A cursor after the common head of a block.
    pub(crate) fn begin<'b>(&self, block: &'b Block, signature: &[u8; 4]) -> Result<Cursor<'b>> {
        let mut cursor = block.signed(signature)?;
        let found = client(&mut cursor)?;
        if found != self.client {
            return Err(cursor.field("the client of an array", found.into()));
        }
        cursor.address()?;
        Ok(cursor)
    }

    /// Visits the next `count` elements. The first has the index `first`.
    pub(crate) fn visit(
        &self,
        cursor: &mut Cursor<'_>,
        first: u64,
        count: u64,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        for at in 0..count {
            let mut element = cursor.part(self.element_len, self.what)?;
            visit(sum([first, at])?, &mut element)?;
        }
        Ok(())
    }

    pub(crate) fn visit_block(
        &self,
        block: Elements<'_>,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        let Elements { address, signature, first, count, written } = block;
        let content_len = self.bytes(count)?;
        if count <= self.page {
            let block = self.fetch(address, sum([self.more, content_len])?)?;
            let mut cursor = self.begin(&block, signature)?;
            cursor.skip(self.more)?;
            return self.visit(&mut cursor, first, count, visit);
        }
        // Every page has a place, even if it was not written.
        self.store.span(address, content_len, self.what)?;
        let pages = count.div_ceil(self.page);
        let more = match written {
            Some(_) => self.more,
            None => pages.div_ceil(8),
        };
        let head = self.fetch(address, more)?;
        let mut own = self.begin(&head, signature)?;
        let (bitmap, first_page) = written.unwrap_or((own.rest(), 0));
        let mut at = sum([address, head.byte_len(), CHECKSUM])?;
        let (mut first, mut left) = (first, count);
        for number in 0..pages {
            let count = left.min(self.page);
            let len = sum([self.bytes(count)?, CHECKSUM])?;
            if has_page(bitmap, sum([first_page, number])?) {
                let page = self.store.fetch_checked(at, len, self.what)?;
                self.visit(&mut page.cursor(), first, count, visit)?;
            }
            at = sum([at, len])?;
            first = sum([first, count])?;
            left = left.strict_sub(count);
        }
        Ok(())
    }
}

/// Whether a page was written. The first page is the highest bit of the first byte.
fn has_page(bitmap: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8).ok();
    let byte = byte.and_then(|at| bitmap.get(at));
    byte.is_some_and(|byte| byte & 0x80u8 >> (number % 8) != 0)
}

#[cfg(test)]
mod tests {
    use super::has_page;

    #[test]
    fn pages_are_counted_from_the_highest_bit() {
        let bitmap = [0b0100_0001, 0b1000_0000];
        let found: Vec<u64> = (0..20).filter(|number| has_page(&bitmap, *number)).collect();
        assert_eq!(found, [1, 7, 8]);
    }
}
