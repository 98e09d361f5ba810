//! Checksums that `.zt` files do not have.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::digest::Digest;

/// A checksum of at most 64 bits: a name, and the functions that compute it. The reader of another kind of
/// file defines the checksum that its files record, and components are verified with it. Two checksums of
/// the same name are equal.
///
/// ```
/// use zt_container::{Checksum, Digest, DigestAlgorithm};
///
/// #[derive(Default)]
/// struct Sum(u64);
///
/// impl std::hash::Hasher for Sum {
///     fn write(&mut self, bytes: &[u8]) {
///         self.0 = bytes.iter().fold(self.0, |sum, byte| sum.wrapping_add((*byte).into()));
///     }
///     fn finish(&self) -> u64 {
///         self.0
///     }
/// }
///
/// static SUM: Checksum = Checksum {
///     name: "sum",
///     hasher: || Box::new(Sum::default()),
///     combine: Some(|first, next, _| first.wrapping_add(next)),
///     spell: |sum| sum.to_string(),
/// };
///
/// let digest = DigestAlgorithm::Other(&SUM).digest(&[40, 2])?;
/// assert_eq!(digest, SUM.of(42));
/// assert_eq!(digest.to_string(), "sum:42");
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Checksum {
    /// The text before the colon of a digest.
    pub name: &'static str,
    /// A hasher that has seen no bytes.
    pub hasher: fn() -> Box<dyn Hasher + Send + Sync>,
    /// Combines the checksums of two adjacent ranges; the third argument is the length of the second one.
    /// With it, several cores hash one blob; without it, one core takes the bytes in order.
    pub combine: Option<fn(u64, u64, u64) -> u64>,
    /// The text behind the colon of a digest.
    pub spell: fn(u64) -> String,
}

impl Checksum {
    /// The digest of this value.
    pub const fn of(&'static self, value: u64) -> Digest {
        Digest::Other { algorithm: self, value }
    }
}

impl PartialEq for Checksum {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Checksum {}

impl Hash for Checksum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
