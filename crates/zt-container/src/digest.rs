//! Digests of stored bytes: spelling them, and combining the digests of two adjacent ranges.

use std::fmt;
use std::str::FromStr;

use crate::checksum::Checksum;
use crate::error::{Error, FramingViolation, Result};
use crate::hasher::Hasher;

/// A checksum as a manifest records it, over the stored (possibly compressed) bytes of one blob.
///
/// Spec: §6. Parsing accepts every spelling of real writers: either case, with or without `0x`.
/// [`fmt::Display`] gives the spelling that we write, which every reader accepts.
///
/// ```
/// use zt_container::Digest;
/// let digest: Digest = "crc32c:0x087C23AF".parse()?;
/// assert_eq!(digest, Digest::Crc32c(0x087C_23AF));
/// assert_eq!(digest.to_string(), "crc32c:0x087C23AF");
/// # Ok::<(), zt_container::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Digest {
    /// CRC-32C (Castagnoli), the default.
    Crc32c(u32),
    /// SHA-256.
    Sha256([u8; 32]),
    /// A checksum that the reader of another kind of file defines. Parsing never returns it.
    Other {
        /// The algorithm.
        algorithm: &'static Checksum,
        /// Its value.
        value: u64,
    },
    /// A digest of an unknown algorithm. It cannot be checked. It is not an error, because the
    /// specification allows other algorithms.
    Unknown {
        /// The text before the colon.
        algorithm: String,
        /// The text after it.
        value: String,
    },
}

impl Digest {
    /// The algorithm of this digest; `None` for an unknown one.
    pub const fn algorithm(&self) -> Option<DigestAlgorithm> {
        match self {
            Digest::Crc32c(_) => Some(DigestAlgorithm::Crc32c),
            Digest::Sha256(_) => Some(DigestAlgorithm::Sha256),
            Digest::Other { algorithm, .. } => Some(DigestAlgorithm::Other(algorithm)),
            Digest::Unknown { .. } => None,
        }
    }

    /// Refuses bytes whose digest, `found`, is another one.
    pub(crate) fn expect(&self, found: Digest) -> Result<()> {
        if *self == found {
            return Ok(());
        }
        let expected = self.clone();
        Err(Error::DigestMismatch { expected, found })
    }

    /// The digest of two adjacent ranges: `self` of the first, `next` of the second, which has `next_len`
    /// bytes. With it, several cores can hash one blob. `None` if the algorithm does not combine.
    ///
    #[cfg_attr(feature = "crc32c", doc = "```")]
    #[cfg_attr(not(feature = "crc32c"), doc = "```ignore")]
    /// use zt_container::DigestAlgorithm::Crc32c;
    /// let whole = Crc32c.digest(b"123456789")?;
    /// let (front, back) = (Crc32c.digest(b"1234")?, Crc32c.digest(b"56789")?);
    /// assert_eq!(front.followed_by(&back, 5), Some(whole));
    /// # Ok::<(), zt_container::Error>(())
    /// ```
    pub fn followed_by(&self, next: &Digest, next_len: u64) -> Option<Digest> {
        match (self, next, next_len) {
            #[cfg(feature = "crc32c")]
            (Digest::Crc32c(sum), Digest::Crc32c(next), next_len) => {
                let sum = crate::crc::followed_by(*sum, *next, next_len);
                Some(Digest::Crc32c(sum))
            }
            (
                Digest::Other { algorithm, value },
                Digest::Other { algorithm: other, value: next },
                next_len,
            ) if algorithm == other => {
                let combine = algorithm.combine?;
                Some(algorithm.of(combine(*value, *next, next_len)))
            }
            _ => None,
        }
    }
}

impl FromStr for Digest {
    type Err = Error;

