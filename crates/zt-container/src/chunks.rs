//! The digests of a raw blob's chunks, to verify parts of the blob. Spec: §6.1.

use crate::blob::Blob;
use crate::digest::{Digest, DigestAlgorithm};
use crate::error::{Error, Misuse, Result};
use crate::hasher::Hasher;
use crate::memory::bytes_of;
use crate::source::Source;
use crate::span::Span;
use crate::stretches::Stretches;

/// Bytes of a chunk. The last chunk of a blob may be shorter.
pub const CHUNK: u64 = 1 << 20;

/// The stored table of a raw blob's chunk digests: one behind the other, all of the algorithm of
/// `digest`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chunks {
    /// The bytes of the table.
    pub span: Span,
    /// The digest of the table.
    pub digest: Digest,
}

impl Chunks {
    /// The length in bytes of the table of a blob of `byte_len` bytes. `None` if the blob has no table: it
    /// is not longer than a chunk, or the algorithm has no tables.
    pub const fn table_len(algorithm: DigestAlgorithm, byte_len: u64) -> Option<u64> {
        match width(algorithm) {
            Some(width) if byte_len > CHUNK => byte_len.div_ceil(CHUNK).checked_mul(width),
            _ => None,
        }
    }
}

/// Bytes of a digest in a table.
const fn width(algorithm: DigestAlgorithm) -> Option<u64> {
    match algorithm {
        DigestAlgorithm::Crc32c => Some(4),
        DigestAlgorithm::Sha256 => Some(32),
        DigestAlgorithm::Other(_) => None,
    }
}

/// The digests of a blob's chunks, in memory.
#[derive(Debug, Clone)]
pub struct ChunkTable {
    algorithm: DigestAlgorithm,
    bytes: Vec<u8>,
}

impl ChunkTable {
    /// Reads the table of `blob` and checks its digest. `None` if the blob has no table.
    ///
    /// # Errors
    ///
    /// [`Error::DigestMismatch`] about the table; [`Error::Io`]; as [`Hasher::new`].
    pub fn read(source: &dyn Source, blob: &Blob) -> Result<Option<Self>> {
        let chunks = blob.chunks.as_deref();
        let known = chunks.and_then(|chunks| Some((chunks, chunks.digest.algorithm()?)));
        let Some((chunks, algorithm)) = known else {
            return Ok(None);
        };
        // The reader of the manifest has compared the two lengths already.
        if Chunks::table_len(algorithm, blob.span.byte_len()) != Some(chunks.span.byte_len()) {
            return Ok(None);
        }
        let bytes = bytes_of(source, chunks.span)?.into_owned();
        chunks.digest.expect(algorithm.digest(&bytes)?)?;
        Ok(Some(ChunkTable { algorithm, bytes }))
    }

    /// The table as it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The algorithm of its digests.
    pub const fn algorithm(&self) -> DigestAlgorithm {
        self.algorithm
    }

    /// The digest of a chunk.
    pub fn get(&self, at: usize) -> Option<Digest> {
        let rest = |width: usize| self.bytes.get(at.checked_mul(width)?..);
        match self.algorithm {
            DigestAlgorithm::Crc32c => {
                let sum = rest(4)?.first_chunk()?;
                Some(Digest::Crc32c(u32::from_le_bytes(*sum)))
            }
            DigestAlgorithm::Sha256 => Some(Digest::Sha256(*rest(32)?.first_chunk()?)),
            DigestAlgorithm::Other(_) => None,
        }
    }

    /// The digest of the whole blob of `byte_len` bytes, if the algorithm combines.
    pub fn whole(&self, byte_len: u64) -> Option<Digest> {
        let none = self.algorithm.digest(&[]).ok().filter(|_| self.algorithm.combines())?;
        let chunks = Stretches::new(Span::new(0, byte_len)?, CHUNK);
        (0..chunks.count()).try_fold(none, |all, at| {
            all.followed_by(&self.get(usize::try_from(at).ok()?)?, chunks.get(at)?.byte_len())
        })
    }

    /// Checks the bytes of the chunk at position `at`.
    ///
    /// # Errors
    ///
    /// [`Error::DigestMismatch`]; as [`Hasher::new`].
    pub fn check(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let found = self.algorithm.digest(bytes)?;
        match self.get(at) {
            Some(expected) => expected.expect(found),
            // A caller's fault: the blob has no such chunk.
            None => Err(Error::Misuse(Misuse::TooLong)),
        }
    }
}

/// Computes the table of a blob whose bytes come in pieces.
///
/// ```
/// # #[cfg(feature = "crc32c")] {
/// use zt_container::{CHUNK, Chunker, DigestAlgorithm::Crc32c};
/// let bytes = vec![1; CHUNK as usize + 5];
/// let mut chunker = Chunker::new(Crc32c)?;
/// chunker.update(&bytes);
/// let table = chunker.finish();
/// assert_eq!(table.as_bytes().len(), 2 * 4);
/// assert_eq!(table.whole(bytes.len() as u64), Some(Crc32c.digest(&bytes)?));
/// # }
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct Chunker {
    /// The chunk in progress.
    hasher: Option<Hasher>,
    /// The bytes so far.
    byte_len: u64,
    /// Of all complete chunks.
    table: ChunkTable,
}

impl Chunker {
    /// A chunker that has seen no bytes.
    ///
    /// # Errors
    ///
    /// As [`Hasher::new`].
    pub fn new(algorithm: DigestAlgorithm) -> Result<Self> {
        let table = ChunkTable { algorithm, bytes: Vec::new() };
        Ok(Chunker { hasher: Some(Hasher::new(algorithm)?), byte_len: 0, table })
    }

    /// The algorithm of its digests.
    pub const fn algorithm(&self) -> DigestAlgorithm {
        self.table.algorithm
    }

    /// Adds the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(CHUNK.strict_sub(self.filled())).unwrap_or(usize::MAX);
            let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            if let Some(hasher) = &mut self.hasher {
                hasher.update(head);
            }
            self.byte_len = self.byte_len.strict_add(head.len() as u64);
            if self.filled() == 0 {
                self.end_chunk();
            }
            bytes = rest;
        }
    }

    /// The bytes of the chunk in progress.
    const fn filled(&self) -> u64 {
        self.byte_len % CHUNK
    }

    fn end_chunk(&mut self) {
        // A hasher of this algorithm was made before, so this one can be made too.
        let next = Hasher::new(self.algorithm()).ok();
        match std::mem::replace(&mut self.hasher, next).map(Hasher::finish) {
            Some(Digest::Crc32c(sum)) => self.table.bytes.extend_from_slice(&sum.to_le_bytes()),
            Some(Digest::Sha256(sum)) => self.table.bytes.extend_from_slice(&sum),
            Some(Digest::Other { .. } | Digest::Unknown { .. }) | None => {}
        }
    }

    /// The digests of all chunks. No bytes may follow.
    pub fn finish(mut self) -> ChunkTable {
        if self.filled() > 0 {
            self.end_chunk();
        }
        self.table
    }
}
