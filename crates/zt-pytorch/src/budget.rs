//! The memory that the values of pickles may take.

use std::sync::Arc;

use zt::container::memory::zeroed;
use zt::{Limits, Source};

use crate::fault::TorchFault;

/// The limit of memory for leaves, names, attributes and objects, for each byte of the file. Tensors
/// have more bytes than they take memory; a list of one-byte values has 100 times less, and a graph
/// of shared parts can have any number of leaves.
const PER_BYTE: u64 = 16;

/// The limit for small files: about 20,000 tensors, or half a million values in lists.
const AT_LEAST: u64 = 64 << 20;

/// The memory that the values of a file's pickles may still take.
pub(super) struct Budget {
    left: u64,
    limit: u64,
    file: Arc<dyn Source>,
}

impl Budget {
    pub(super) fn new(file: Arc<dyn Source>, limits: &Limits) -> Self {
        let budget = file.byte_len().saturating_mul(PER_BYTE).max(AT_LEAST);
        let limit = budget.min(limits.manifest_len);
        Budget { left: limit, limit, file }
    }

    /// The bytes of a value that stayed in the file.
    pub(super) fn read(&mut self, offset: u64, byte_len: u64) -> Result<Vec<u8>, TorchFault> {
        let limit = self.limit;
        let len = usize::try_from(byte_len).map_err(|_| TorchFault::Expanding { limit })?;
        self.spend(len)?;
        let bytes = zeroed(byte_len).map_err(|error| TorchFault::Read(error.into()));
        let mut bytes: Vec<u8> = bytes?;
        let read = self.file.read_at(offset, &mut bytes);
        read.map_err(|error| TorchFault::Read(error.into()))?;
        Ok(bytes)
    }

    pub(super) fn spend(&mut self, cost: usize) -> Result<(), TorchFault> {
        let left = self.left.checked_sub(cost as u64);
        let limit = self.limit;
        self.left = left.ok_or(TorchFault::Expanding { limit })?;
        Ok(())
    }
}
