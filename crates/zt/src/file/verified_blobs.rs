//! The blobs whose digest was right. Components that share a blob share the result.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use zt_container::{Blob, Digest, DigestAlgorithm, Span};

/// Blobs that were verified. Components may share a blob: tied weights do, and a hostile manifest may name
/// one blob very often. Its digest is compared once. Memory: the number of components.
///
/// Callers leave out what is not [worth it](is_worth_it).
#[derive(Default)]
pub(crate) struct Verified(RwLock<HashMap<(usize, Span, DigestAlgorithm), Digest>>);

/// Whether to remember a blob. Smaller blobs are hashed in less time than it takes to remember them.
pub(crate) fn is_worth_it(blob: &Blob) -> bool {
    blob.span.byte_len() >= 4 << 10
}

impl Verified {
    /// Whether the stored bytes of `blob`, in this source of the file, were found to have its
    /// digest.
    pub(crate) fn has(&self, source: usize, blob: &Blob) -> bool {
        let Some((key, digest)) = key(source, blob) else {
            return false;
        };
        let blobs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        blobs.get(&key) == Some(digest)
    }

    pub(crate) fn insert(&self, source: usize, blob: &Blob) {
        if let Some((key, digest)) = key(source, blob) {
            let mut blobs = self.0.write().unwrap_or_else(PoisonError::into_inner);
            blobs.insert(key, digest.clone());
        }
    }
}

fn key(source: usize, blob: &Blob) -> Option<((usize, Span, DigestAlgorithm), &Digest)> {
    Some(((source, blob.span, blob.algorithm()?), blob.digest.as_ref()?))
}
