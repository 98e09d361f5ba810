//! The blob that is being written.

use std::borrow::Cow;
use std::io::Write;

use zt_container::codec::SeekTable;
use zt_container::{Blob, ChunkTable, DigestAlgorithm, Encoding, Span};

use super::Encoder;
use super::stored::Stored;
use super::sums::Sums;
use crate::error::{Error, Result};
use crate::write::chain::Chain;

/// Raw bytes that are hashed and written at a time. They stay in a cache, and Linux takes larger pages
/// for them: on ext4, 64 MB with a crc32c took 14.5 ms of processor time, and 16.9 ms in pieces of
/// 256 KiB.
///
/// Pays: nothing where bytes come in pieces: `zt convert` of 75 MB takes as long with 64 KiB and without end.
const PIECE: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) enum Placed {
    At(Blob),
    /// Known once the file is written: [`Encoder::finish`] gives the blobs by their tickets.
    Later {
        ticket: usize,
        /// `None` for codes.
        decoded_len: Option<u64>,
    },
}

impl Placed {
    /// The blob as far as it is known.
    pub(crate) fn into_blob(self) -> Blob {
        match self {
            Placed::At(blob) => blob,
            Placed::Later { decoded_len, .. } => Blob { decoded_len, ..Blob::raw(Span::default()) },
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Begin {
    pub(super) alignment: u64,
    pub(super) encoding: Encoding,
    /// Whether the frames end with a table of their places.
    pub(super) has_table: bool,
    /// Whether the lengths of the parts are kept for [`Item::Lengths`](super::queue::Item::Lengths).
    pub(super) has_lengths: bool,
    /// The digest to compute.
    pub(super) digest: Option<DigestAlgorithm>,
    pub(super) hashing: Hashing,
}

/// Which thread hashes a blob: the table in the head of `encode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashing {
    /// The one that writes.
    Writer,
    /// Any, behind the writing. The one that writes computes the chunk digests.
    Chain,
    /// A worker that has all bytes of the blob.
    Worker,
}

pub(super) struct OpenBlob {
    encoding: Encoding,
    table: Option<SeekTable>,
    lengths: Option<Vec<u8>>,
    sums: Sums,
    chain: Option<Chain>,
}

impl OpenBlob {
    /// Whether another thread hashes the bytes after they are written, so that they have to stay.
    pub(super) const fn is_chained(&self) -> bool {
        self.chain.is_some()
    }
}

pub(super) struct EndedBlob {
    pub(super) blob: Blob,
    /// Its digest, if a chain still computes it.
    pub(super) chain: Option<Chain>,
    /// Its chunk digests, which are written behind the last blob.
    pub(super) table: Option<ChunkTable>,
}

impl EndedBlob {
    /// Sets the digests, which a worker has computed.
    pub(super) fn set_sums(&mut self, sums: Sums) {
        (self.blob.digest, self.table) = sums.finish(self.blob.span.byte_len());
    }
}

impl<W: Write> Encoder<W> {
    pub(super) fn begin(&mut self, begin: Begin) -> Result<()> {
        self.container.begin_blob(begin.alignment, None)?;
        let is_raw = begin.encoding == Encoding::Raw && !begin.has_table;
        let chunks = self.chunks.filter(|_| is_raw && begin.digest.is_some());
        let (sums, chain) = match (begin.hashing, begin.digest) {
            (Hashing::Writer, digest) => (Sums::new(digest, chunks)?, None),
            (Hashing::Chain, Some(algorithm)) => {
                let chain = self.chains.begin(algorithm, &self.tools)?;
                (Sums::new(None, chunks)?, Some(chain))
            }
            (Hashing::Chain | Hashing::Worker, _) => (Sums::default(), None),
        };
        self.current = Some(OpenBlob {
            encoding: begin.encoding,
            table: begin.has_table.then(SeekTable::default),
            lengths: begin.has_lengths.then(Vec::new),
            sums,
            chain,
        });
        Ok(())
    }

    pub(super) fn write_raw(&mut self, bytes: &[u8]) -> Result<()> {
        let open = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        if open.sums.is_none() {
            return Ok(self.container.write(bytes)?);
        }
        for piece in bytes.chunks(PIECE) {
            open.sums.update(piece);
            self.container.write(piece)?;
        }
        Ok(())
    }

    pub(super) fn write_stored(&mut self, stored: Stored<'_>) -> Result<()> {
        let open = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        open.encoding = stored.encoding;
        if let Some(table) = &mut open.table {
            table.push(stored.bytes.len(), stored.content_len)?;
        }
        if let Some(lengths) = &mut open.lengths {
            // At most a byte more than the symbols of a chunk.
            let len = u32::try_from(stored.bytes.len()).map_err(|_| Error::out_of_order())?;
            lengths.extend(len.to_le_bytes());
        }
        match stored.sums {
            Some(sums) => open.sums = sums,
            None => open.sums.update(&stored.bytes),
        }
        self.container.write(&stored.bytes)?;
        self.release(stored.bytes);
        Ok(())
    }

    /// Passes on written memory, to be hashed or to be used again.
    pub(super) fn release(&mut self, written: Cow<'_, [u8]>) {
        let Cow::Owned(bytes) = written else {
            return;
        };
        match self.current.as_ref().and_then(|open| open.chain.as_ref()) {
            Some(chain) => self.chains.push(chain, &self.workers, bytes),
            None => self.tools.give_back(bytes),
        }
    }

    /// Ends the blob. Its digest and its chunk digests may come later.
    pub(super) fn end(&mut self, decoded_len: Option<u64>) -> Result<EndedBlob> {
        let open = self.current.as_mut().ok_or_else(Error::out_of_order)?;
        if let Some(table) = open.table.take() {
            let table = table.to_frame();
            self.write_raw(&table)?;
            self.release(table.into());
        }
        let open = self.current.take().ok_or_else(Error::out_of_order)?;
        let (span, _) = self.container.end_blob()?;
        let (digest, table) = open.sums.finish(span.byte_len());
        self.lengths = open.lengths.unwrap_or_default();
        let blob = Blob {
            span,
            encoding: open.encoding,
            decoded_len: Some(decoded_len.unwrap_or(span.byte_len())),
            digest,
            chunks: None,
        };
        let chain = open.chain;
        Ok(EndedBlob { blob, chain, table })
    }
}
