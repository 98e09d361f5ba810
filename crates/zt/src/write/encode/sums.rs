//! The digests of one blob: of all its stored bytes, and of each chunk.

use zt_container::{
    CHUNK, ChunkTable, Chunker, Digest, DigestAlgorithm, FileSource, Hasher, Source, Span,
};

use zt_container::memory::{in_memory, resize};

use crate::cores::work::Task;
use crate::error::{Error, Result};
use crate::write::tools::Tools;

/// Bytes of a file that are hashed at a time. They stay in a core's cache.
///
/// Pays: not measured.
const PIECE: u64 = 256 << 10;

/// Computes the digests of a blob from its bytes, in their order.
#[derive(Default)]
pub(super) struct Sums {
    /// `None` without a digest, and if the chunk digests combine to it.
    hasher: Option<Hasher>,
    chunker: Option<Chunker>,
    /// Whether the digest is combined from the chunk digests.
    is_combined: bool,
}

/// The digests of a blob part by part, which workers compute. All parts but the last end with a chunk.
#[derive(Default)]
pub(super) struct Parts<'m>(Vec<(u64, Task<'m, Result<Sums>>)>);

impl<'m> Parts<'m> {
    /// Adds the next part, of `byte_len` bytes.
    pub(super) fn push(&mut self, byte_len: u64, sums: Task<'m, Result<Sums>>) {
        self.0.push((byte_len, sums));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all parts.
    pub(super) fn byte_len(&self) -> u64 {
        self.0.iter().map(|(byte_len, _)| byte_len).sum()
    }

    /// Does what no other thread has begun.
    pub(super) fn help(&self) {
        self.0.iter().for_each(|(_, sums)| sums.help());
    }

    /// Waits for the digests of all parts.
    pub(super) fn join(self) -> Result<Sums> {
        let mut all: Option<Sums> = None;
        for (byte_len, sums) in self.0 {
            let next = sums.wait().ok_or_else(Error::out_of_order)??;
            match &mut all {
                Some(all) => all.append(next, byte_len)?,
                None => all = Some(next),
            }
        }
        Ok(all.unwrap_or_default())
    }
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

    /// The digests of `span` of a file.
    pub(super) fn of_file(
        file: &FileSource,
        span: Span,
        digest: Option<DigestAlgorithm>,
        chunks: Option<DigestAlgorithm>,
        tools: &Tools,
    ) -> Result<Self> {
        let mut sums = Sums::new(digest, chunks)?;
        let mut piece = tools.used_buffer(in_memory(PIECE))?;
        resize(&mut piece, PIECE)?;
        let mut offset = span.offset();
        while offset < span.end() {
            let len = in_memory(PIECE.min(span.end().strict_sub(offset)));
            let bytes = piece.get_mut(..len).unwrap_or_default();
            file.read_at(offset, bytes)?;
            sums.update(bytes);
            offset = offset.strict_add(len as u64);
        }
        tools.give_back(piece);
        Ok(sums)
    }

    /// Takes in what `next` has seen, `byte_len` bytes that begin with a chunk. Its algorithms combine.
    pub(super) fn append(&mut self, next: Sums, byte_len: u64) -> Result<()> {
        let is_chunked = match (&mut self.chunker, next.chunker) {
            (Some(chunker), Some(next)) => chunker.append(next),
            (all, next) => all.is_none() && next.is_none(),
        };
        let is_hashed = match (&mut self.hasher, next.hasher) {
            (Some(hasher), Some(next)) => hasher.append(&next.finish(), byte_len),
            (all, next) => all.is_none() && next.is_none(),
        };
        if is_chunked && is_hashed {
            return Ok(());
        }
        Err(Error::out_of_order())
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
