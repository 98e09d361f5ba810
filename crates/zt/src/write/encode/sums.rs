//! The digests of one blob: of all its stored bytes, and of each chunk.

use zt_container::{CHUNK, ChunkTable, Chunker, Digest, DigestAlgorithm, Hasher};

use crate::error::Result;

/// Computes the digests of a blob from its bytes, in their order.
#[derive(Default)]
pub(super) struct Sums {
    /// `None` without a digest, and if the chunk digests combine to it.
    hasher: Option<Hasher>,
    chunker: Option<Chunker>,
    /// Whether the digest is combined from the chunk digests.
    is_combined: bool,
}

impl Sums {
    /// The digest by one algorithm, and chunk digests by another or the same one.
    pub(super) fn new(
        digest: Option<DigestAlgorithm>,
        chunks: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let is_combined = digest == chunks && digest.is_some_and(DigestAlgorithm::combines);
        let hashed = digest.filter(|_| !is_combined);
        Ok(Sums {
            hasher: hashed.map(Hasher::new).transpose()?,
            chunker: chunks.map(Chunker::new).transpose()?,
            is_combined,
        })
    }

    /// The digests of a complete blob. Chunk digests are computed only if there is more than one chunk.
    pub(super) fn of(
        bytes: &[u8],
        digest: Option<DigestAlgorithm>,
        chunks: Option<DigestAlgorithm>,
    ) -> Result<Self> {
        let chunks = chunks.filter(|_| digest.is_some() && bytes.len() as u64 > CHUNK);
        let mut sums = Sums::new(digest, chunks)?;
        sums.update(bytes);
        Ok(sums)
    }

    /// Whether there is nothing to compute.
    pub(super) fn is_none(&self) -> bool {
        self.hasher.is_none() && self.chunker.is_none()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        if let Some(chunker) = &mut self.chunker {
            chunker.update(bytes);
        }
    }

    /// The digest of all bytes, and the chunk digests if there is more than one chunk.
    pub(super) fn finish(self, byte_len: u64) -> (Option<Digest>, Option<ChunkTable>) {
        let table = self.chunker.map(Chunker::finish);
        let digest = match &table {
            Some(table) if self.is_combined => table.whole(byte_len),
            _ => self.hasher.map(Hasher::finish),
        };
        (digest, table.filter(|_| byte_len > CHUNK))
    }
}
