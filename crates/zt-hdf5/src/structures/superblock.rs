//! The superblock: the address of the root group, and the width of addresses. Spec: II.
//!
//! ```text
//! version 0, 1: signature, versions, sizes, B-tree ranks, flags, base, free space, end, driver,
//!               symbol table entry of the root group
//! version 2, 3: signature, version, sizes, flags, base, extension, end, root group, checksum
//! ```

use std::sync::Arc;

use zt::{Error, Result, Source, Span};

use crate::bytes::checksum::lookup3;
use crate::bytes::cursor::Cursor;
use crate::bytes::fault::Hdf5Fault;
use crate::bytes::size::{Sizes, in_memory, product, sum};
use crate::bytes::store::{self, Store};
use crate::structures::object_header::{ObjectHeader, kind};
use crate::structures::shared;

/// The signature at the beginning of the superblock.
pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The shortest user block before a superblock. Its length is a power of two.
const FIRST: u64 = 512;

/// Bytes of the longest superblock: version 1 with 8-byte addresses.
const LEN_MAX: u64 = 8 + 16 + 4 + 4 * 8 + 40;

/// Finds and reads the superblock of the file in `extent` of a source. Returns the file, and the
/// address of the root group's object header. A metadata cache image is unsupported.
pub(crate) fn open(source: Arc<dyn Source>, extent: Span) -> Result<(Store, u64)> {
    let base = locate(&*source, extent)?.ok_or(Hdf5Fault::Signature)?;
    let end = sum([base, LEN_MAX])?.min(extent.end());
    let span = Span::between(base, end).ok_or(Hdf5Fault::Signature)?;
    let bytes = store::read(&*source, span)?;
    let sizes = Sizes { offset: 8, length: 8 };
    let mut cursor = Cursor::new(&bytes, base, sizes, "the superblock");
    cursor.skip(SIGNATURE.len() as u64)?;
    let found = match cursor.u8()? {
        0 => old(&mut cursor, 0)?,
        1 => old(&mut cursor, 4)?,
        2 | 3 => new(&mut cursor, &bytes)?,
        version => return Err(cursor.version(version)),
    };
    // If bytes were put before a file later, its end moved with its base.
    let moved = found.end.checked_sub(found.base);
    let expected = moved.and_then(|len| base.checked_add(len));
    let expected = expected.ok_or_else(|| cursor.field("the end of the file", found.end))?;
    if extent.end() < expected {
        let expected = expected.strict_sub(extent.offset());
        let found = extent.byte_len();
        return Err(Hdf5Fault::Cut { expected, found }.into());
    }
    let mut store = Store::new(source, extent, base, found.sizes);
    if let Some(extension) = found.extension {
        let extension = ObjectHeader::read(&store, extension)?;
        // With an image, the bytes at the addresses of structures are older, or none.
        if let Some(mut message) = extension.message(kind::CACHE_IMAGE) {
            message.cursor.expect_version(0)?;
            if message.cursor.address()?.is_some() {
                return Err(Hdf5Fault::CacheImage.into());
            }
        }
        if let Some(mut message) = extension.message(kind::SHARED_TABLE) {
            let heaps = shared::read_table(&store, &mut message.cursor)?;
            store.heaps = heaps.into();
        }
    }
    Ok((store, found.root))
}

/// The offset of the superblock in a source: at the beginning of `extent`, or after 512, 1024, ...
/// bytes of it.
pub(crate) fn locate(source: &dyn Source, extent: Span) -> Result<Option<u64>> {
    let mut place = extent.offset();
    let mut skip = FIRST;
    let mut head = [0; SIGNATURE.len()];
    while sum([place, SIGNATURE.len() as u64])? <= extent.end() {
        source.read_at(place, &mut head)?;
        if head == SIGNATURE {
            return Ok(Some(place));
        }
        place = sum([extent.offset(), skip])?;
        skip = product([skip, 2])?;
    }
    Ok(None)
}

struct Found {
    sizes: Sizes,
    base: u64,
    /// The object header of the superblock's extension, which old versions lack.
    extension: Option<u64>,
    end: u64,
    root: u64,
}

fn sizes(cursor: &mut Cursor<'_>) -> Result<Sizes> {
    let mut size = |name| match cursor.u8()? {
        size @ (2 | 4 | 8) => Ok(size.into()),
        size => Err(cursor.field(name, size.into())),
    };
    Ok(Sizes { offset: size("the width of addresses")?, length: size("the width of lengths")? })
}

/// Versions 0 and 1, which have `more` bytes after the flags.
fn old(cursor: &mut Cursor<'_>, more: u64) -> Result<Found> {
    // The versions of parts, which have only one version each.
    cursor.skip(4)?;
    let sizes = sizes(cursor)?;
    // A reserved byte, the ranks of B-trees and the flags.
    cursor.skip(1 + 2 + 2 + 4)?;
    cursor.skip(more)?;
    let offset = sizes.offset;
    let base = cursor.uint(offset)?;
    cursor.skip(offset)?;
    let end = cursor.uint(offset)?;
    // The driver's block, and the unused name of the root group, which is as wide as a length.
    cursor.skip(offset)?;
    cursor.skip(sizes.length)?;
    let root = cursor.uint(offset)?;
    Ok(Found { sizes, base, extension: None, end, root })
}

/// Versions 2 and 3.
fn new(cursor: &mut Cursor<'_>, bytes: &[u8]) -> Result<Found> {
    let sizes = sizes(cursor)?;
    cursor.skip(1)?;
    let offset = sizes.offset;
    let base = cursor.uint(offset)?;
    cursor.sizes = sizes;
    let extension = cursor.address()?;
    let end = cursor.uint(offset)?;
    let root = cursor.uint(offset)?;
    let covered = in_memory(cursor.position())?;
    let expected = cursor.u32()?;
    let found = lookup3(bytes.get(..covered).ok_or(Hdf5Fault::TooFar)?);
    if found != expected {
        let fault = Hdf5Fault::Checksum { what: "the superblock", expected, found };
        return Err(Error::from(fault).with_offset(cursor.offset()));
    }
    Ok(Found { sizes, base, extension, end, root })
}
