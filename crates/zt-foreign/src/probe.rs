//! A file whose kind is not known yet.
#![deny(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use zt::{Result, Source};

/// Bytes that the kinds look at first: enough for every magic, also that of tar at 257.
const HEAD: u64 = 512;

/// A file of unknown kind and its first bytes.
pub struct Probe<'s> {
    source: &'s dyn Source,
    head: Vec<u8>,
}

impl<'s> Probe<'s> {
    /// Reads the first bytes of `source`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn new(source: &'s dyn Source) -> Result<Self> {
        let len = source.byte_len().min(HEAD);
        let mut head = vec![0; usize::try_from(len).unwrap_or(0)];
        source.read_at(0, &mut head)?;
        Ok(Probe { source, head })
    }

    /// The first 512 bytes; all of a smaller file.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file, for kinds that need more than its beginning.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        self.source
    }

    /// Bytes of the file.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    /// Whether `needle` occurs in the first `limit` bytes. Reads 64 KiB at a time.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn contains(&self, needle: &[u8], limit: u64) -> Result<bool> {
        const PIECE: u64 = 64 << 10;
        let end = self.byte_len().min(limit);
        // Pieces overlap, so that a needle on their border is whole in one of them.
        let overlap = (needle.len() as u64).saturating_sub(1);
        let mut piece = Vec::new();
        let mut offset = 0u64;
        while offset < end {
            let len = end.saturating_sub(offset).min(PIECE);
            piece.resize(usize::try_from(len).unwrap_or(0), 0);
            self.source.read_at(offset, &mut piece)?;
            if piece.windows(needle.len()).any(|window| window == needle) {
                return Ok(true);
            }
            if offset.saturating_add(len) == end {
                break;
            }
            offset = offset.saturating_add(len.saturating_sub(overlap));
        }
        Ok(false)
    }
}
