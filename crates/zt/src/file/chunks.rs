//! The chunks of raw blobs whose digests were checked. Spec: §6.1.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use zt_container::{Blob, CHUNK, ChunkTable, Chunks, Source, Span, bytes_of, memory::in_memory};

use crate::cores::parallel;
use crate::error::{Error, Result};
use crate::file::overlap::Allowance;

/// The table of a blob, and the chunks that were found right. Components that share a blob and a table
/// share the result.
pub(crate) struct Checked {
    table: ChunkTable,
    blob: Span,
    right: Box<[AtomicBool]>,
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
        let count = in_memory(blob.span.byte_len().div_ceil(CHUNK));
        Ok(table.map(|table| Checked {
            table,
            blob: blob.span,
            right: (0..count).map(|_| AtomicBool::new(false)).collect(),
            always,
        }))
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
        let chunks: Vec<usize> = (0..self.right.len()).collect();
        let check = |at: &usize| {
            let bytes = bytes_of(source, self.span(*at));
            self.check(*at, &bytes?)
        };
        parallel::map(&chunks, check).map(drop)
    }

    /// The chunks that these bytes of the blob are in.
    pub(crate) fn of(range: Range<u64>) -> Range<usize> {
        in_memory(range.start / CHUNK)..in_memory(range.end.div_ceil(CHUNK))
    }

    /// The place in the file of the chunks that these bytes of a blob are in.
    pub(crate) fn around(blob: Span, range: &Range<u64>) -> Span {
        let start = range.start.strict_sub(range.start % CHUNK);
        let end = range.end.checked_next_multiple_of(CHUNK);
        let end = end.unwrap_or(u64::MAX).min(blob.byte_len());
        let at = |within: u64| blob.offset().strict_add(within);
        Span::exact_between(at(start), at(end))
    }

    /// The bytes of the blob that are this chunk.
    pub(crate) fn range(&self, at: usize) -> Range<u64> {
        let start = (at as u64).strict_mul(CHUNK);
        start..start.strict_add(CHUNK).min(self.blob.byte_len())
    }

    /// Whether the digest of a chunk was already right.
    pub(crate) fn is_right(&self, at: usize) -> bool {
        let is_right = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        !self.always && self.right.get(at).is_some_and(is_right)
    }

    /// Compares the digest of a chunk with its bytes.
    /// A wrong digest has the place of the chunk.
    pub(crate) fn check(&self, at: usize, bytes: &[u8]) -> Result<()> {
        let checked = self.table.check(at, bytes);
        checked.map_err(|error| Error::from(error).with_span(self.span(at)))?;
        if let Some(flag) = self.right.get(at) {
            flag.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The place of a chunk in the file.
    pub(crate) fn span(&self, at: usize) -> Span {
        let range = self.range(at);
        let start = self.blob.offset().strict_add(range.start);
        Span::exact(start, range.end.strict_sub(range.start))
    }

    /// Bytes of memory.
    fn byte_len(&self) -> usize {
        self.table.byte_len().strict_add(self.right.len())
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
        if known.byte_len.saturating_add(read.byte_len()) > MOST {
            *known = Known::default();
        }
        // Another thread may have been first: its flags count.
        if let Some(first) = known.tables.get(&key) {
            return Ok(Some(Arc::clone(first)));
        }
        known.byte_len = known.byte_len.saturating_add(read.byte_len());
        known.tables.insert(key, Arc::clone(&read));
        Ok(Some(read))
    }
}
