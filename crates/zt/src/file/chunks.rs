//! The chunks of raw blobs whose digests were checked. Spec: §6.1.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use zt_container::memory::in_memory;
use zt_container::{Blob, CHUNK, ChunkTable, Chunks, Right, Source, Span, Stretches, bytes_of};

use crate::cores::parallel;
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;

/// The table of a blob, and the chunks that were found right. Components that share a blob and a table
/// share the result.
pub(crate) struct Checked {
    table: ChunkTable,
    pub(crate) chunks: Stretches,
    right: Right,
    /// Whether a chunk is checked each time that it is read.
    always: bool,
}

impl Checked {
    /// Reads the table of `blob`, if it has one, and compares its digest.
    /// A wrong digest has the place of the table.
    pub(crate) fn read(source: &dyn Source, blob: &Blob, always: bool) -> Result<Option<Self>> {
        let Some(chunks) = &blob.chunks else {
            return Ok(None);
        };
        let table = ChunkTable::read(source, blob);
        let table = table.map_err(|error| Error::from(error).with_span(chunks.span))?;
        let chunks = Stretches::new(blob.span, CHUNK);
        let right = || Right::none_of(chunks.count());
        Ok(table.map(|table| Checked { table, chunks, right: right(), always }))
    }

    /// Compares every entry with its chunk. If the entries combine to the blob's digest, which the caller
    /// has compared with all bytes, none is read again.
    /// Fails with code `overlap` before anything is read that `allowance` does not cover.
    pub(crate) fn check_all(
        &self,
        source: &dyn Source,
        blob: &Blob,
        allowance: &mut Allowance,
    ) -> Result<()> {
        let whole = self.table.whole(blob.span.byte_len());
        if whole.is_some() && whole == blob.digest {
            return Ok(());
        }
        allowance.spend(blob.span.byte_len())?;
        let chunks: Vec<u64> = (0..self.chunks.count()).collect();
        let check = |at: &u64| {
            let bytes = bytes_of(source, self.span(*at));
            self.check(*at, &bytes?)
        };
        parallel::map(&chunks, check).map(drop)
    }

    /// Whether the digest of a chunk was already right.
    pub(crate) fn is_right(&self, at: u64) -> bool {
        !self.always && self.right.has(at)
    }

    /// Compares the digest of a chunk with its bytes.
    /// A wrong digest has the place of the chunk.
    pub(crate) fn check(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let checked = self.table.check(in_memory(at), bytes);
        checked.map_err(|error| Error::from(error).with_span(self.span(at)))?;
        self.right.add(at);
        Ok(())
    }

    /// The place of a chunk in the file.
    fn span(&self, at: u64) -> Span {
        self.chunks.get(at).unwrap_or_default()
    }
}

/// The tables that were read of one file.
#[derive(Default)]
pub(crate) struct Tables(RwLock<Known>);

#[derive(Default)]
struct Known {
    tables: HashMap<(usize, Span, Chunks), Arc<Checked>>,
    byte_len: usize,
}

/// Bytes of tables that are kept: enough for 16 TiB of components. A manifest can name a table for each
/// of many overlapping ranges, so that the memory for tables needs a limit.
const MOST: usize = 64 << 20;

impl Tables {
    /// The table of a blob of this source, if it was read before.
    pub(crate) fn known(&self, at: usize, blob: &Blob) -> Option<Arc<Checked>> {
        let key = (at, blob.span, blob.chunks.as_deref()?.clone());
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.tables.get(&key).map(Arc::clone)
    }

    /// The table of a blob of this source, read at most once.
    pub(crate) fn of(
        &self,
        at: usize,
        source: &dyn Source,
        blob: &Blob,
    ) -> Result<Option<Arc<Checked>>> {
        if let Some(known) = self.known(at, blob) {
            return Ok(Some(known));
        }
        let Some(chunks) = blob.chunks.as_deref() else {
            return Ok(None);
        };
        let key = (at, blob.span, chunks.clone());
        let Some(read) = Checked::read(source, blob, false)?.map(Arc::new) else {
            return Ok(None);
        };
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let byte_len = read.table.as_bytes().len();
        if known.byte_len.saturating_add(byte_len) > MOST {
            *known = Known::default();
        }
        // Another thread may have been first: its flags count.
        if let Some(first) = known.tables.get(&key) {
            return Ok(Some(Arc::clone(first)));
        }
        known.byte_len = known.byte_len.saturating_add(byte_len);
        known.tables.insert(key, Arc::clone(&read));
        Ok(Some(read))
    }
}
