//! Computing the digest of bytes that come in pieces.

use std::fmt;

use crate::checksum::Checksum;
use crate::digest::{Digest, DigestAlgorithm};
use crate::error::Result;
#[cfg(not(all(feature = "crc32c", feature = "sha2")))]
use crate::error::{Error, Unsupported};
use crate::memory::in_memory;

/// Computes a digest over bytes that come in pieces.
pub struct Hasher(State);

enum State {
    #[cfg(feature = "crc32c")]
    Crc32c(u32),
    #[cfg(feature = "sha2")]
    Sha256(Box<sha2::Sha256>),
    Other(Box<Other>),
}

struct Other {
    checksum: &'static Checksum,
    state: Box<dyn std::hash::Hasher + Send + Sync>,
}

impl Hasher {
    /// A hasher that has seen no bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) if this crate was built without the algorithm's
    /// feature.
    pub fn new(algorithm: DigestAlgorithm) -> Result<Self> {
        match algorithm {
            #[cfg(feature = "crc32c")]
            DigestAlgorithm::Crc32c => Ok(Hasher(State::Crc32c(0))),
            #[cfg(feature = "sha2")]
            DigestAlgorithm::Sha256 => Ok(Hasher(State::Sha256(Box::default()))),
            DigestAlgorithm::Other(checksum) => {
                let state = (checksum.hasher)();
                Ok(Hasher(State::Other(Box::new(Other { checksum, state }))))
            }
            #[cfg(not(all(feature = "crc32c", feature = "sha2")))]
            missing => Err(Error::Unsupported(Unsupported::Digest(missing))),
        }
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> DigestAlgorithm {
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(_) => DigestAlgorithm::Crc32c,
            #[cfg(feature = "sha2")]
            State::Sha256(_) => DigestAlgorithm::Sha256,
            State::Other(ref other) => DigestAlgorithm::Other(other.checksum),
        }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(ref mut sum) => *sum = crate::crc::append(*sum, bytes),
            #[cfg(feature = "sha2")]
            State::Sha256(ref mut state) => sha2::Digest::update(state.as_mut(), bytes),
            State::Other(ref mut other) => other.state.write(bytes),
        }
    }

    /// Adds zeros. With CRC-32C this takes as long as a few kilobytes do, for any number of zeros.
    ///
    /// ```
    /// # #[cfg(feature = "crc32c")] {
    /// use zt_container::{DigestAlgorithm::Crc32c, Hasher};
    /// let mut hasher = Hasher::new(Crc32c)?;
    /// hasher.update(b"1234");
    /// hasher.update_zeros(3);
    /// assert_eq!(hasher.finish(), Crc32c.digest(b"1234\0\0\0")?);
    /// # }
    /// # Ok::<(), zt_container::Error>(())
    /// ```
    pub fn update_zeros(&mut self, mut byte_len: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        #[cfg(feature = "crc32c")]
        if let State::Crc32c(sum) = &mut self.0 {
            // Combines the sums of 1, 2, 4, ... zeros: one for each bit of the length.
            let (mut zeros, mut len) = (crate::crc::append(0, &[0]), 1_u64);
            while byte_len > 0 {
                if byte_len & len != 0 {
                    *sum = crate::crc::followed_by(*sum, zeros, len);
                    byte_len ^= len;
                }
                zeros = crate::crc::followed_by(zeros, zeros, len);
                len = len.wrapping_mul(2);
            }
            return;
        }
        while byte_len > 0 {
            let piece = byte_len.min(ZEROS.len() as u64);
            self.update(ZEROS.get(..in_memory(piece)).unwrap_or_default());
            byte_len = byte_len.strict_sub(piece);
        }
    }

    /// The digest of all bytes that were added.
    pub fn finish(self) -> Digest {
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(sum) => Digest::Crc32c(sum),
            #[cfg(feature = "sha2")]
            State::Sha256(state) => Digest::Sha256(sha2::Digest::finalize(*state).into()),
            State::Other(other) => other.checksum.of(other.state.finish()),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hasher").field(&self.algorithm()).finish()
    }
}
