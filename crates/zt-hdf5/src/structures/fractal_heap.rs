//! Fractal heaps, which have the links or attributes of an object with many of them. Spec: III.G.
//!
//! Managed objects are in direct blocks. A table finds a block by an object's offset in the heap: rows
//! of `width` blocks, two rows of the starting size, and then rows of twice the size each. From some
//! row on, blocks are tables themselves. A table has a checksum, and so has a block where the heap's
//! flags say so. Each is compared once.

use std::cell::RefCell;
use std::collections::HashMap;

use zt::{Error, Result};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{encoded_len, product, sum};
use crate::bytes::store::{Block, Store};
use crate::structures::btree2;

const WHAT: &str = "a heap";
const BLOCK: &str = "a block of a heap";
const TABLE: &str = "a table of a heap";

/// The flag of checksums in direct blocks.
const CHECKSUMS: u8 = 1 << 1;

/// The most nested tables.
const TABLES: usize = 64;

/// A heap whose header has been read.
pub(crate) struct FractalHeap<'s> {
    store: &'s Store,
    /// Bytes of an offset in the heap, and of a length.
    offset_len: u64,
    length_len: u64,
    huge: Huge,
    width: u64,
    first_len: u64,
    direct_max: u64,
    root: Option<u64>,
    /// Rows of the root; 0 if it is a direct block.
    root_rows: u16,
    /// Whether direct blocks have checksums.
    has_checksums: bool,
}

impl<'s> FractalHeap<'s> {
    /// Reads the header at `address`. Filtered heaps are unsupported.
    pub(crate) fn open(store: &'s Store, address: u64) -> Result<Self> {
        let sizes = store.sizes;
        let len = sizes.bytes(3, 12, 4 + 1 + 2 + 2 + 1 + 4 + 2 + 2 + 2 + 2 + 4);
        let header = store.fetch_checked(address, len, WHAT);
        let header = header.map_err(|error| unless_filtered(store, address, error))?;
        let mut cursor = header.signed(b"FRHP")?;
        cursor.expect_version(0)?;
        let id_len = u64::from(cursor.u16()?);
        cursor.skip(2)?;
        let has_checksums = cursor.u8()? & CHECKSUMS != 0;
        let object_max = u64::from(cursor.u32()?);
        cursor.length()?;
        let huge = Huge {
            tree: cursor.address()?,
            is_in_id: sizes.bytes(1, 1, 0) < id_len,
            known: RefCell::default(),
        };
        // Free space and statistics.
        cursor.skip(sizes.bytes(1, 9, 0))?;
        let width = u64::from(cursor.u16()?);
        let first_len = cursor.length()?;
        let direct_max = cursor.length()?;
        let bits = cursor.u16()?;
        cursor.skip(2)?;
        let root = cursor.address()?;
        let root_rows = cursor.u16()?;
        let is_max = direct_max.is_power_of_two() && direct_max >= first_len;
        for (is_valid, what, value) in [
            (width.is_power_of_two(), "the width of a heap", width),
            (first_len.is_power_of_two(), "a heap's least block", first_len),
            (is_max, "a heap's largest direct block", direct_max),
            (bits <= 64, "the bits of a heap's offsets", bits.into()),
        ] {
            if !is_valid {
                return Err(cursor.field(what, value));
            }
        }
        Ok(FractalHeap {
            store,
            offset_len: bits.div_ceil(8).into(),
            // At most as wide as an offset in the largest direct block: `H5HF_SIZEOF_OFFSET_LEN`.
            length_len: direct_len(direct_max).min(encoded_len(object_max)),
            huge,
            width,
            first_len,
            direct_max,
            root,
            root_rows,
            has_checksums,
        })
    }

    pub(crate) fn object(&self, id: &[u8]) -> Result<Block> {
        const OBJECT: &str = "an object of a heap";
        const HUGE: u8 = 1;
        const TINY: u8 = 2;
        let mut cursor = Cursor::new(id, 0, self.store.sizes, "an ID of a heap");
        match cursor.u8()? >> 4 {
            0 => {}
            HUGE => {
                let (address, len) = self.huge.place(self.store, &mut cursor)?;
                return self.store.fetch(address, len, OBJECT);
            }
            TINY => {
                let [first, rest @ ..] = id else {
                    return Err(cursor.field("the length of an ID of a heap", 0));
                };
                // Longer IDs have another byte of the length.
                const SHORT: usize = 17;
                let (high, rest) = match rest {
                    [low, rest @ ..] if rest.len() >= SHORT => (Some(low), rest),
                    rest => (None, rest),
                };
                let len = usize::from(first & 0x0F);
                let len = high.map_or(len, |low| len << 8 | usize::from(*low));
                let object = rest.get(..len.strict_add(1));
                let object =
                    object.ok_or_else(|| cursor.field("the length in an ID", len as u64))?;
                return Ok(self.store.block(object.to_vec(), OBJECT));
            }
            other => {
                return Err(cursor.field("the kind of an ID of a heap", other.into()));
            }
        }
        let offset = cursor.uint(self.offset_len)?;
        let len = cursor.uint(self.length_len)?;
        let address = self.address(offset, len)?;
        self.store.fetch(address, len, OBJECT)
    }