    /// # Errors
    ///
    /// [`FramingViolation::DigestFormat`] if the colon or the algorithm is missing, or if a known algorithm has
    /// the wrong number of digits, or digits that are not hexadecimal.
    fn from_str(text: &str) -> Result<Self> {
        let malformed =
            || Error::Malformed(FramingViolation::DigestFormat { text: abridged(text) });
        // As our writer spells it.
        if let Some(digits) = text.strip_prefix("crc32c:0x")
            && let Some(sum) = parse_crc32c(digits)
        {
            return Ok(Digest::Crc32c(sum));
        }
        let (algorithm, value) = text.split_once(':').ok_or_else(malformed)?;
        let digits = value.strip_prefix("0x").or(value.strip_prefix("0X"));
        let digits = digits.unwrap_or(value);
        if algorithm.is_empty() {
            Err(malformed())
        } else if algorithm.eq_ignore_ascii_case("crc32c") {
            parse_crc32c(digits).map(Digest::Crc32c).ok_or_else(malformed)
        } else if algorithm.eq_ignore_ascii_case("sha256") {
            parse_sha256(digits).map(Digest::Sha256).ok_or_else(malformed)
        } else {
            Ok(Digest::Unknown { algorithm: algorithm.to_owned(), value: value.to_owned() })
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Other readers before 1.2.3 compare this text, so prefix, case and padding matter.
            Digest::Crc32c(sum) => write!(f, "crc32c:0x{sum:08X}"),
            Digest::Sha256(bytes) => {
                f.write_str("sha256:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Digest::Other { algorithm, value } => {
                write!(f, "{}:{}", algorithm.name, (algorithm.spell)(*value))
            }
            Digest::Unknown { algorithm, value } => write!(f, "{algorithm}:{value}"),
        }
    }
}

/// The algorithms that can be computed: the two of `.zt` files, and any [`Checksum`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DigestAlgorithm {
    /// CRC-32C: finds damage, at the speed of memory.
    Crc32c,
    /// SHA-256: finds manipulation too.
    Sha256,
    /// An algorithm that the reader of another kind of file defines. Readers of `.zt` do not know it.
    Other(&'static Checksum),
}

impl DigestAlgorithm {
    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            DigestAlgorithm::Crc32c => "crc32c",
            DigestAlgorithm::Sha256 => "sha256",
            DigestAlgorithm::Other(checksum) => checksum.name,
        }
    }

    /// The digest of `bytes`.
    ///
    /// # Errors
    ///
    /// As [`Hasher::new`].
    pub fn digest(self, bytes: &[u8]) -> Result<Digest> {
        let mut hasher = Hasher::new(self)?;
        hasher.update(bytes);
        Ok(hasher.finish())
    }

    /// The feature of this crate that computes it.
    pub(crate) const fn feature(self) -> &'static str {
        match self {
            DigestAlgorithm::Sha256 => "sha2",
            DigestAlgorithm::Crc32c | DigestAlgorithm::Other(_) => self.as_str(),
        }
    }

    /// Whether the digests of adjacent ranges can be combined: see [`Digest::followed_by`]. If not, the bytes
    /// must be hashed in order.
    pub const fn combines(self) -> bool {
        match self {
            DigestAlgorithm::Crc32c => true,
            DigestAlgorithm::Sha256 => false,
            DigestAlgorithm::Other(checksum) => checksum.combine.is_some(),
        }
    }
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Leading zeros may be missing.
fn parse_crc32c(digits: &str) -> Option<u32> {
    let mut digits = digits.chars().map(|digit| digit.to_digit(16));
    let mut sum = digits.next()??;
    for (at, digit) in digits.enumerate() {
        sum = (sum << 4) | digit.filter(|_| at < 7)?;
    }
    Some(sum)
}

fn parse_sha256(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !is_hex(digits) {
        return None;
    }
    let mut sum = [0; 32];
    for (byte, pair) in sum.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(sum)
}

/// The first 80 characters: a malformed digest may be as long as the manifest, an error message may not.
fn abridged(text: &str) -> String {
    text.chars().take(80).collect()
}
