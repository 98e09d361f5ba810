//! Extensible arrays: for chunks whose number can grow in one dimension. Spec: VII.D.
//!
//! ```text
//! header:      "EAHD", version, client, element size, parameters, statistics, index block, checksum
//! index block: "EAIB", version, client, header, elements, data blocks, super blocks, checksum
//! super block: "EASB", version, client, header, offset, [bitmap of pages], data blocks, checksum
//! data block:  "EADB", version, client, header, offset, elements, checksum
//! or:          "EADB", version, client, header, offset, checksum, (elements, checksum) ...
//! ```
//!
//! Super block `s` has `2^(s/2)` data blocks of `2^((s+1)/2)` times the least number of elements. The
//! index block itself has the addresses of the first data blocks.

use zt::Result;

use crate::cursor::Cursor;
use crate::pages::{Client, Element, client, has_page, visit_elements};
use crate::store::Store;
use crate::violation::Violation;

const WHAT: &str = "an extensible array of chunks";

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
    let header_len = 16u64
        .saturating_add(length.saturating_mul(6))
        .saturating_add(offset);
    let header = store.fetch_checked(address, header_len, WHAT)?;
    let mut cursor = header.signed(b"EAHD")?;
    let client = client(&mut cursor)?;
    let element = Element {
        byte_len: cursor.u8()?.into(),
        what: WHAT,
    };
    let bits = u32::from(cursor.u8()?);
    let in_index = u64::from(cursor.u8()?);
    let data_min = u64::from(cursor.u8()?);
    let pointers_min = u64::from(cursor.u8()?);
    let page_bits = u32::from(cursor.u8()?);
    // The numbers and lengths of super blocks and data blocks.
    for _ in 0..4 {
        cursor.length()?;
    }
    // The highest index that was set, plus one.
    let end = cursor.length()?;
    cursor.length()?;
    let Some(index) = cursor.address()? else {
        return Ok(());
    };
    let least = data_min.checked_ilog2().unwrap_or(0);
    cursor.check_fields(&[
        (
            data_min.is_power_of_two(),
            "an array's least data block",
            data_min,
        ),
        (
            pointers_min.is_power_of_two(),
            "an array's pointers",
            pointers_min,
        ),
        (
            (least..=64).contains(&bits),
            "the bits of an array's indices",
            bits.into(),
        ),
        (
            page_bits < 64,
            "the bits of an array's pages",
            page_bits.into(),
        ),
    ])?;
    let array = Array {
        store,
        client,
        element,
        offset,
        block_offset: u64::from(bits.div_ceil(8)),
        page: 1u64.checked_shl(page_bits).unwrap_or(u64::MAX),
        end,
    };
    // `H5EA__iblock_alloc`, `H5EA__hdr_init`.
    let in_line = pointers_min.ilog2().saturating_mul(2);
    let all = bits.saturating_sub(data_min.ilog2()).saturating_add(1);
    let data_blocks = pointers_min.saturating_sub(1).saturating_mul(2);
    let super_blocks = u64::from(all.saturating_sub(in_line));
    let pointers = data_blocks
        .saturating_add(super_blocks)
        .saturating_mul(offset);
    let len = array.head_len(0).saturating_add(element.bytes(in_index));
    let block = store.fetch_checked(index, len.saturating_add(pointers).saturating_add(4), WHAT)?;
    let mut cursor = array.begin(block.signed(b"EAIB")?, 0)?;
    visit_elements(&mut cursor, 0, in_index, element, &mut visit)?;
    let mut first = in_index;
    for number in 0..all {
        if first >= end {
            return Ok(());
        }
        let shape = SuperBlock::new(number, data_min);
        if number < in_line {
            for _ in 0..shape.blocks {
                let address = cursor.address()?;
                array.data_block(address, first, shape, None, &mut visit)?;
                first = first.saturating_add(shape.elements);
            }
        } else {
            if let Some(address) = cursor.address()? {
                array.super_block(address, first, shape, &mut visit)?;
            }
            first = first.saturating_add(shape.elements.saturating_mul(shape.blocks));
        }
    }
    Ok(())
}

/// The number of data blocks of a super block, and the elements of each.
#[derive(Clone, Copy)]
struct SuperBlock {
    blocks: u64,
    elements: u64,
}

