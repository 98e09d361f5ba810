//! Us, the peers and the limits of the machine, each doing the same work on the same tensors.
//!
//! Every module has the operations that its library has, under the same names. None of them makes
//! its file durable: a disk would be measured, and not those who write to it.

pub mod limits;
pub mod ours;
pub mod peer_safetensors;
pub mod peer_ztensor1;
pub mod peer_ztensor2;

use std::path::Path;

use crate::contest::expect;
use crate::workload::Sparse;
use crate::{Result, Tensor};

/// How components are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// As they are.
    Raw,
    /// zstd of that level, with its ordinary search for matches.
    Zstd(i32),
}

/// What is recorded of the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Nothing.
    None,
    /// CRC-32C.
    Crc32c,
    /// SHA-256.
    Sha256,
}

/// Sees that the file at `path`, of any kind that `zt` opens, has exactly `tensors`.
///
/// # Errors
///
/// The first tensor that is missing or has other bytes.
pub fn expect_file(path: &Path, tensors: &[Tensor]) -> Result<()> {
    let file = zt_convert::open(path)?;
    expect(file.len() == tensors.len(), || {
        format!("{} objects, expected {}", file.len(), tensors.len())
    })?;
    for tensor in tensors {
        let found = file.tensor(&tensor.name)?.to_dense()?;
        expect_bytes(tensor, &found.elements().bytes)?;
    }
    Ok(())
}

/// Sees that the file at `path` has exactly the matrix, under the name that all give it.
///
/// # Errors
///
/// Where it has not.
pub fn expect_sparse(path: &Path, matrix: &Sparse) -> Result<()> {
    let file = zt_convert::open(path)?;
    let found = file.tensor("matrix")?.view::<zt::Csr<'_>>()?;
    let values = found.values().clone().into_typed::<f32>()?;
    let is_so = found.shape() == matrix.shape
        && *values == *matrix.values
        && *found.indices() == *matrix.indices
        && *found.indptr() == *matrix.indptr;
    expect(is_so, || "another matrix".into())
}

/// Sees that what was read is what the tensors hold, in their order.
///
/// # Errors
///
/// The first tensor that has other bytes.
pub fn expect_all<B: AsRef<[u8]>>(tensors: &[Tensor], found: &[B]) -> Result<()> {
    expect(found.len() == tensors.len(), || {
        format!("{} tensors, expected {}", found.len(), tensors.len())
    })?;
    tensors.iter().zip(found).try_for_each(|(tensor, found)| expect_bytes(tensor, found.as_ref()))
}

/// Sees that `found` is what the tensor holds.
///
/// # Errors
///
/// Its name, where it is not.
pub fn expect_bytes(tensor: &Tensor, found: &[u8]) -> Result<()> {
    expect(*tensor.bytes == *found, || format!("{}: other bytes than were written", tensor.name))
}

/// The sum of all bytes: what reading from a map costs, because nothing is read before it is
/// touched. Wide lanes, so that memory is the limit and not the additions.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<64>();
    let mut lanes = [0u64; 8];
    for word in words {
        let (eights, _) = word.as_chunks::<8>();
        for (lane, eight) in lanes.iter_mut().zip(eights) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*eight));
        }
    }
    let sum = lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(*lane));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}
