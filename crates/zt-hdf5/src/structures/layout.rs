//! The layout of a dataset: the place of its values. Spec: IV.A.2.i.

use zt::{Result, Span};

use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{encoded_len, sum};

/// The place of a dataset's values.
#[derive(Debug, Clone)]
pub(crate) enum Layout {
    /// In the object header, as this span of the source.
    Compact(Span),
    /// In one piece. Without an address nothing was written. Versions 1 and 2 have no length.
    Contiguous {
        address: Option<u64>,
        byte_len: Option<u64>,
    },
    Chunked(Chunking),
    /// In other datasets. The mappings are an object of a global heap, if there are any: its
    /// address, and the index in it.
    Virtual(Option<u64>, u32),
}

/// The chunks of a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Chunking {
    /// Elements of a chunk in every dimension, outermost first.
    pub(crate) shape: Vec<u64>,
    /// Bytes of an element.
    pub(crate) element_len: u64,
    /// Chunks on the edge are not filtered.
    pub(crate) edges_are_plain: bool,
    /// The index of the chunks, and its address. Without an address nothing was written.
    pub(crate) index: Index,
    pub(crate) address: Option<u64>,
    /// Bytes of the length of a filtered chunk, in indices since version 4.
    pub(crate) length_len: u64,
}

/// The kind of an index of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    /// A B-tree of version 1.
    Tree1,
    /// There is one chunk. If there are filters: its length, and the mask of skipped filters.
    Single(Option<(u64, u32)>),
    /// All chunks are stored in order without gaps.
    Implicit,
    FixedArray,
    ExtensibleArray,
    /// A B-tree of version 2.
    Tree2,
}

impl Layout {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        match cursor.u8()? {
            1 | 2 => old(cursor),
            version @ 3..=5 => new(cursor, version),
            version => Err(cursor.version(version)),
        }
    }
}

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;

/// Versions 1 and 2.
fn old(cursor: &mut Cursor<'_>) -> Result<Layout> {
    let rank = cursor.u8()?;
    let class = cursor.u8()?;
    cursor.skip(5)?;
    let address = if class == COMPACT { None } else { cursor.address()? };
    let dimensions = dimensions(cursor, rank, 4)?;
    match class {
        COMPACT => {
            let len = cursor.u32()?;
            compact(cursor, len)
        }
        CONTIGUOUS => Ok(Layout::Contiguous { address, byte_len: None }),
        CHUNKED => Chunking::new(cursor, dimensions, address, Index::Tree1).map(Layout::Chunked),
        other => Err(cursor.field("the class of a layout", other.into())),
    }
}

/// Versions 3 to 5.
fn new(cursor: &mut Cursor<'_>, version: u8) -> Result<Layout> {
    match cursor.u8()? {
        COMPACT => {
            let len = cursor.u16()?;
            compact(cursor, len.into())
        }
        CONTIGUOUS => {
            Ok(Layout::Contiguous { address: cursor.address()?, byte_len: Some(cursor.length()?) })
        }
        CHUNKED if version == 3 => {
            let rank = cursor.u8()?;
            let address = cursor.address()?;
            let dimensions = dimensions(cursor, rank, 4)?;
            Chunking::new(cursor, dimensions, address, Index::Tree1).map(Layout::Chunked)
        }
        CHUNKED => indexed(cursor, version),
        VIRTUAL if version > 3 => Ok(Layout::Virtual(cursor.address()?, cursor.u32()?)),
        other => Err(cursor.field("the class of a layout", other.into())),
    }
}

fn dimensions(cursor: &mut Cursor<'_>, rank: u8, width: u64) -> Result<Vec<u64>> {
    (0..rank).map(|_| cursor.uint(width)).collect()
}

fn compact(cursor: &mut Cursor<'_>, len: u32) -> Result<Layout> {
    let offset = cursor.offset();
    cursor.skip(len.into())?;
    let span = Span::new(offset, len.into());
    span.map(Layout::Compact)
        .ok_or_else(|| cursor.field("the length of compact values", len.into()))
}

/// Chunks with one of the indices of version 4.
fn indexed(cursor: &mut Cursor<'_>, version: u8) -> Result<Layout> {
    const PLAIN_EDGES: u8 = 1;
    const SINGLE_IS_FILTERED: u8 = 2;
    let flags = cursor.u8()?;
    let rank = cursor.u8()?;
    let width = cursor.u8()?;
    if !(1..=8).contains(&width) {
        return Err(cursor.field("the width of a chunk's dimensions", width.into()));
    }
    let dimensions = dimensions(cursor, rank, width.into())?;
    let index = match cursor.u8()? {
        1 if flags & SINGLE_IS_FILTERED != 0 => {
            Index::Single(Some((cursor.length()?, cursor.u32()?)))
        }
        1 => Index::Single(None),
        2 => Index::Implicit,
        3 => {
            cursor.skip(1)?;
            Index::FixedArray
        }
        4 => {
            cursor.skip(5)?;
            Index::ExtensibleArray
        }
        5 => {
            cursor.skip(4 + 1 + 1)?;
            Index::Tree2
        }
        other => return Err(cursor.field("the type of an index of chunks", other.into())),
    };
    let address = cursor.address()?;
    let mut factors = dimensions.iter();
    let byte_len = factors.try_fold(1u64, |product, count| product.checked_mul(*count));
    let byte_len = byte_len.ok_or(Hdf5Fault::Overflow)?;
    let length_len = match version {
        // One byte more than the length takes: `H5D_FARRAY_FILT_COMPUTE_CHUNK_SIZE_LEN`.
        4 => sum([encoded_len(byte_len), 1])?.min(8),
        _ => cursor.sizes.length,
    };
    Ok(Layout::Chunked(Chunking {
        length_len,
        edges_are_plain: flags & PLAIN_EDGES != 0,
        ..Chunking::new(cursor, dimensions, address, index)?
    }))
}

impl Chunking {
    /// Chunks of version 3. The last dimension of a chunk is the length of an element.
    fn new(
        cursor: &Cursor<'_>,
        mut shape: Vec<u64>,
        address: Option<u64>,
        index: Index,
    ) -> Result<Self> {
        let zero = |what| cursor.field(what, 0);
        let element_len = shape.pop().filter(|_| !shape.is_empty());
        let element_len = element_len.ok_or_else(|| zero("the rank of a chunk"))?;
        if element_len == 0 || shape.contains(&0) {
            return Err(zero("a dimension of a chunk"));
        }
        Ok(Chunking { shape, element_len, edges_are_plain: false, index, address, length_len: 0 })
    }
}
