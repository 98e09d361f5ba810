//! The image of the library's metadata cache: structures that override the bytes at their addresses.
//! Spec: IV.A.2.y and III.K (`H5Cimage.c`).
//!
//! ```text
//! "MDCI", version, flags, length, number of entries, entry, entry, ..., checksum
//! entry: type, flags, ring, age, dependencies, rank, address, length, addresses of parents, bytes
//! ```
//!
//! A library that closes a file in this way leaves older bytes at the addresses, or none.

use std::collections::BTreeMap;

use zt::Result;

use crate::cursor::Cursor;
use crate::size::{in_memory, product, sum};
use crate::store::Store;
use crate::violation::Violation;

/// Structures by their addresses. None overlaps another.
#[derive(Debug, Default)]
pub(super) struct CacheImage(BTreeMap<u64, Vec<u8>>);

impl CacheImage {
    /// Reads the image that a message of the superblock's extension refers to.
    ///
    /// # Errors
    ///
    /// Codes `header`, `version`, `bounds`.
    pub(super) fn read(store: &Store, message: &mut Cursor<'_>) -> Result<Self> {
        message.expect_version(0)?;
        let Some(address) = message.address()? else {
            return Ok(CacheImage::default());
        };
        let len = message.length()?;
        let image = store.fetch_checked(address, len, "a metadata cache image")?;
        let mut cursor = image.signed(b"MDCI")?;
        cursor.expect_version(0)?;
        cursor.skip(1)?;
        cursor.length()?;
        let mut entries = BTreeMap::new();
        for _ in 0..cursor.u32()? {
            // The type, the flags, the ring and the age; the children in the cache.
            cursor.skip(4 + 2 + 2)?;
            let parents = cursor.u16()?.into();
            cursor.skip(4)?;
            let address = cursor.defined_address()?;
            let len = cursor.length()?;
            cursor.skip(product([parents, cursor.sizes().offset])?)?;
            entries.insert(address, cursor.take(len)?.to_vec());
        }
        let mut end = 0;
        for (address, bytes) in &entries {
            if *address < end {
                return Err(cursor.field("the address of a cached structure", *address));
            }
            end = sum([*address, bytes.len() as u64])?;
        }
        Ok(CacheImage(entries))
    }

    /// Whether one of the `len` bytes from `address` on is in the image.
    pub(super) fn has(&self, address: u64, len: u64) -> bool {
        let end = address.saturating_add(len);
        let mut before = self.0.range(..end).rev();
        before
            .next()
            .is_some_and(|(start, bytes)| start.saturating_add(bytes.len() as u64) > address)
    }

    /// Puts the structures in the image to their places in the bytes from `address` on.
    pub(super) fn patch(&self, address: u64, out: &mut [u8]) -> Result<(), Violation> {
        let end = address.saturating_add(out.len() as u64);
        for (start, bytes) in self.0.range(..end).rev() {
            let own_end = start.saturating_add(bytes.len() as u64);
            if own_end <= address {
                break;
            }
            let skip = in_memory(address.saturating_sub(*start))?;
            let at = in_memory(start.saturating_sub(address))?;
            let bytes = bytes.get(skip..).unwrap_or_default();
            let out = out.get_mut(at..).unwrap_or_default();
            for (to, from) in out.iter_mut().zip(bytes) {
                *to = *from;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn structures_override_the_bytes_that_they_share() {
        let entries = [(4, vec![1, 2, 3]), (9, vec![4, 5])];
        let image = CacheImage(entries.into_iter().collect());
        for (address, expected) in [
            (0, [0, 0, 0, 0, 1]),
            (5, [2, 3, 0, 0, 4]),
            (6, [3, 0, 0, 4, 5]),
            (10, [5, 0, 0, 0, 0]),
            (11, [0; 5]),
        ] {
            let mut bytes = [0; 5];
            image.patch(address, &mut bytes).unwrap();
            assert_eq!(bytes, expected, "{address}");
            assert_eq!(image.has(address, 5), bytes != [0; 5]);
        }
    }
}
