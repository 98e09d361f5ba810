//! Bytes that a file may cause to be read, kept in memory or made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bytes::fault::Hdf5Fault;

/// A limit and the bytes that are spent. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    spent: Arc<AtomicU64>,
    pub(crate) limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Budget { spent: Arc::default(), limit }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Spends bytes that are made to read values.
    pub(crate) fn decode(&self, byte_len: u64) -> Result<(), Hdf5Fault> {
        let limit = self.limit;
        self.spend(byte_len).map_err(|left| Hdf5Fault::Sparse { byte_len, left, limit })
    }

    /// Spends bytes. Refused bytes do not count. The error has the bytes that are left.
    pub(crate) fn spend(&self, byte_len: u64) -> Result<(), u64> {
        let limit = self.limit;
        let spend = |spent: u64| {
            let spent = spent.checked_add(byte_len);
            spent.filter(|spent| *spent <= limit)
        };
        let order = Ordering::Relaxed;
        let spent = self.spent.fetch_update(order, order, spend);
        spent.map(|_| ()).map_err(|spent| limit.strict_sub(spent))
    }
}
