//! The digest that a manifest carries of itself. Spec: §3.6.

use zt_container::{Digest, DigestAlgorithm, Hasher};

use crate::manifest_encoder::EncodedManifest;

/// The last entry of the root: its key and the beginning of its value, as they are encoded. Eight
/// hexadecimal digits follow and end the manifest.
const ENTRY: &[u8; 29] = b"\x72zt.manifest_digest\x71crc32c:0x";

/// The key.
pub(crate) const KEY: &str = "zt.manifest_digest";

/// The number of hexadecimal digits.
const DIGITS: usize = 8;

/// With at most so many wrong bytes among the fixed ones, the entry is damaged. With more, it is another field.
const MOST_WRONG: usize = 8;

/// The size of the manifest and the magic, which end a file.
const FOOTER_LEN: usize = 16;

/// What a manifest says about its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestDigest {
    /// It has no digest, or this build has no CRC-32C (`zt-container`'s feature `crc32c`).
    Absent,
    /// Its bytes have the digest that it records.
    Right,
    /// Its bytes were changed, or the digest was.
    Wrong {
        /// What it records, as text.
        expected: String,
        /// The digest of its bytes.
        found: Digest,
    },
}

impl ManifestDigest {
    /// Compares the bytes of a whole manifest with the digest at their end.
    pub(crate) fn of(manifest: &[u8]) -> Self {
        let Some((covered, digits)) = manifest.split_last_chunk::<DIGITS>() else {
            return ManifestDigest::Absent;
        };
        let Some((_, entry)) = covered.split_last_chunk::<{ ENTRY.len() }>() else {
            return ManifestDigest::Absent;
        };
        let wrong = entry.iter().zip(ENTRY).filter(|(found, right)| found != right).count();
        let Some(mut hasher) = hasher().filter(|_| wrong <= MOST_WRONG) else {
            return ManifestDigest::Absent;
        };
        hasher.update(covered);
        let found = hasher.finish();
        let (_, text) = entry.split_at(KEY.len().strict_add(2));
        let expected = [text, digits].concat().escape_ascii().to_string();
        if wrong == 0 && expected == found.to_string() {
            ManifestDigest::Right
        } else {
            ManifestDigest::Wrong { expected, found }
        }
    }

    /// Writes the digest of the manifest of a whole `.zt` file, if it has one. For fuzzers and tests, which
    /// change single bytes of a manifest.
    pub fn renew(file: &mut [u8]) {
        if let Some((rest, trailer)) = file.split_last_chunk_mut::<{ FOOTER_LEN }>()
            && let Some(size) = trailer.first_chunk()
            && let Ok(size) = usize::try_from(u64::from_le_bytes(*size))
            && let Some(start) = rest.len().checked_sub(size)
            && let (_, manifest) = rest.split_at_mut(start)
            && let ManifestDigest::Wrong { found, .. } = ManifestDigest::of(manifest)
            && let Some(end) = manifest.last_chunk_mut()
        {
            *end = digits(&found);
        }
    }
}

/// Ends a manifest with its digest. The head of the root counts the entry, and `hasher` is new.
pub(crate) fn append(mut hasher: Hasher, manifest: &mut EncodedManifest<'_>) {
    manifest.tail.extend_from_slice(ENTRY);
    manifest.pieces().for_each(|piece| hasher.update(piece));
    manifest.tail.extend(digits(&hasher.finish()));
}

/// The last characters of the digest's text.
fn digits(digest: &Digest) -> [u8; DIGITS] {
    digest.to_string().as_bytes().last_chunk().copied().unwrap_or_default()
}

/// A hasher of the digest, if this build has one.
pub(crate) fn hasher() -> Option<Hasher> {
    Hasher::new(DigestAlgorithm::Crc32c).ok()
}