    /// The address of the `len` bytes at `offset` of the heap.
    fn address(&self, offset: u64, len: u64) -> Result<u64> {
        let wrong = || Hdf5Fault::field("the offset of an object in a heap", offset);
        let mut block = self.root.ok_or_else(wrong)?;
        let mut rows = u64::from(self.root_rows);
        let mut start = 0u64;
        let mut block_len = self.first_len;
        for _ in 0..TABLES {
            if rows == 0 {
                let relative = offset.checked_sub(start).ok_or_else(wrong)?;
                let fits = relative.checked_add(len).is_some_and(|end| end <= block_len);
                let address = block.checked_add(relative).filter(|_| fits);
                if self.has_checksums {
                    let at = self.head_len()?;
                    self.store.check_once(block, block_len, Some(at), BLOCK)?;
                }
                return address.ok_or_else(wrong);
            }
            let (row, column);
            (row, column, start, block_len) = self.place(offset, start).ok_or_else(wrong)?;
            if row >= rows {
                return Err(wrong());
            }
            let entries = product([rows, self.width, self.store.sizes.offset])?;
            let table_len = sum([self.head_len()?, entries, 4])?;
            self.store.check_once(block, table_len, None, TABLE)?;
            block = self.child(block, row, column)?;
            rows = if block_len <= self.direct_max {
                0
            } else {
                self.rows_of(block_len).ok_or_else(wrong)?
            };
        }
        Err(wrong())
    }

    /// The row, the column, the offset and the length of the block with `offset`, in a table that
    /// begins at `start`.
    fn place(&self, offset: u64, start: u64) -> Option<(u64, u64, u64, u64)> {
        let relative = offset.checked_sub(start)?;
        let row_len = self.width.checked_mul(self.first_len)?;
        // All rows before row n > 0 together are as long as row n.
        let row = match relative.checked_div(row_len)? {
            0 => 0,
            rows => u64::from(rows.ilog2()).checked_add(1)?,
        };
        let (doubled, row_start) = match row.checked_sub(1) {
            None => (self.first_len, 0),
            Some(shift) => {
                let shift = u32::try_from(shift).ok()?;
                let factor = 1u64.checked_shl(shift)?;
                (self.first_len.checked_mul(factor)?, row_len.checked_mul(factor)?)
            }
        };
        let column = relative.checked_sub(row_start)?.checked_div(doubled)?;
        let begin = column.checked_mul(doubled)?.checked_add(row_start)?;
        Some((row, column, start.checked_add(begin)?, doubled))
    }

    /// Rows of a table that covers `len` bytes.
    fn rows_of(&self, len: u64) -> Option<u64> {
        let first = self.width.checked_mul(self.first_len)?;
        let rows = len.checked_div(first)?.checked_ilog2()?;
        u64::from(rows).checked_add(1)
    }

    /// Bytes of a block or a table before its checksum or its entries: the signature, the version, the
    /// address of the heap and the offset in it.
    fn head_len(&self) -> Result<u64> {
        let fixed = self.store.sizes.bytes(1, 0, 4 + 1);
        Ok(sum([fixed, self.offset_len])?)
    }

    fn child(&self, table: u64, row: u64, column: u64) -> Result<u64> {
        let sizes = self.store.sizes;
        let entry = sum([product([row, self.width])?, column])?;
        let before = product([entry, sizes.offset])?;
        let address = sum([table, self.head_len()?, before])?;
        let block = self.store.fetch(address, sizes.offset, WHAT)?;
        block.cursor().defined_address()
    }
}

/// Objects that are too large for a block. A tree of version 2 has their places. Spec: III.G, "Huge
/// Objects".
struct Huge {
    tree: Option<u64>,
    /// Whether IDs are wide enough for the places.
    is_in_id: bool,
    /// Addresses and lengths by number, once they have been read.
    known: RefCell<Option<HashMap<u64, (u64, u64)>>>,
}

impl Huge {
    /// The address and the length of an object. `id` is the rest of its ID.
    fn place(&self, store: &Store, id: &mut Cursor<'_>) -> Result<(u64, u64)> {
        if self.is_in_id {
            return Ok((id.defined_address()?, id.length()?));
        }
        let number = id.uint(id.remaining().min(store.sizes.length))?;
        let mut known = self.known.borrow_mut();
        let known = match &mut *known {
            Some(known) => known,
            None => known.insert(self.read(store)?),
        };
        let wrong = || Hdf5Fault::field("the number of a huge object", number);
        known.get(&number).copied().ok_or_else(wrong)
    }

    fn read(&self, store: &Store) -> Result<HashMap<u64, (u64, u64)>> {
        /// The type of records of objects without filters, by number.
        const NUMBERED: u8 = 1;
        let mut found = HashMap::new();
        if let Some(tree) = self.tree {
            btree2::visit(store, tree, NUMBERED, WHAT, |mut record| {
                let place = (record.defined_address()?, record.length()?);
                found.insert(record.length()?, place);
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// Bytes of an offset in a direct block with that length, a power of two.
fn direct_len(direct_max: u64) -> u64 {
    direct_max.trailing_zeros().div_ceil(8).into()
}

/// `error`, unless the heap is filtered: then its header is longer and its checksum elsewhere.
fn unless_filtered(store: &Store, address: u64, error: Error) -> Error {
    let filters_len = || {
        let head = store.fetch(address, 9, WHAT).ok()?;
        let mut cursor = head.signed(b"FRHP").ok()?;
        cursor.skip(1 + 2).ok()?;
        cursor.u16().ok()
    };
    match filters_len() {
        Some(1..) => Hdf5Fault::Unsupported("a filtered heap").into(),
        _ => error,
    }
}
