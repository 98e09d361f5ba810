//! Lengths and addresses: checked sums and products of numbers that a file has.

use crate::bytes::fault::Hdf5Fault;

/// Bytes of addresses and of lengths in the whole file: 2, 4 or 8. Spec: II.A, "Size of Offsets".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Sizes {
    /// Bytes of a structure of so many addresses, lengths and other bytes.
    #[expect(clippy::arithmetic_side_effects, reason = "the products of bytes by 8 at most")]
    pub(crate) fn bytes(self, addresses: u8, lengths: u8, other: u8) -> u64 {
        self.offset * u64::from(addresses) + self.length * u64::from(lengths) + u64::from(other)
    }
}

pub(crate) fn sum<const N: usize>(parts: [u64; N]) -> Result<u64, Hdf5Fault> {
    let mut parts = parts.into_iter();
    let sum = parts.try_fold(0u64, u64::checked_add);
    sum.ok_or(Hdf5Fault::TooFar)
}

pub(crate) fn product<const N: usize>(factors: [u64; N]) -> Result<u64, Hdf5Fault> {
    let mut factors = factors.into_iter();
    let product = factors.try_fold(1u64, u64::checked_mul);
    product.ok_or(Hdf5Fault::TooFar)
}

/// A number of bytes in memory. The machine may have fewer bits.
pub(crate) fn in_memory(number: u64) -> Result<usize, Hdf5Fault> {
    usize::try_from(number).map_err(|_| Hdf5Fault::TooFar)
}

/// The bytes of a number up to `limit`: `H5VM_limit_enc_size`.
pub(crate) fn encoded_len(limit: u64) -> u64 {
    let highest = limit.checked_ilog2().map_or(0, u64::from);
    (highest / 8).wrapping_add(1)
}
