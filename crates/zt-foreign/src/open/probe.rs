//! A file of unknown kind.

use zt::container::memory::in_memory;
use zt::{Result, Source};

/// Bytes that the kinds look at first: enough for every magic. The magic of tar is at 257.
const HEAD: usize = 512;

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
        let mut head = vec![0; in_memory(source.byte_len().min(HEAD as u64))];
        source.read_at(0, &mut head)?;
        Ok(Probe { source, head })
    }

    /// The first 512 bytes; all of a smaller file.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file, for kinds that need more than its beginning.
    pub fn source(&self) -> &dyn Source {
        self.source
    }

    /// Bytes of the file.
    pub fn byte_len(&self) -> u64 {
        self.source.byte_len()
    }

    /// Whether `needle`, a word of a few bytes, occurs in the first `limit` bytes. Reads 64 KiB at a
    /// time.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Io`].
    pub fn contains(&self, needle: &[u8], limit: u64) -> Result<bool> {
        const PIECE: usize = 64 << 10;
        let end = self.byte_len().min(limit);
        // Pieces overlap, so that a needle on their border is whole in one of them.
        let step = PIECE.strict_sub(needle.len()).strict_add(1);
        let mut piece = Vec::new();
        for offset in (0..end).step_by(step) {
            let left = end.strict_sub(offset);
            piece.resize(in_memory(left.min(PIECE as u64)), 0);
            self.source.read_at(offset, &mut piece)?;
            if piece.windows(needle.len()).any(|window| window == needle) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