impl SuperBlock {
    fn new(number: u32, data_min: u64) -> Self {
        let power = |exponent| 1u64.checked_shl(exponent).unwrap_or(u64::MAX);
        SuperBlock {
            blocks: power(number / 2),
            elements: power(number.div_ceil(2)).saturating_mul(data_min),
        }
    }
}

struct Array<'s> {
    store: &'s Store,
    client: Client,
    element: Element,
    /// Bytes of an address, and of the index of a block's first element.
    offset: u64,
    block_offset: u64,
    /// Elements in a page.
    page: u64,
    end: u64,
}

impl Array<'_> {
    /// Bytes before the content of a block: the signature, the version, the client, the address of
    /// the header, and `more`.
    fn head_len(&self, more: u64) -> u64 {
        6u64.saturating_add(self.offset).saturating_add(more)
    }

    /// Skips to the content of a block whose signature has been read.
    fn begin<'b>(&self, mut cursor: Cursor<'b>, more: u64) -> Result<Cursor<'b>> {
        self.client.expect(&mut cursor)?;
        cursor.address()?;
        cursor.skip(usize::try_from(more).unwrap_or(usize::MAX))?;
        Ok(cursor)
    }

    /// The number of pages of a data block; 0 if it has none.
    fn pages(&self, shape: SuperBlock) -> u64 {
        if shape.elements > self.page {
            shape.elements.checked_div(self.page).unwrap_or(0)
        } else {
            0
        }
    }

    fn super_block(
        &self,
        address: u64,
        mut first: u64,
        shape: SuperBlock,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        let pages = self.pages(shape);
        let bitmap_len = pages.div_ceil(8).saturating_mul(shape.blocks);
        let len = self
            .head_len(self.block_offset)
            .saturating_add(bitmap_len)
            .saturating_add(shape.blocks.saturating_mul(self.offset))
            .saturating_add(4);
        let block = self.store.fetch_checked(address, len, WHAT)?;
        let mut cursor = self.begin(block.signed(b"EASB")?, self.block_offset)?;
        let bitmap = cursor.take(usize::try_from(bitmap_len).unwrap_or(usize::MAX))?;
        for number in 0..shape.blocks {
            let address = cursor.address()?;
            let first_page = number.saturating_mul(pages);
            self.data_block(address, first, shape, Some((bitmap, first_page)), visit)?;
            first = first.saturating_add(shape.elements);
        }
        Ok(())
    }

    fn data_block(
        &self,
        address: Option<u64>,
        first: u64,
        shape: SuperBlock,
        written: Option<(&[u8], u64)>,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(address) = address.filter(|_| first < self.end) else {
            return Ok(());
        };
        let head_len = self.head_len(self.block_offset);
        let content_len = self.element.bytes(shape.elements);
        if self.pages(shape) == 0 {
            let len = head_len.saturating_add(content_len).saturating_add(4);
            let block = self.store.fetch_checked(address, len, WHAT)?;
            let mut cursor = self.begin(block.signed(b"EADB")?, self.block_offset)?;
            return visit_elements(&mut cursor, first, shape.elements, self.element, visit);
        }
        // The index block has no bitmap, so its data blocks have no pages.
        let (bitmap, first_page) = written.ok_or(Violation::Field {
            what: "the length of an array's block",
            value: shape.elements,
        })?;
        self.store.span(address, content_len, WHAT)?;
        let head_len = head_len.saturating_add(4);
        let head = self.store.fetch_checked(address, head_len, WHAT)?;
        self.begin(head.signed(b"EADB")?, self.block_offset)?;
        let len = self.element.bytes(self.page).saturating_add(4);
        for number in 0..self.pages(shape) {
            if !has_page(bitmap, first_page.saturating_add(number)) {
                continue;
            }
            let at = number.saturating_mul(len).saturating_add(head_len);
            let page = self
                .store
                .fetch_checked(address.saturating_add(at), len, WHAT)?;
            let first = first.saturating_add(number.saturating_mul(self.page));
            visit_elements(&mut page.cursor(), first, self.page, self.element, visit)?;
        }
        Ok(())
    }
}
