//! Extensible arrays: for chunks whose number can grow in one dimension. Spec: VII.D.
//!
//! ```text
//! header:      "EAHD", version, client, element size, parameters, statistics, index block, checksum
//! index block: "EAIB", the head of `array`, elements, data blocks, super blocks, checksum
//! super block: "EASB", the head of `array`, offset, [bitmap of pages], data blocks, checksum
//! data block:  "EADB", the head of `array`, offset, elements or pages
//! ```
//!
//! Super block `s` has `2^(s/2)` data blocks of `2^((s+1)/2)` times the least number of elements. The
//! index block itself has the addresses of the first data blocks.

use zt::Result;

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{product, sum};
use crate::bytes::store::Store;
use crate::structures::array::{Array, Elements};

/// Visits every element with its index.
pub(crate) fn visit(
    store: &Store,
    address: u64,
    mut visit: impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    let what = "an extensible array of chunks";
    let sizes = store.sizes;
    let header = store.fetch_checked(address, sizes.bytes(1, 6, 16), what)?;
    let mut cursor = header.signed(b"EAHD")?;
    let mut array = Array::new(store, what, &mut cursor)?;
    let bits = u32::from(cursor.u8()?);
    let in_index = u64::from(cursor.u8()?);
    let data_min = u64::from(cursor.u8()?);
    let pointers_min = u64::from(cursor.u8()?);
    let page_bits = cursor.u8()?;
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
    array.set_page(&cursor, page_bits)?;
    array.more = bits.div_ceil(8).into();
    let invalid = |what, value| cursor.field(what, value);
    let log2 = |value: u64| value.checked_ilog2().filter(|_| value.is_power_of_two());
    let least = log2(data_min).ok_or_else(|| invalid("an array's least data block", data_min))?;
    let pointers =
        log2(pointers_min).ok_or_else(|| invalid("an array's pointers", pointers_min))?;
    // `H5EA__iblock_alloc`, `H5EA__hdr_init`.
    let last = bits.checked_sub(least).filter(|_| bits <= 64);
    let last = last.ok_or_else(|| invalid("the bits of an array's indices", bits.into()))?;
    let in_line = product([pointers.into(), 2])?;
    let data_blocks = product([pointers_min.abs_diff(1), 2])?;
    let super_blocks = sum([last.into(), 1])?.checked_sub(in_line);
    let super_blocks = super_blocks.ok_or_else(|| invalid("an array's pointers", pointers_min))?;
    let addresses = sum([data_blocks, super_blocks])?;
    let len = sum([array.bytes(in_index)?, product([addresses, sizes.offset])?])?;
    let block = array.fetch(index, len)?;
    let mut cursor = array.begin(&block, b"EAIB")?;
    array.visit(&mut cursor, 0, in_index, &mut visit)?;
    let mut blocks = Blocks { array, first: in_index, end };
    for number in 0..=last {
        if blocks.first >= end {
            return Ok(());
        }
        let shape = SuperBlock::new(number, data_min)?;
        if u64::from(number) >= in_line {
            let address = cursor.address()?;
            blocks.super_block(address, shape, &mut visit)?;
            continue;
        }
        // The index block has no bitmap, so its data blocks have no pages.
        if shape.elements > blocks.array.page {
            return Err(cursor.field("the length of an array's block", shape.elements));
        }
        for _ in 0..shape.blocks {
            let address = cursor.address()?;
            blocks.data_block(address, shape, None, &mut visit)?;
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
    fn new(number: u32, data_min: u64) -> Result<Self, Hdf5Fault> {
        let power = |exponent| 1u64.checked_shl(exponent).ok_or(Hdf5Fault::TooFar);
        Ok(SuperBlock {
            blocks: power(number / 2)?,
            elements: product([power(number.div_ceil(2))?, data_min])?,
        })
    }
}

/// The blocks that follow each other in an array.
struct Blocks<'s> {
    array: Array<'s>,
    /// The index of the next block's first element.
    first: u64,
    end: u64,
}

impl Blocks<'_> {
    fn super_block(
        &mut self,
        address: Option<u64>,
        shape: SuperBlock,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(address) = address else {
            self.first = sum([self.first, product([shape.elements, shape.blocks])?])?;
            return Ok(());
        };
        let pages = match shape.elements.checked_div(self.array.page) {
            Some(0 | 1) | None => 0,
            Some(pages) => pages,
        };
        let bitmap_len = product([pages.div_ceil(8), shape.blocks])?;
        let addresses = product([shape.blocks, self.array.store.sizes.offset])?;
        let len = sum([self.array.more, bitmap_len, addresses])?;
        let block = self.array.fetch(address, len)?;
        let mut cursor = self.array.begin(&block, b"EASB")?;
        cursor.skip(self.array.more)?;
        let bitmap = cursor.take(bitmap_len)?;
        for number in 0..shape.blocks {
            let address = cursor.address()?;
            let first_page = product([number, pages])?;
            self.data_block(address, shape, Some((bitmap, first_page)), visit)?;
        }
        Ok(())
    }

    fn data_block(
        &mut self,
        address: Option<u64>,
        shape: SuperBlock,
        written: Option<(&[u8], u64)>,
        visit: &mut impl FnMut(u64, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<()> {
        let (first, count) = (self.first, shape.elements);
        self.first = sum([first, count])?;
        let Some(address) = address.filter(|_| first < self.end) else {
            return Ok(());
        };
        let block = Elements { address, signature: b"EADB", first, count, written };
        self.array.visit_block(block, visit)
    }
}
