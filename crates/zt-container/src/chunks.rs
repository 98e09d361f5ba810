//! The digests of a raw blob's chunks, to verify parts of the blob. Spec: §6.1.

use crate::blob::Blob;
use crate::digest::{Digest, DigestAlgorithm};
use crate::error::{Error, Misuse, Result};
use crate::hasher::Hasher;
use crate::memory::bytes_of;
use crate::source::Source;
use crate::span::Span;

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

    /// Bytes of the table.
    pub const fn byte_len(&self) -> usize {
        self.bytes.len()
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
        let mut all = self.get(0)?;
        let mut left = byte_len.checked_sub(CHUNK)?;
        let mut at = 1;
        while left > 0 {
            let len = left.min(CHUNK);
            all = all.followed_by(&self.get(at)?, len)?;
            left = left.checked_sub(len)?;
            at = at.strict_add(1);
        }
        Some(all)
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
/// assert_eq!(chunker.whole(), Some(Crc32c.digest(&bytes)?));
/// let table = chunker.finish();
/// assert_eq!(table.len(), 2 * 4);
///
/// // The chunks may be hashed apart from each other.
/// let (first, last) = bytes.split_at(CHUNK as usize);
/// let [mut all, mut next] = [Chunker::new(Crc32c)?, Chunker::new(Crc32c)?];
/// all.update(first);
/// next.update(last);
/// assert!(all.append(next));
/// assert!(!all.append(Chunker::new(Crc32c)?), "a chunk is in progress");
/// assert_eq!(all.whole(), Some(Crc32c.digest(&bytes)?));
/// assert_eq!(all.finish(), table);
/// # }
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug)]
pub struct Chunker {
    algorithm: DigestAlgorithm,
    /// The chunk in progress, and its bytes so far.
    hasher: Option<Hasher>,
    filled: u64,
    /// The digest of all complete chunks, if the algorithm combines.
    complete: Option<Digest>,
    table: Vec<u8>,
}

impl Chunker {
    /// A chunker that has seen no bytes.
    ///
    /// # Errors
    ///
    /// As [`Hasher::new`].
    pub fn new(algorithm: DigestAlgorithm) -> Result<Self> {
        Ok(Chunker {
            algorithm,
            hasher: Some(Hasher::new(algorithm)?),
            filled: 0,
            complete: Some(algorithm.digest(&[])?).filter(|_| algorithm.combines()),
            table: Vec::new(),
        })
    }

    /// The algorithm of its digests.
    pub const fn algorithm(&self) -> DigestAlgorithm {
        self.algorithm
    }

    /// Adds the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(CHUNK.strict_sub(self.filled)).unwrap_or(usize::MAX);
            let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            if let Some(hasher) = &mut self.hasher {
                hasher.update(head);
            }
            self.advance(head.len() as u64);
            bytes = rest;
        }
    }

    /// Adds what another chunker has seen, as if its bytes came next. Returns `false` and adds nothing if
    /// a chunk is in progress here, or if the algorithms differ.
    pub fn append(&mut self, next: Chunker) -> bool {
        if self.filled > 0 || next.algorithm != self.algorithm {
            return false;
        }
        let table = next.table.len() as u64;
        let chunks = width(self.algorithm).and_then(|width| table.checked_div(width));
        let ended = CHUNK.strict_mul(chunks.unwrap_or(0));
        let complete = self.complete.take().zip(next.complete);
        self.complete = complete.and_then(|(all, next)| all.followed_by(&next, ended));
        self.table.extend_from_slice(&next.table);
        (self.hasher, self.filled) = (next.hasher, next.filled);
        true
    }

    fn advance(&mut self, byte_len: u64) {
        self.filled = self.filled.strict_add(byte_len);
        if self.filled == CHUNK {
            self.end_chunk();
        }
    }

    fn end_chunk(&mut self) {
        // A hasher of this algorithm was made before, so this one can be made too.
        let next = Hasher::new(self.algorithm).ok();
        if let Some(hasher) = std::mem::replace(&mut self.hasher, next) {
            self.push(&hasher.finish(), self.filled);
        }
        self.filled = 0;
    }

    fn push(&mut self, digest: &Digest, byte_len: u64) {
        match digest {
            Digest::Crc32c(sum) => self.table.extend_from_slice(&sum.to_le_bytes()),
            Digest::Sha256(sum) => self.table.extend_from_slice(sum),
            Digest::Other { .. } | Digest::Unknown { .. } => {}
        }
        let complete = self.complete.take();
        self.complete = complete.and_then(|all| all.followed_by(digest, byte_len));
    }

    /// The digest of all bytes so far, if the algorithm combines. Ends the chunk in progress: no bytes may
    /// follow.
    pub fn whole(&mut self) -> Option<Digest> {
        if self.filled > 0 {
            self.end_chunk();
        }
        self.complete.clone()
    }

    /// The digests of all chunks.
    pub fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.end_chunk();
        }
        self.table
    }
}
