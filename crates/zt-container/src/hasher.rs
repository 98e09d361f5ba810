//! Checksums as they are computed.

use crate::error::{Error, Result, Unsupported};
use crate::{Digest, DigestAlgorithm};

/// Computes a digest over bytes that come in pieces.
#[derive(Debug, Clone)]
pub struct Hasher(State);

/// Has no values where no feature is on.
#[derive(Debug, Clone)]
enum State {
    #[cfg(feature = "crc32c")]
    Crc32c(u32),
    #[cfg(feature = "sha2")]
    Sha256(Box<sha2::Sha256>),
    #[cfg(feature = "crc32")]
    Crc32(crc32fast::Hasher),
    #[cfg(feature = "xxh3")]
    Xxh3(Xxh3),
}

/// The state of XXH3, which has no `Debug` of its own.
#[cfg(feature = "xxh3")]
#[derive(Clone)]
struct Xxh3(Box<twox_hash::XxHash3_64>);

#[cfg(feature = "xxh3")]
impl std::fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Xxh3")
    }
}

impl Hasher {
    /// A hasher that has seen no bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where this crate was built without the algorithm's feature.
    pub fn new(algorithm: DigestAlgorithm) -> Result<Self> {
        match algorithm {
            #[cfg(feature = "crc32c")]
            DigestAlgorithm::Crc32c => Ok(Hasher(State::Crc32c(0))),
            #[cfg(feature = "sha2")]
            DigestAlgorithm::Sha256 => Ok(Hasher(State::Sha256(Box::default()))),
            #[cfg(feature = "crc32")]
            DigestAlgorithm::Crc32 => Ok(Hasher(State::Crc32(crc32fast::Hasher::new()))),
            #[cfg(feature = "xxh3")]
            DigestAlgorithm::Xxh3 => Ok(Hasher(State::Xxh3(Xxh3(Box::default())))),
            #[allow(unreachable_patterns, reason = "reached where a feature is off")]
            missing => Err(Error::Unsupported(Unsupported::Digest(missing))),
        }
    }

    /// What it computes.
    #[must_use]
    pub const fn algorithm(&self) -> DigestAlgorithm {
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(_) => DigestAlgorithm::Crc32c,
            #[cfg(feature = "sha2")]
            State::Sha256(_) => DigestAlgorithm::Sha256,
            #[cfg(feature = "crc32")]
            State::Crc32(_) => DigestAlgorithm::Crc32,
            #[cfg(feature = "xxh3")]
            State::Xxh3(_) => DigestAlgorithm::Xxh3,
        }
    }

    /// Takes in the next bytes.
    #[cfg_attr(
        not(any(
            feature = "crc32c",
            feature = "sha2",
            feature = "crc32",
            feature = "xxh3"
        )),
        expect(unused_variables)
    )]
    pub fn update(&mut self, bytes: &[u8]) {
        #[allow(
            unreachable_patterns,
            unused_variables,
            reason = "no variant without features"
        )]
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(ref mut sum) => *sum = crc32c::crc32c_append(*sum, bytes),
            #[cfg(feature = "sha2")]
            State::Sha256(ref mut state) => sha2::Digest::update(state.as_mut(), bytes),
            #[cfg(feature = "crc32")]
            State::Crc32(ref mut state) => state.update(bytes),
            #[cfg(feature = "xxh3")]
            State::Xxh3(ref mut state) => std::hash::Hasher::write(state.0.as_mut(), bytes),
        }
    }

    /// Takes in the next `byte_len` bytes by their digest, computed elsewhere. `false`, and nothing
    /// done, where that cannot be: only checksums of one kind combine.
    ///
    /// ```
    /// use zt_container::{DigestAlgorithm::Crc32c, Hasher};
    /// let mut hasher = Hasher::new(Crc32c)?;
    /// hasher.update(b"1234");
    /// assert!(hasher.append(&Crc32c.digest(b"56789")?, 5));
    /// assert_eq!(hasher.finish(), Crc32c.digest(b"123456789")?);
    /// # Ok::<(), zt_container::Error>(())
    /// ```
    #[cfg(feature = "crc32c")]
    #[must_use]
    pub fn append(&mut self, next: &Digest, byte_len: u64) -> bool {
        #[allow(irrefutable_let_patterns, reason = "the only variant without `sha2`")]
        let State::Crc32c(sum) = &mut self.0 else {
            return false;
        };
        match Digest::Crc32c(*sum).followed_by(next, byte_len) {
            Some(Digest::Crc32c(combined)) => *sum = combined,
            _ => return false,
        }
        true
    }

    /// The digest of all bytes taken in.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self.0 {
            #[cfg(feature = "crc32c")]
            State::Crc32c(sum) => Digest::Crc32c(sum),
            #[cfg(feature = "sha2")]
            State::Sha256(state) => Digest::Sha256(sha2::Digest::finalize(*state).into()),
            #[cfg(feature = "crc32")]
            State::Crc32(state) => Digest::Crc32(state.finalize()),
            #[cfg(feature = "xxh3")]
            State::Xxh3(state) => Digest::Xxh3(std::hash::Hasher::finish(state.0.as_ref())),
        }
    }
}
